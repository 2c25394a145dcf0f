package database

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// Reader reads the logs of some users. Reading in the order of user ids is fastest: neighbouring keys share
// files and blocks, and each seek continues where the last one ended.
type Reader struct {
	db  *DB
	it  *pebble.Iterator // sees the state of the database at the first read
	key [mostLogKey]byte
}

// NewReader returns a reader for one goroutine.
func (d *DB) NewReader() Reader { return Reader{db: d} }

// Value returns the stored value of the user, or nil if there is none. The value is valid until the next call.
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

// unlessEmpty returns the value, or nil for an empty value that stands for a removed log.
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
	// The prefix is the whole key, so that the bloom filters are used.
	if r.it.SeekPrefixGE(key) {
		return r.it.ValueAndErr()
	}
	return nil, r.it.Error()
}

// End ends the reader's view of the database.
func (r *Reader) End() {
	if r.it != nil {
		_ = r.it.Close() // repeats an error that Value has returned
		r.it = nil
	}
}

// Lookup returns a copy of the key's value, or nil for a missing key.
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

// lookupUnfiltered returns the key's value without the tables' filters. lookupUnfiltered is used when the
// only damage may be in a filter.
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
