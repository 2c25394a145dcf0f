package pebblestore

import (
	"sync"

	"capper/internal/capping"
)

// A stripe is a group of users with a common lock for their logs. A stripe (group of users with a common lock) also
// holds the users' cached logs and cached counts of sends. Users with neighbouring ids (a run) are in the same stripe,
// so that a batch in ascending order reads neighbouring keys together. Goroutines lock several stripes (groups of users
// with a common lock) in ascending order, so that two goroutines never block each other.
type stripe struct {
	sync.Mutex
	cache   logCache
	counted Stripe
}

const stripeCount = 256

// A run is a group of users with neighbouring ids, which share a stripe (group of users with a common lock). The user
// ids in a run differ only in their lower bits. The type "runs" is the number of lower bits in which the ids of a run
// may differ.
type runs uint8

const (
	denseRuns runs = 8  // 256 dense ids
	imageRuns runs = 48 // one user in 65,536: 76 of 5 million users, 4,100 of 270 million
)

// The method ofImages reports whether r is for a store whose users are id images (64-bit numbers that stand for ids).
func (r runs) ofImages() bool { return r > denseRuns }

// The method "stripe" returns the index of the stripe (group of users with a common lock) of the user. Fibonacci
// hashing of the number of the user's run (block of consecutive ids) spreads the runs over the stripes. The hash of a
// run's number is the number times a constant: 2^32 divided by the golden ratio. Without the hash, ids that are all
// multiples of a large number would all be in one stripe (group of users with a common lock).
func (r runs) stripe(user capping.UserID) int { return int(uint32(user>>(r&63)) * 2654435769 >> 24) }

// makeStripes gives each stripe (group of users with a common lock) a log cache of the given size in bytes.
func (s *Store) makeStripes(cacheBytes int64) {
	s.runs = denseRuns
	if s.db.IDs() != (IDs{}) {
		s.runs = imageRuns
	}
	for i := range s.stripes {
		s.stripes[i].cache = newLogCache(cacheBytes, s.runs.ofImages())
	}
}

// cacheOf returns the log cache of the user's stripe (group of users with a common lock). The caller of cacheOf must
// hold the lock of this stripe (group of users with a common lock).
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
