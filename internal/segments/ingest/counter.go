package ingest

import (
	"math"
	"sync"
	"sync/atomic"
)

// exactRows and maxSample limit how much memory a counter of distinct ids needs.
const (
	// exactRows is the number of rows up to which a counter keeps all ids; for more rows the count is an estimate.
	exactRows = 1 << 16
	// maxSample is the maximum number of ids in the sample of an estimate; the sample always holds at least half as
	// many. The standard error is below 1.2 %.
	maxSample = 1 << 14
)

// counter counts the distinct ids of one file by adaptive sampling (M. Wegman; Flajolet 1990, "On adaptive sampling").
// A counter keeps only the ids whose hash is below a limit. When it has too many ids, it halves the limit. For most
// ids, a counter therefore needs only to compute a hash. The number of distinct ids that a counter returns does not
// depend on the order of the rows. A counter is safe for concurrent use, and its zero value is ready to use.
type counter[ID uint32 | uint64] struct {
	level atomic.Uint32 // the limit is 2^64 >> level

	mu     sync.Mutex
	rows   int64
	sample idTable[ID]
}

// Add counts the given ids. Add returns the slice "scratch" for reuse in the next call, so that Add rarely allocates
// memory.
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

// keep adds ids to the sample until the sample has more than "most" ids, and then halves the limit for hashes. keep
// returns the ids that it has not processed.
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

// Count returns the number of distinct ids so far. If the number is only an estimate, the result "exact" of Count is
// false.
func (c *counter[ID]) Count() (n int64, exact bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := math.Ldexp(float64(c.sample.count), int(c.level.Load()))
	return min(int64(estimate), c.rows), c.rows <= exactRows
}
