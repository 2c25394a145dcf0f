package ingest

import (
	"math"
	"sync"
	"sync/atomic"
)

// exactRows and maxSample limit the memory of a counter of distinct ids.
const (
	// For up to exactRows rows, a counter keeps all ids. For more rows, the count is an estimate.
	exactRows = 1 << 16
	// maxSample is the maximum number of ids in the sample of an estimate. The standard error of an estimate is below
	// 1.2 %, because the sample usually has at least half as many ids.
	maxSample = 1 << 14
)

// A counter counts the distinct ids of one file by adaptive sampling (M. Wegman; Flajolet 1990, "On adaptive
// sampling"). A counter keeps the ids whose hash is below a limit. When a counter has too many ids, it halves the
// limit. A counter therefore ignores most ids after it has computed their hashes. The order of the rows has no effect
// on the result. A counter is safe for concurrent use, and the zero counter is ready to use.
type counter[ID uint32 | uint64] struct {
	level atomic.Uint32 // the limit is 2^64 >> level

	mu     sync.Mutex
	rows   int64
	sample idTable[ID]
}

// Add counts the given ids. Callers pass the returned slice as the argument "scratch" of the next call, so that Add
// rarely allocates memory.
func (c *counter[ID]) Add(ids, scratch []ID) []ID {
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

// The method "keep" adds ids to the sample. When the sample has more than "most" ids, the method "keep" halves the
// limit for hashes and returns the remaining ids.
func (c *counter[ID]) keep(ids []ID, most int) (left []ID) {
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

func (c *counter[ID]) halve() {
	level := c.level.Add(1)
	kept := pick(nil, c.sample.slots, level)
	zero := c.sample.zero && hash(ID(0)) <= limitOf(level)
	c.sample = idTable[ID]{zero: zero}
	if zero {
		c.sample.count = 1
	}
	for _, id := range kept {
		if id != 0 {
			c.sample.add(id, hash(id))
		}
	}
}

// The method Count returns the number of distinct ids so far. If the number is an estimate, the result "exact" is
// false.
func (c *counter[ID]) Count() (n int64, exact bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := math.Ldexp(float64(c.sample.count), int(c.level.Load()))
	return min(int64(estimate), c.rows), c.rows <= exactRows
}
