package pebblestore

import (
	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// reader reads the logs of one chunk. Its view of the database is from the
// first log that is not cached on, hence taken under the chunk's locks.
type reader struct {
	db  *pebble.DB
	it  *pebble.Iterator
	key [logKeySize]byte
}

// log is the user's log, empty when there is none. It is valid until the next
// call or the cache's next put.
func (r *reader) log(cache *logCache, user capping.UserID) (capping.Log, error) {
	if log, ok := cache.log(user); ok {
		return log, nil
	}
	value, err := r.value(user)
	if err != nil || value == nil {
		return nil, err
	}
	log, err := decodeLog(value)
	if err == nil {
		cache.put(user, log)
	}
	return log, err
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
		r.close() // an iterator that has met an error stays where it is
	}
	return nil, err
}

func (r *reader) close() {
	if r.it != nil {
		_ = r.it.Close() // repeats an error that was reported with the value
		r.it = nil
	}
}
