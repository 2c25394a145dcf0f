package segments

import (
	"capper/internal/bitmap"
	"capper/internal/parallel"
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

func overlaps(names []string, bitmaps []*bitmap.Bitmap) []Overlap {
	if bitmap.Disjoint(bitmaps) {
		return nil
	}
	n := len(bitmaps)
	found := make([]Overlap, n*n)
	parallel.OnAllCores(n*n, func(i int) {
		a, b := i/n, i%n
		if a < b {
			users, samples := bitmap.Common(bitmaps[a], bitmaps[b], overlapSamples)
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
