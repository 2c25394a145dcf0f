// Package distinct counts how many different user ids a file has: exactly in a short
// one, else within some per cent, for a count of its own would take as much time and
// memory as the set that is built.
package ingest

import (
	"math"
	"sync"
	"sync/atomic"
)

// Bounds of what is kept.
const (
	// exactRows is up to how many rows all ids are kept; beyond, the count is an estimate.
	exactRows = 1 << 16
	// maxSample is how many ids an estimate is made of at most, and half of it at
	// least: the standard error is below 1.2 %.
	maxSample = 1 << 14
)

// counter counts the ids of one file by adaptive sampling (M. Wegman; Flajolet 1990,
// "On adaptive sampling"): it keeps the ids whose hash is below a limit, and halves
// the limit when they become too many. Most ids cost no more than their hash. What
// it says does not depend on the order of the rows. Safe for concurrent use; the
// zero Counter is ready.
type counter struct {
	level atomic.Uint32 // the limit is 2^64 >> level

	mu     sync.Mutex
	rows   int64
	sample idTable
}

// Add takes the ids of some rows. It returns scratch for the next call with the
// same scratch, so that it allocates nothing.
func (c *counter) Add(ids, scratch []uint32) []uint32 {
	picked := ids
	if level := c.level.Load(); level > 0 {
		scratch = pick(scratch[:0], ids, level)
		picked = scratch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows += int64(len(ids))
	for len(picked) > 0 {
		most := maxSample
		if c.rows <= exactRows {
			most = exactRows
		}
		picked = c.keep(picked, most)
	}
	return scratch
}

// keep adds ids until there are more than most, and halves the limit then. It
// returns those that are left to add.
func (c *counter) keep(ids []uint32, most int) (left []uint32) {
	limit := limitOf(c.level.Load())
	for i, id := range ids {
		if h := hash(id); h <= limit {
			c.sample.add(id, h)
		}
		if c.sample.count > most {
			c.halve()
			return ids[i+1:]
		}
	}
	return nil
}

func (c *counter) halve() {
	level := c.level.Add(1)
	kept := pick(nil, c.sample.slots, level)
	zero := c.sample.zero && hash(0) <= limitOf(level)
	c.sample = idTable{zero: zero}
	if zero {
		c.sample.count = 1
	}
	for _, id := range kept {
		if id != 0 {
			c.sample.add(id, hash(id))
		}
	}
}

// Count is the number of different ids so far; exact tells whether it is no estimate.
func (c *counter) Count() (n int64, exact bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := math.Ldexp(float64(c.sample.count), int(c.level.Load()))
	return min(int64(estimate), c.rows), c.rows <= exactRows
}
