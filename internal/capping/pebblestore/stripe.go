package pebblestore

import (
	"sync"

	"capper/internal/capping"
)

// stripe is a lock for the logs of some users, with their cached logs and their cached counts of sends. Runs of
// neighbouring users are in the same stripe, so that an ascending batch reads neighbouring keys together. A goroutine
// that locks several stripes locks them in ascending order.
type stripe struct {
	sync.Mutex
	cache   logCache
	counted Stripe
}

const stripeCount = 256

// runs is the number of lower bits in which the users of one run may differ.
type runs uint8

const (
	denseRuns runs = 8  // 256 dense ids
	imageRuns runs = 48 // one user in 65,536: 76 of 5 million users, 4,100 of 270 million
)

// ofImages reports whether r is for a store of images.
func (r runs) ofImages() bool { return r > denseRuns }

// stripe returns the index of the user's stripe. Multiplication by the golden ratio spreads the runs over the stripes,
// so that ids with a large common step do not all fall into one stripe.
func (r runs) stripe(user capping.UserID) int { return int(uint32(user>>(r&63)) * 2654435769 >> 24) }

// makeStripes prepares the stripes of an open database, each with a log cache of the given size.
func (s *Store) makeStripes(cacheBytes int64) {
	s.runs = denseRuns
	if s.db.IDs() != (IDs{}) {
		s.runs = imageRuns
	}
	for i := range s.stripes {
		s.stripes[i].cache = newLogCache(cacheBytes, s.runs.ofImages())
	}
}

// cacheOf returns the log cache of the user's stripe. The caller of cacheOf holds the stripe's lock.
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
