package pebblestore

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// reader reads the logs of a chunk under the chunk's locks, in the order of
// the database: neighbouring keys share files and blocks, and each seek
// continues where the last one ended.
type reader struct {
	store *Store
	it    *pebble.Iterator // its view is from the chunk's first read on
	key   [logKeySize]byte
}

// log is the user's log, empty when there is none, and whether it is from the
// cache. It is valid until the next call or the cache's next put.
func (r *reader) log(cache *logCache, user capping.UserID) (log capping.Log, cached bool, err error) {
	if log, ok := cache.log(user); ok {
		return log, true, nil
	}
	value, err := r.value(user)
	if err != nil || value == nil {
		return nil, false, err
	}
	log, err = decodeLog(value)
	return log, false, err
}

// value is what is stored of the user; nil: nothing.
func (r *reader) value(user capping.UserID) ([]byte, error) {
	if b, damaged := r.store.damaged.block(user); damaged {
		if !r.store.damaged.isMended(user) {
			return nil, b.err
		}
		value, err := lookup(r.store.db, logKey(user)) // stops at what it finds first, the newest
		return r.unlessEmpty(user, value), err
	}
	filtered := !r.store.damaged.unfiltered.Load()
	value, err := r.seek(user)
	if err == nil {
		return r.unlessEmpty(user, value), nil
	}
	r.end() // an iterator that has met an error stays where it is
	if r.store.survey(user, filtered, err) {
		return r.value(user)
	}
	return nil, err
}

// unlessEmpty is the value, nil when it stands for a log that was removed.
func (r *reader) unlessEmpty(user capping.UserID, value []byte) []byte {
	if value != nil && len(value) == 0 && r.store.damaged.isMended(user) {
		return nil
	}
	return value
}

func (r *reader) seek(user capping.UserID) ([]byte, error) {
	if r.it == nil {
		it, err := r.store.db.NewIter(nil)
		if err != nil {
			return nil, err
		}
		r.it = it
	}
	putLogKey(r.key[:], user)
	if r.store.damaged.unfiltered.Load() {
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

// end ends the reader's view.
func (r *reader) end() {
	if r.it != nil {
		_ = r.it.Close() // repeats an error that was reported with the value
		r.it = nil
	}
}
