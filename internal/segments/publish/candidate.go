package publish

import (
	"slices"
	"strings"

	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Candidate is a generation that has been built and not been published yet.
type Candidate struct {
	Names   []string // in order of precedence
	Bitmaps []*bitmap.Bitmap
	Sets    []Set // beside the segments, in their order
	// Accepted are changes that somebody lets pass by name; Publish says when.
	Accepted []segments.Accepted
	// Partial: it is not all that a build made, so publishing it is no sign that builds run to their end.
	Partial bool
}

// Set is one set of a candidate. Sets may have users in common with segments and with each other.
type Set struct {
	Name   string
	Bitmap *bitmap.Bitmap
	Growth Growth
}

// Growth is what is said of the direction of a set.
type Growth struct {
	// Said is false where nothing is said: then what was said before stays.
	Said      bool
	OnlyGrows bool
	// MaxLoss is how many users may leave a set that only grows, per 100 before.
	MaxLoss float64
}

// Inherit gives the sets of which nothing is said what before says of them: who
// forgets that a list only grows does not change that.
func (c *Candidate) Inherit(before *segments.Manifest) {
	if before == nil {
		return
	}
	was := map[string]*segments.Set{}
	for i := range before.Sets {
		was[before.Sets[i].Name] = &before.Sets[i]
	}
	for i := range c.Sets {
		if old := was[c.Sets[i].Name]; old != nil && !c.Sets[i].Growth.Said {
			c.Sets[i].Growth = Growth{Said: true, OnlyGrows: old.OnlyGrows, MaxLoss: old.MaxLoss}
		}
	}
}

// Describe lists the manifest entries of the candidate. Hashing takes all cores.
func (c *Candidate) Describe() []segments.Segment {
	list := make([]segments.Segment, len(c.Names))
	parallel.OnAllCores(len(c.Names), func(i int) { list[i] = segments.Describe(c.Names[i], c.Bitmaps[i]) })
	return list
}

// DescribeSets lists the manifest entries of the sets. Hashing takes all cores.
func (c *Candidate) DescribeSets() []segments.Set {
	if len(c.Sets) == 0 {
		return nil
	}
	list := make([]segments.Set, len(c.Sets))
	parallel.OnAllCores(len(c.Sets), func(i int) {
		s := &c.Sets[i]
		list[i] = segments.Set{Segment: segments.Describe(s.Name, s.Bitmap), OnlyGrows: s.Growth.OnlyGrows,
			MaxLoss: s.Growth.MaxLoss}
	})
	return list
}

// SHA256 is that of the bitmap of a segment or set; empty where the candidate has none of the name.
func (c *Candidate) SHA256(name string) string {
	if i := slices.Index(c.Names, name); i >= 0 {
		return c.Bitmaps[i].SHA256()
	}
	if i := slices.IndexFunc(c.Sets, func(s Set) bool { return s.Name == name }); i >= 0 {
		return c.Sets[i].Bitmap.SHA256()
	}
	return ""
}

// CandidateOf is what a generation would be as a candidate.
func CandidateOf(g *segments.Generation) *Candidate {
	c := &Candidate{Bitmaps: g.Bitmaps}
	for _, s := range g.Manifest.Segments {
		c.Names = append(c.Names, s.Name)
	}
	for i, s := range g.Manifest.Sets {
		c.Sets = append(c.Sets, Set{Name: s.Name, Bitmap: g.Sets[i], Growth: Growth{Said: true, OnlyGrows: s.OnlyGrows,
			MaxLoss: s.MaxLoss}})
	}
	return c
}

// generation is the candidate under its manifest.
func (c *Candidate) generation(m *segments.Manifest) *segments.Generation {
	g := &segments.Generation{Manifest: m, Bitmaps: c.Bitmaps}
	for _, s := range c.Sets {
		g.Sets = append(g.Sets, s.Bitmap)
	}
	return g
}

// SizeBytes is the size of all its serialized bitmaps.
func (c *Candidate) SizeBytes() int64 {
	var sum int64
	for _, b := range c.Bitmaps {
		sum += int64(len(b.Bytes()))
	}
	for _, s := range c.Sets {
		sum += int64(len(s.Bitmap.Bytes()))
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

// FurtherZones is how many users are in a further set of a time zone beside the first,
// which is the one that counts; who is in three counts twice.
func (c *Candidate) FurtherZones() (users uint64) {
	var zones []*bitmap.Bitmap
	for _, s := range c.Sets {
		if strings.HasPrefix(s.Name, segments.ZonePrefix) {
			zones = append(zones, s.Bitmap)
			users += s.Bitmap.Cardinality()
		}
	}
	all, _, _ := bitmap.Unions(zones, nil)
	return users - all
}

// LostZones says why services that need the time zones of users refuse the candidate; nil
// where they do not.
func (c *Candidate) LostZones(before *segments.Generation) *segments.LossError {
	is := &segments.Generation{Manifest: &segments.Manifest{Accepted: c.Accepted}}
	for _, s := range c.Sets {
		if strings.HasPrefix(s.Name, segments.ZonePrefix) {
			is.Manifest.Sets = append(is.Manifest.Sets, segments.Set{Segment: segments.Describe(s.Name, s.Bitmap)})
			is.Sets = append(is.Sets, s.Bitmap)
		}
	}
	return segments.JudgeZones(before, is)
}
