package segments

import (
	"math/bits"
	"sync/atomic"
)

// Overlap is two segments with users in common.
type Overlap struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	Users   uint64   `json:"users"`
	Samples []uint32 `json:"sample_ids"` // the lowest of them
}

// overlapSamples is how many ids an Overlap shows.
const overlapSamples = 5

// Overlaps finds every pair of segments with users in common, exactly; pairs
// are in order of precedence. It uses all cores.
func (c *Candidate) Overlaps() []Overlap { return overlaps(c.Names, c.Bitmaps) }

// disjoint reports whether no user is in two of the bitmaps. Its cost is that of
// reading them once, not that of comparing every pair.
func disjoint(bitmaps []*Bitmap) bool {
	var sum uint64
	for _, b := range bitmaps {
		sum += b.card
	}
	var union atomic.Uint64
	inParallel(chunks(bitmaps), func(key int) {
		var w words
		for _, f := range gather(bitmaps, key) {
			f.data.addTo(&w)
		}
		union.Add(uint64(w.count()))
	})
	return union.Load() == sum
}

func overlaps(names []string, bitmaps []*Bitmap) []Overlap {
	if disjoint(bitmaps) {
		return nil
	}
	n := len(bitmaps)
	found := make([]Overlap, n*n)
	inParallel(n*n, func(i int) {
		a, b := i/n, i%n
		if a < b {
			users, samples := common(bitmaps[a], bitmaps[b])
			found[i] = Overlap{A: names[a], B: names[b], Users: users, Samples: samples}
		}
	})
	list := found[:0]
	for _, o := range found {
		if o.Users > 0 {
			list = append(list, o)
		}
	}
	return list
}

// common counts the ids that are in both, and returns the lowest.
func common(a, b *Bitmap) (users uint64, samples []uint32) {
	for i, j := 0, 0; i < len(a.containers) && j < len(b.containers); {
		x, y := &a.containers[i], &b.containers[j]
		switch {
		case x.key < y.key:
			i++
		case x.key > y.key:
			j++
		default:
			var w, v words
			x.addTo(&w)
			y.addTo(&v)
			for k := range w {
				w[k] &= v[k]
				users += uint64(bits.OnesCount64(w[k]))
			}
			for at := w.next(0, 0); at < chunkIDs && len(samples) < overlapSamples; at = w.next(at+1, 0) {
				samples = append(samples, uint32(x.key)<<16|uint32(at))
			}
			i++
			j++
		}
	}
	return users, samples
}

// Resolve removes users from every segment but the first that has them.
func (c *Candidate) Resolve() {
	overlapping := map[string]bool{}
	for _, o := range c.Overlaps() {
		overlapping[o.B] = true
	}
	for i, name := range c.Names {
		if !overlapping[name] {
			continue
		}
		var s Set
		s.AddBitmap(c.Bitmaps[i])
		for _, earlier := range c.Bitmaps[:i] {
			s.Subtract(earlier)
		}
		c.Bitmaps[i] = s.Bitmap()
	}
}
