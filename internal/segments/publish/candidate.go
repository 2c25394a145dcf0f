package publish

import (
	"slices"
	"strings"
	"time"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Candidate is a generation of segments and sets that has been built but not yet published.
type Candidate struct {
	Names   []string // in the order of precedence
	Bitmaps []*bitmap.Bitmap
	Sets    []Set // in their order in the manifest
	// Accepted lists the changes of single segments and sets that the operator approved; Publish records them in the
	// manifest.
	Accepted []segments.Accepted
	// Carried is a manifest from which an amend (publish of some sets) takes, by reference, all segments and the sets
	// that are not in the field Sets. If Carried is nil, the candidate itself has all segments and sets.
	Carried *segments.Manifest
	// If an amend (publish of some sets) gives users other numbers, the field "moved" contains the converted bitmaps of
	// Carried, by object key. If "moved" is nil, the stored bitmaps and the stored dictionary stay.
	moved map[string]*bitmap.Bitmap
	// Scheme and Dictionary convert ids to the user numbers in the bitmaps; see segments.Generation. For dense ids
	// (32-bit numbers), Scheme and Dictionary are nil.
	Scheme     *ids.Scheme
	Dictionary *segments.Dictionary
	Back       *segments.Back // converts user numbers to ids; nil: the candidate has no such file
	// If Back is nil, the generation in the field "named" converts user numbers to ids. The field "named" is nil if the
	// candidate has a Back, or cannot convert user numbers to ids.
	named *segments.Generation
	// Partial is true if the candidate is only a part of a build's result. A publish of a partial candidate is not a
	// complete build.
	Partial bool
}

// Set is one set of users in a candidate (built but unpublished generation). A user may be in several sets, and also in
// a segment.
type Set struct {
	Name   string
	Bitmap *bitmap.Bitmap
	Growth Growth
	// AsOf is the time up to which the set's users reflect every change by API calls. If the time is unknown, AsOf is
	// zero. See segments.Set.
	AsOf time.Time
	// AsOfGiven is true if the operator stated AsOf. If the operator stated AsOf, a later time alone is a reason to
	// publish.
	AsOfGiven bool
	// If the set contains the users of amends (publishes of some sets), AmendedAsOf is the AsOf of the newest of these
	// amends.
	AmendedAsOf time.Time
}

// The type Growth is the setting "only grows" of a set. If a set only grows, the guard refuses a build in which more
// than MaxLoss percent of the users leave the set.
type Growth struct {
	// Said is false if the build does not mention the setting "only grows". If Said is false, the setting of the
	// earlier generation remains.
	Said      bool
	OnlyGrows bool
	// MaxLoss is the percentage of users who may leave a set that only grows, from one publish to the
	// next.
	MaxLoss float64
}

// Inherit copies the setting "only grows" from an earlier manifest to each set for which the build does not mention
// this setting.
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

// Describe returns the manifest entries of the segments. The method Describe hashes the bitmaps on all CPU cores.
func (c *Candidate) Describe() []segments.Segment {
	list := make([]segments.Segment, len(c.Names))
	parallel.OnAllCores(len(c.Names), func(i int) { list[i] = segments.Describe(c.Names[i], c.Bitmaps[i]) })
	return list
}

// DescribeSets returns the manifest entries of the sets. DescribeSets hashes the bitmaps on all CPU cores.
func (c *Candidate) DescribeSets() []segments.Set {
	if len(c.Sets) == 0 {
		return nil
	}
	list := make([]segments.Set, len(c.Sets))
	parallel.OnAllCores(len(c.Sets), func(i int) {
		s := &c.Sets[i]
		list[i] = segments.Set{Segment: segments.Describe(s.Name, s.Bitmap), OnlyGrows: s.Growth.OnlyGrows,
			MaxLoss: s.Growth.MaxLoss, AsOf: s.AsOf, AmendedAsOf: s.AmendedAsOf}
	})
	return list
}

// manifestEntries returns the manifest entries of all segments and sets, including unchanged ones that an amend
// (publish of some sets) takes over.
func (c *Candidate) manifestEntries() ([]segments.Segment, []segments.Set) {
	own := c.DescribeSets()
	if c.Carried == nil {
		return c.Describe(), own
	}
	sets := slices.Clone(c.Carried.Sets)
	for _, s := range own {
		i := slices.IndexFunc(sets, func(was segments.Set) bool { return was.Name == s.Name })
		if i < 0 {
			sets = append(sets, s)
		} else {
			sets[i] = s
		}
	}
	return c.Carried.Segments, sets
}

// The method "content" returns a manifest that describes the content of the candidate (built but unpublished
// generation): segments, sets and kind of ids, but no generation name.
func (c *Candidate) content() *segments.Manifest {
	return c.contentOf(c.manifestEntries())
}

// contentOf works like the method "content", for a caller that already has the manifest entries of the segments and
// sets.
func (c *Candidate) contentOf(list []segments.Segment, sets []segments.Set) *segments.Manifest {
	return &segments.Manifest{Segments: list, Sets: sets, IDs: c.IDs()}
}

// IDs returns the value of the manifest field IDs for the candidate (built but unpublished generation), which is nil
// for dense ids.
func (c *Candidate) IDs() *segments.IDs {
	switch {
	case c.Dictionary == nil:
		return nil
	case c.Carried != nil:
		return c.Carried.IDs
	}
	return segments.DescribeIDs(c.Scheme, c.Dictionary, c.Back)
}

// The method "set" returns the candidate's own set with the given name, or nil. The method "set" does not look in the
// manifest Carried, because Carried describes sets that an amend (publish of some sets) takes over unchanged.
func (c *Candidate) set(name string) *Set {
	if i := slices.IndexFunc(c.Sets, func(s Set) bool { return s.Name == name }); i >= 0 {
		return &c.Sets[i]
	}
	return nil
}

// The method "users" returns a hash that identifies the users of one segment or set of the candidate (built but
// unpublished generation), like segments.Manifest.Users. The method "users" returns "" if the candidate itself does not
// have the segment or set.
func (c *Candidate) users(name string) string {
	sum := c.SHA256(name)
	if sum == "" {
		return ""
	}
	return c.contentOf(nil, nil).Users(&segments.Segment{SHA256: sum})
}

// SHA256 returns the SHA-256 of the bitmap of a segment or set, or "" if the candidate (built but unpublished
// generation) itself does not have the segment or set.
func (c *Candidate) SHA256(name string) string {
	if i := slices.Index(c.Names, name); i >= 0 {
		return c.Bitmaps[i].SHA256()
	}
	if s := c.set(name); s != nil {
		return s.Bitmap.SHA256()
	}
	return ""
}

// CandidateOf returns a candidate (built but unpublished generation) with the segments, sets and ids of a generation.
func CandidateOf(g *segments.Generation) *Candidate {
	c := &Candidate{Bitmaps: g.Bitmaps, Scheme: g.Scheme, Dictionary: g.Dictionary, Back: g.Back}
	for _, s := range g.Manifest.Segments {
		c.Names = append(c.Names, s.Name)
	}
	for i, s := range g.Manifest.Sets {
		c.Sets = append(c.Sets, Set{Name: s.Name, Bitmap: g.Sets[i], AsOf: s.AsOf, AmendedAsOf: s.AmendedAsOf,
			Growth: Growth{Said: true, OnlyGrows: s.OnlyGrows, MaxLoss: s.MaxLoss}})
	}
	return c
}

// The method "generation" converts the candidate (built but unpublished generation) to a generation with the given
// manifest. If an amend (a publish of some sets) refers to stored bitmaps or a stored dictionary, the result contains
// nil in their place.
func (c *Candidate) generation(m *segments.Manifest) *segments.Generation {
	g := &segments.Generation{Manifest: m, Bitmaps: c.Bitmaps, Scheme: c.Scheme, Dictionary: c.Dictionary,
		Back: c.Back}
	if c.Carried == nil {
		for _, s := range c.Sets {
			g.Sets = append(g.Sets, s.Bitmap)
		}
		return g
	}
	if c.moved == nil {
		g.Dictionary, g.Back = nil, nil
	}
	g.Bitmaps, g.Sets = make([]*bitmap.Bitmap, len(m.Segments)), make([]*bitmap.Bitmap, len(m.Sets))
	for i, s := range m.Segments {
		g.Bitmaps[i] = c.moved[s.Key]
	}
	for i, s := range m.Sets {
		if g.Sets[i] = c.moved[s.Key]; c.set(s.Name) != nil {
			g.Sets[i] = c.set(s.Name).Bitmap
		}
	}
	return g
}

// SizeBytes returns the total size of the objects that the candidate (built but unpublished generation) holds in memory
// for a publish.
func (c *Candidate) SizeBytes() int64 {
	var sum int64
	for _, b := range c.Bitmaps {
		sum += int64(len(b.Bytes()))
	}
	for _, s := range c.Sets {
		sum += int64(len(s.Bitmap.Bytes()))
	}
	for _, b := range c.moved {
		sum += int64(len(b.Bytes()))
	}
	if c.Carried != nil && c.moved == nil {
		return sum
	}
	if c.Dictionary != nil {
		sum += int64(len(c.Dictionary.Bytes()))
	}
	if c.Back != nil {
		sum += int64(len(c.Back.Bytes()))
	}
	return sum
}

// Overlap describes two segments that have users in common. Each user should be in at most one segment.
type Overlap struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	Users   uint64   `json:"users"`
	Samples []uint32 `json:"sample_ids"` // the lowest numbers of shared users
	// If ids are not dense (32-bit numbers), SampleTexts contains the ids of some shared users, and Samples is empty.
	SampleTexts []string `json:"sample_texts,omitempty"`
}

// SampleText returns the ids of some users who are in both segments, separated by commas.
func (o *Overlap) SampleText() string { return textOf(o.Samples, o.SampleTexts) }

// overlapSamples is the maximum number of users whose ids an Overlap (users in two segments) lists.
const overlapSamples = 5

// The method Overlaps returns every pair of segments that have users in common, and the exact number of these users.
// The pairs of segments are in the order of precedence. Overlaps uses all CPU cores.
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
			o.SampleTexts = c.texts(o.Samples, nil)
			if c.Dictionary != nil {
				o.Samples = nil
			}
			list = append(list, o)
		}
	}
	return list
}

// Resolve removes users who are in several segments of the candidate (built but unpublished generation) from all of
// these segments except the first.
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

// FurtherZones counts the useless memberships in time zone sets: only the first time zone set of a user has an effect.
// A user in three time zone sets therefore counts twice.
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

// LostZones returns an error if too many users would lose their time zone. A service that needs time zones would reject
// a candidate (built but unpublished generation) for which LostZones returns an error.
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
