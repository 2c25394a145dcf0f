package pebblestore

import (
	"slices"
	"sync"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/logcache"
)

// A stripe is a lock over the logs of its users, and their cache. Runs of 256
// neighbouring users share a stripe, so that an ascending batch reads
// neighbouring keys together. Whoever takes several takes them in ascending
// order.
type stripe struct {
	sync.Mutex
	cache logcache.Cache
}

const (
	stripeCount = 256
	stripeRun   = 256
)

// stripeOf spreads the runs by the golden ratio, so that ids with a large
// common step do not all meet in one stripe.
func stripeOf(user capping.UserID) int { return int(user / stripeRun * 2654435769 >> 24) }

// cacheOf is the cache that the user's log may be in. The stripe is locked.
func (s *Store) cacheOf(user capping.UserID) *logcache.Cache { return &s.stripes[stripeOf(user)].cache }

// order is the users of a call, sorted by stripe: user<<32 | index in the call.
type order struct {
	users  []uint64
	starts [stripeCount + 1]int32 // users of stripe s are users[starts[s]:starts[s+1]]
}

func (o *order) sort(users []capping.UserID) {
	o.users = slices.Grow(o.users[:0], len(users))[:len(users)]
	clear(o.starts[:])
	for _, user := range users {
		o.starts[stripeOf(user)+1]++
	}
	for s := range stripeCount {
		o.starts[s+1] += o.starts[s]
	}
	next := o.starts
	for i, user := range users {
		s := stripeOf(user)
		o.users[next[s]] = uint64(user)<<32 | uint64(i)
		next[s]++
	}
}

// chunk is the users of the stripes from first up to but not including last.
type chunk struct{ first, last int }

// chunkUsers is how many users are decided before the locks are given back,
// about. It bounds how long a call for one user waits for a large one.
const chunkUsers = 1024

// in is the users of a chunk, sorted by id, which is the order of the database.
func (o *order) in(k chunk) []uint64 {
	users := o.users[o.starts[k.first]:o.starts[k.last]]
	slices.Sort(users)
	return users
}

// chunks appends to dst the chunks of the order, each of at least one user.
func (o *order) chunks(dst []chunk) []chunk {
	first := 0
	for s := range stripeCount {
		n := o.starts[s+1] - o.starts[first]
		if n == 0 {
			first = s + 1
			continue
		}
		if n >= chunkUsers || s == stripeCount-1 {
			dst = append(dst, chunk{first, s + 1})
			first = s + 1
		}
	}
	return dst
}
