package pebblestore

import (
	"sync"

	"capper/internal/capping"
)

// stripe is a lock for the logs of some users. A stripe (group of users with a common lock) also holds their cached
// logs and their cached counts of sends. Users with neighbouring ids (a run) are in the same stripe, so that a batch in
// ascending order reads neighbouring keys together. If a goroutine locks several stripes, it locks them in ascending
// order, so that two goroutines never block each other.
type stripe struct {
	sync.Mutex
	cache   logCache
	counted Stripe
}

const stripeCount = 256

// A runs value says which users are neighbours (a run): the ids of neighbours differ only in the lower bits, and runs
// is the number of these bits. The users of a run share a stripe (group of users with a common lock).
type runs uint8

const (
	denseRuns runs = 8  // 256 dense ids
	imageRuns runs = 48 // one user in 65,536: 76 of 5 million users, 4,100 of 270 million
)

// ofImages reports whether r is for a store whose users are id images (64-bit numbers that stand for ids).
func (r runs) ofImages() bool { return r > denseRuns }

// stripe returns the index of the stripe (group of users with a common lock) that holds the user's log. A run is
// a block of consecutive ids. Fibonacci hashing of the block's number (a multiplication by 2^32 divided by the golden
// ratio) spreads the blocks over the stripes. Otherwise, ids with a large common step would all be in one stripe.
func (r runs) stripe(user capping.UserID) int { return int(uint32(user>>(r&63)) * 2654435769 >> 24) }

// makeStripes creates the locks (stripes) of an open database. Each stripe gets a log cache of the given size in bytes.
func (s *Store) makeStripes(cacheBytes int64) {
	s.runs = denseRuns
	if s.db.IDs() != (IDs{}) {
		s.runs = imageRuns
	}
	for i := range s.stripes {
		s.stripes[i].cache = newLogCache(cacheBytes, s.runs.ofImages())
	}
}

// cacheOf returns the cache in which the log of the user may be: the log cache of the user's stripe (group of users
// with a common lock). The caller of cacheOf must hold the lock of this stripe.
func (s *Store) cacheOf(user capping.UserID) *logCache { return &s.stripes[s.runs.stripe(user)].cache }

func (s *Store) lockStripes(c *call, p portion) {
	for i := p.first; i < p.last; i++ {
		if c.plan.starts[i] < c.plan.starts[i+1] {
			s.stripes[i].Lock()
		}
	}
}

func (s *Store) unlockStripes(c *call, p portion) {
	for i := p.first; i < p.last; i++ {
		if c.plan.starts[i] < c.plan.starts[i+1] {
			s.stripes[i].Unlock()
		}
	}
}
