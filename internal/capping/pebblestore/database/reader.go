package database

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// A Reader reads the logs of users. Reads in the order of user ids are fastest: neighbouring keys share files and
// blocks, and each seek continues at the end of the last seek.
type Reader struct {
	db  *DB
	it  *pebble.Iterator // reads the state of the database at the first read
	key [mostLogKey]byte
}

// NewReader returns a Reader for one goroutine.
func (d *DB) NewReader() Reader { return Reader{db: d} }

// The method Value returns the stored log of the user, or nil if the user has no log. The returned log is valid until
// the next call of Value.
func (r *Reader) Value(user capping.UserID) ([]byte, error) {
	if b, damaged := r.db.damaged.block(user); damaged {
		if !r.db.damaged.isMended(user) {
			return nil, b.err
		}
		value, err := r.db.Lookup(r.db.LogKey(user)) // stops at the newest value
		return r.unlessEmpty(user, value), err
	}
	filtered := !r.db.damaged.unfiltered.Load()
	value, err := r.seek(user)
	if err == nil {
		return r.unlessEmpty(user, value), nil
	}
	r.End() // an iterator cannot continue after an error
	if r.db.survey(user, filtered, err) {
		return r.Value(user)
	}
	return nil, err
}

// unlessEmpty returns nil for the empty value that a removed log leaves after damage, and otherwise the argument
// "value".
func (r *Reader) unlessEmpty(user capping.UserID, value []byte) []byte {
	if value != nil && len(value) == 0 && r.db.damaged.isMended(user) {
		return nil
	}
	return value
}

func (r *Reader) seek(user capping.UserID) ([]byte, error) {
	if r.it == nil {
		it, err := r.db.DB.NewIter(nil)
		if err != nil {
			return nil, err
		}
		r.it = it
	}
	key := r.db.userKey(r.key[:0], KeyLog, user)
	if r.db.damaged.unfiltered.Load() {
		if r.it.SeekGE(key) && bytes.Equal(r.it.Key(), key) {
			return r.it.ValueAndErr()
		}
		return nil, r.it.Error()
	}
	// The prefix is the whole key, so that Pebble uses the Bloom filters.
	if r.it.SeekPrefixGE(key) {
		return r.it.ValueAndErr()
	}
	return nil, r.it.Error()
}

// The method End releases the snapshot of the database from which the reader reads.
func (r *Reader) End() {
	if r.it != nil {
		_ = r.it.Close() // repeats an error that Value has returned
		r.it = nil
	}
}

// Lookup returns a copy of the key's value, or nil if the key does not exist.
func (d *DB) Lookup(key []byte) ([]byte, error) {
	value, closer, err := d.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if pebble.IsCorruptionError(err) {
		return d.lookupUnfiltered(key, err)
	}
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(value)), value...), closer.Close()
}

// lookupUnfiltered reads the value of a key again without Bloom filters, after a first read has failed. A damaged Bloom
// filter may be the only cause of the first failure.
func (d *DB) lookupUnfiltered(key []byte, damage error) (value []byte, err error) {
	it, err := d.NewIter(nil)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.SeekGE(key) && bytes.Equal(it.Key(), key) {
		value = slices.Clone(it.Value())
	}
	if it.Error() != nil {
		return nil, damage
	}
	return value, nil
}
