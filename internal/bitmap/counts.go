package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// The type Counts has a counter for each id of one block (65,536 neighbouring ids). The counter of an id is the number
// of times that the caller added this id. The counters are bit-sliced: plane k contains bit k of every counter, and
// takes 8 KiB. In the zero Counts, every counter is 0.
type Counts struct{ planes []*words }

// fewIDs is the maximum number of ids in an array container that AddAt adds one by one. Adding all words of a block
// costs as much as adding about 400 single ids.
const fewIDs = 400

// AddAt adds 1 to the counters of all ids in the bitmap's block with the index i. Blocks without ids have no index.
// AddAt reads the block once, even if it adds to several Counts.
func AddAt(b *Bitmap, i int, counts ...*Counts) {
	c := &b.containers[i]
	if c.kind == arrayKind && c.card <= fewIDs {
		for data := c.data; len(data) >= 2; data = data[2:] {
			low := binary.LittleEndian.Uint16(data)
			for _, to := range counts {
				to.add(int(low>>6), 1<<(low&63))
			}
		}
		return
	}
	var w words
	c.loadInto(&w)
	for _, to := range counts {
		for at, ids := range w {
			if ids != 0 {
				to.add(at, ids)
			}
		}
	}
}

// The method "add" adds 1 to the counters of up to 64 ids: the set bits of one word. The argument "at" is the index of
// the word in the block. A block of 65,536 ids has 1,024 such words.
func (c *Counts) add(at int, ids uint64) {
	for k := 0; ids != 0; k++ {
		if k == len(c.planes) {
			c.planes = append(c.planes, new(words))
		}
		p := &c.planes[k][at]
		*p, ids = *p^ids, *p&ids
	}
}

// Subtract subtracts 1 from the counter of one id. The argument "low" is the lower 16 bits of the id. A counter of 0
// stays 0.
func (c *Counts) Subtract(low uint16) {
	if c.Number(low) == 0 {
		return
	}
	at, id := int(low>>6), uint64(1)<<(low&63)
	for k := 0; id != 0; k++ {
		p := &c.planes[k][at]
		*p, id = *p^id, ^*p&id
	}
}

// The method Number returns the counter of one id. The argument "low" is the lower 16 bits of the id.
func (c *Counts) Number(low uint16) (n int) {
	for k, p := range c.planes {
		n |= int(p[low>>6]>>(low&63)&1) << k
	}
	return n
}

// AtLeast sets w to the ids whose counter is n or more. The argument "n" must be above 0.
func (c *Counts) AtLeast(n int, w *Words) {
	if bits.Len(uint(n)) > len(c.planes) {
		w.Clear()
		return
	}
	for at := range w.bits {
		above, equal := uint64(0), ^uint64(0)
		for k := len(c.planes) - 1; k >= 0; k-- {
			p := c.planes[k][at]
			if n>>k&1 == 1 {
				equal &= p
			} else {
				above, equal = above|equal&p, equal&^p
			}
		}
		w.bits[at] = above | equal
	}
}

// The method Histogram counts ids by the value of their counter, and adds the results to the slice "counts". Element n
// of this slice is the number of ids whose counter is n. The last element also includes all ids with a larger counter.
// The method Histogram does not count ids whose counter is 0. The argument "in" is the set of ids to count; if "in" is
// nil, Histogram counts all ids.
func (c *Counts) Histogram(in *Words, counts []int64) {
	for at := range containerWords {
		ids := uint64(0)
		for _, p := range c.planes {
			ids |= p[at]
		}
		if in != nil {
			ids &= in.bits[at]
		}
		c.split(at, len(c.planes)-1, ids, 0, counts)
	}
}

// The method "split" counts the given ids of one word by the value of their counter, and adds the results to the slice
// "counts". In all bits above bit k, the counter of each given id must equal n.
func (c *Counts) split(at, k int, ids uint64, n int, counts []int64) {
	switch {
	case ids == 0:
	case k < 0:
		counts[min(n, len(counts)-1)] += int64(bits.OnesCount64(ids))
	default:
		p := c.planes[k][at]
		c.split(at, k-1, ids&p, n|1<<k, counts)
		c.split(at, k-1, ids&^p, n, counts)
	}
}

// The method Sum returns the sum of the counters of the ids in the set "in". If "in" is nil, Sum adds the counters of
// all ids.
func (c *Counts) Sum(in *Words) (sum int64) {
	for k, p := range c.planes {
		n := 0
		for at, ids := range p {
			if in != nil {
				ids &= in.bits[at]
			}
			n += bits.OnesCount64(ids)
		}
		sum += int64(n) << k
	}
	return sum
}

// SizeBytes returns the size of the counters in memory, in bytes.
func (c *Counts) SizeBytes() int64 { return int64(len(c.planes)) * bitmapBytes }
