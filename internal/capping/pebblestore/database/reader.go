package database

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// Reader reads the logs of some users, best in the order of the database: neighbouring keys share files and blocks, and
// each seek continues where the last one ended.
type Reader struct {
	db  *DB
	it  *pebble.Iterator // its view is from the first read on
	key [LogKeySize]byte
}

// NewReader is a reader, for one goroutine.
func (d *DB) NewReader() Reader { return Reader{db: d} }

// Value is what is stored of the user; nil: nothing. It is valid until the next
// call.
func (r *Reader) Value(user capping.UserID) ([]byte, error) {
	if b, damaged := r.db.damaged.block(user); damaged {
		if !r.db.damaged.isMended(user) {
			return nil, b.err
		}
		value, err := r.db.Lookup(LogKey(user)) // stops at what it finds first, the newest
		return r.unlessEmpty(user, value), err
	}
	filtered := !r.db.damaged.unfiltered.Load()
	value, err := r.seek(user)
	if err == nil {
		return r.unlessEmpty(user, value), nil
	}
	r.End() // an iterator that has met an error stays where it is
	if r.db.survey(user, filtered, err) {
		return r.Value(user)
	}
	return nil, err
}

// unlessEmpty is the value, nil when it stands for a log that was removed.
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
	putLogKey(r.key[:], user)
	if r.db.damaged.unfiltered.Load() {
		if r.it.SeekGE(r.key[:]) && bytes.Equal(r.it.Key(), r.key[:]) {
			return r.it.ValueAndErr()
		}
		return nil, r.it.Error()
	}
	// By prefix, which is the whole key, so that bloom filters are asked.
	if r.it.SeekPrefixGE(r.key[:]) {
		return r.it.ValueAndErr()
	}
	return nil, r.it.Error()
}

// End ends the Reader's view.
func (r *Reader) End() {
	if r.it != nil {
		_ = r.it.Close() // repeats an error that was reported with the value
		r.it = nil
	}
}

// Lookup is a copy of the key's value, nil when the key is absent.
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

// lookupUnfiltered is Lookup without the tables' filters, one of which may be
// all that was found damaged.
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
