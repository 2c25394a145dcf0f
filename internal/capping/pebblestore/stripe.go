package pebblestore

import (
	"sync"

	"capper/internal/capping"
)

// A stripe is a lock over the logs of its users, their cache, and what was counted of them. Runs of 256
// neighbouring users share a stripe, so that an ascending batch reads
// neighbouring keys together. Whoever takes several takes them in ascending
// order.
type stripe struct {
	sync.Mutex
	cache   logCache
	counted Stripe
}

const (
	stripeCount = 256
	stripeRun   = 256
)

// stripeOf spreads the runs by the golden ratio, so that ids with a large
// common step do not all meet in one stripe.
func stripeOf(user capping.UserID) int { return int(user / stripeRun * 2654435769 >> 24) }

// cacheOf is the cache that the user's log may be in. The stripe is locked.
func (s *Store) cacheOf(user capping.UserID) *logCache { return &s.stripes[stripeOf(user)].cache }

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
