package pebblestore

import (
	"sync"

	"capper/internal/capping"
)

// stripe is a lock for the logs of some users, with their cache and their counts. Runs of 256 neighbouring
// users share a stripe, so that an ascending batch reads neighbouring keys together. A caller that locks
// several stripes locks them in ascending order.
type stripe struct {
	sync.Mutex
	cache   logCache
	counted Stripe
}

const (
	stripeCount = 256
	stripeRun   = 256
)

// stripeOf returns the index of the user's stripe. Multiplying by the golden ratio spreads the runs, so that
// ids with a large common step do not share one stripe.
func stripeOf(user capping.UserID) int { return int(user / stripeRun * 2654435769 >> 24) }

// cacheOf returns the cache that may hold the user's log. The caller holds the stripe's lock.
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
