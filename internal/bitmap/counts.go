package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// Counts holds a counter for each id of one block. The counter of an id in a Counts says how often the caller added the
// id. The counters in a value of the type Counts are bit-sliced: plane k holds bit k of every counter, and takes 8 KiB.
// The zero value of Counts holds 0 for every id.
type Counts struct{ planes []*words }

// fewIDs is the maximum number of ids in an array container that AddAt adds one by one. Adding whole words costs as
// much as adding some 400 single ids.
const fewIDs = 400

// AddAt adds 1 to the counters of all ids that the bitmap b holds in its block with the index i. The index i counts
// only blocks that hold an id. AddAt reads the block only once, even if it adds to several Counts.
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

// add adds 1 to the counters of up to 64 ids: the set bits of one word, which has the index "at" in the block. A block
// of 65,536 ids has 1,024 such words.
func (c *Counts) add(at int, ids uint64) {
	for k := 0; ids != 0; k++ {
		if k == len(c.planes) {
			c.planes = append(c.planes, new(words))
		}
		p := &c.planes[k][at]
		*p, ids = *p^ids, *p&ids
	}
}

// Subtract subtracts 1 from the counter of one id; the argument "low" is the lower 16 bits of the id. A counter of 0
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

// Number returns the counter of one id; the argument "low" is the lower 16 bits of the id.
func (c *Counts) Number(low uint16) (n int) {
	for k, p := range c.planes {
		n |= int(p[low>>6]>>(low&63)&1) << k
	}
	return n
}

// AtLeast sets w to the ids whose counter (how often the caller added the id) is n or more. The argument "n" of AtLeast
// must be above 0.
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

// Histogram counts ids by the value of their counter and adds the results to counts. Element n of counts is the number
// of ids whose counter is n. The last element of the result also counts all ids whose counter is larger than the index
// of that element. Histogram does not count ids whose counter is 0. The argument "in" of Histogram is the set of ids to
// count; nil means all ids.
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

// split counts the given ids of one word by the value of their counter, and adds the results to counts. The
// caller must ensure that the counter of each given id agrees with n in all bits above bit k.
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

// Sum returns the sum of the counters of ids. Sum adds only the counters of the ids in the set "in", or of all ids if
// "in" is nil.
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

// SizeBytes returns how many bytes of memory the counters take.
func (c *Counts) SizeBytes() int64 { return int64(len(c.planes)) * bitmapBytes }
