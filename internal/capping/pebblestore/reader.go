package pebblestore

import (
	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// reader reads the logs of a chunk under the chunk's locks, in the order of
// the database: neighbouring keys share files and blocks, and each seek
// continues where the last one ended.
type reader struct {
	db  *pebble.DB
	it  *pebble.Iterator // its view is from the chunk's first read on
	key [logKeySize]byte
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
	if r.it == nil {
		it, err := r.db.NewIter(nil)
		if err != nil {
			return nil, err
		}
		r.it = it
	}
	putLogKey(r.key[:], user)
	// By prefix, which is the whole key, so that bloom filters are asked.
	if r.it.SeekPrefixGE(r.key[:]) {
		return r.it.ValueAndErr()
	}
	err := r.it.Error()
	if err != nil {
		r.end() // an iterator that has met an error stays where it is
	}
	return nil, err
}

// end ends the reader's view.
func (r *reader) end() {
	if r.it != nil {
		_ = r.it.Close() // repeats an error that was reported with the value
		r.it = nil
	}
}
