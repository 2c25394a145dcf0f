package publish

import (
	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Candidate is a generation that has been built and not been published yet.
type Candidate struct {
	Names   []string // in order of precedence
	Bitmaps []*bitmap.Bitmap
}

// Describe lists the manifest entries of the candidate. Hashing takes all cores.
func (c *Candidate) Describe() []segments.Segment {
	list := make([]segments.Segment, len(c.Names))
	parallel.OnAllCores(len(c.Names), func(i int) { list[i] = segments.Describe(c.Names[i], c.Bitmaps[i]) })
	return list
}

// SizeBytes is the size of all its serialized bitmaps.
func (c *Candidate) SizeBytes() int64 {
	var sum int64
	for _, b := range c.Bitmaps {
		sum += int64(len(b.Bytes()))
	}
	return sum
}

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
func (c *Candidate) Overlaps() []Overlap {
	if bitmap.Disjoint(c.Bitmaps) {
		return nil
	}
	n := len(c.Bitmaps)
	found := make([]Overlap, n*n)
	parallel.OnAllCores(n*n, func(i int) {
		a, b := i/n, i%n
		if a < b {
			users, samples := bitmap.Common(c.Bitmaps[a], c.Bitmaps[b], overlapSamples)
			found[i] = Overlap{A: c.Names[a], B: c.Names[b], Users: users, Samples: samples}
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
		var s bitmap.Set
		s.AddBitmap(c.Bitmaps[i])
		for _, earlier := range c.Bitmaps[:i] {
			s.Subtract(earlier)
		}
		c.Bitmaps[i] = s.Bitmap()
	}
}
