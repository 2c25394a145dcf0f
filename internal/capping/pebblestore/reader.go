package pebblestore

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// reader reads the logs of a chunk, under the chunk's locks. It is used for
// one chunk after the other.
//
// Logs that are not cached are read beforehand, in the order of the database:
// neighbouring keys share files and blocks, and each seek continues where the
// last one ended.
type reader struct {
	db     *pebble.DB
	it     *pebble.Iterator // its view is from the chunk's first read on
	key    [logKeySize]byte
	misses []uint64 // users that are not cached: user<<32 | index in the chunk
	found  []found  // by index in the chunk
	values []byte   // of those found
}

// found is what the database holds of one user.
type found struct {
	read       bool // false: nobody has looked
	start, end int  // of the value; the same: none
	err        error
}

// load reads what is not cached of a chunk's users.
func (r *reader) load(s *Store, users []uint64) {
	r.misses, r.values = r.misses[:0], r.values[:0]
	r.found = zeroed(r.found, len(users))
	for i, packed := range users {
		user := capping.UserID(packed >> 32)
		if _, cached := s.cacheOf(user).find(user); !cached {
			r.misses = append(r.misses, uint64(user)<<32|uint64(i))
		}
	}
	slices.Sort(r.misses)
	for _, packed := range r.misses {
		r.read(capping.UserID(packed>>32), &r.found[uint32(packed)])
	}
}

func (r *reader) read(user capping.UserID, f *found) {
	var value []byte
	value, f.err = r.value(user)
	f.read, f.start = true, len(r.values)
	r.values = append(r.values, value...)
	f.end = len(r.values)
	if f.err == nil && value != nil {
		_, f.err = decodeLog(value)
	}
}

// log is the log of the chunk's user i, and whether it is from the cache. It is
// valid until the cache's next put.
func (r *reader) log(cache *logCache, i int, user capping.UserID) (log capping.Log, cached bool, err error) {
	f := &r.found[i]
	if !f.read {
		if log, ok := cache.log(user); ok {
			return log, true, nil
		}
		r.read(user, f) // it left the cache since load
	}
	return r.values[f.start:f.end:f.end], false, f.err
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
