package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
	"capper/internal/objects"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// The method Over prepares an amend (a publish of some sets). Over converts the candidate (built but unpublished
// generation) and the live state "base" to the user numbers of one dictionary. The argument "base" of Over must come
// from ReadForAmend. For dense ids (32-bit integers), Over returns the candidate and base unchanged.
//
// If the live dictionary has all ids of the candidate, the result refers to the stored dictionary and BackFile (file
// with the user ids). If the live dictionary lacks ids of the candidate, the result has a new dictionary with all ids,
// and all bitmaps have the user numbers of the new dictionary. If the amend removes users from a set, the ids of these
// users remain in the dictionary until the next build.
func (c *Candidate) Over(base *LiveState) (*Candidate, *LiveState, error) {
	if err := c.checkIDs(base); err != nil {
		return nil, nil, err
	}
	if c.Dictionary == nil || base.Generation == nil {
		return c, base, nil
	}
	over, by := *c, *base
	over.Dictionary, over.Back, over.Carried = base.Generation.Dictionary, nil, base.manifest
	over.named = base.Generation
	numbers := c.Dictionary.NumbersIn(over.Dictionary)
	if slices.Contains(numbers, dictionary.Unknown) {
		if err := over.insert(c, base, &by, numbers); err != nil {
			return nil, nil, err
		}
		numbers = c.Dictionary.NumbersIn(over.Dictionary)
	}
	by.numbering = over.Dictionary
	over.Sets = slices.Clone(c.Sets)
	parallel.OnAllCores(len(over.Sets), func(i int) {
		over.Sets[i].Bitmap = segments.OfNumbers(c.Sets[i].Bitmap, numbers)
	})
	return &over, &by, nil
}

// The method "insert" converts the live state to the user numbers of a dictionary that also has the new ids of the
// candidate "from". If a user has the number i in "from", numbers[i] is the number of this user in the live dictionary.
func (c *Candidate) insert(from *Candidate, base, by *LiveState, numbers []uint32) error {
	if base.whole == nil {
		return errors.New(
			"the command amend must read all published bitmaps before it adds new user ids")
	}
	var further []uint32
	for number, in := range numbers {
		if in == dictionary.Unknown {
			further = append(further, uint32(number))
		}
	}
	in, err := base.whole.Insert(&segments.Generation{Scheme: from.Scheme, Dictionary: from.Dictionary,
		Back: from.Back}, further)
	if err != nil {
		return err
	}
	all := in.Generation(base.whole)
	c.Dictionary, c.Back, c.named = in.Dictionary, in.Back, nil
	c.Carried, c.moved = describe(all)
	by.whole, by.Generation = nil, all.Only(base.part)
	return nil
}

// ReleaseNames frees the memory of the Back (conversion of user numbers to ids) if ReadForAmend has read the whole live
// generation (published version that current.json names). A later read of the live generation also reads the BackFile
// (file with the user ids) again.
func (s *LiveState) ReleaseNames() {
	if s.whole != nil {
		s.whole.Back, s.Generation.Back = nil, nil
	}
}

// The function "describe" returns a manifest for a generation (published version) whose bitmaps were converted to other
// user numbers, and these bitmaps by their object keys. The returned manifest describes the converted bitmaps, but
// keeps the name of the generation. The function "describe" hashes the bitmaps on all CPU cores.
func describe(g *segments.Generation) (*segments.Manifest, map[string]*bitmap.Bitmap) {
	m := *g.Manifest
	m.Segments, m.Sets = slices.Clone(m.Segments), slices.Clone(m.Sets)
	entries, bitmaps := m.Entries(), slices.Concat(g.Bitmaps, g.Sets)
	parallel.OnAllCores(len(entries), func(i int) { *entries[i] = segments.Describe(entries[i].Name, bitmaps[i]) })
	byKey := map[string]*bitmap.Bitmap{}
	for i, s := range entries {
		byKey[s.Key] = bitmaps[i]
	}
	m.IDs = segments.DescribeIDs(g.Scheme, g.Dictionary, g.Back)
	return &m, byKey
}

// numberedAs returns a copy of the candidate c with the dictionary of the candidate "amend". The copy also has the
// content that "amend" takes over from the live generation (published version that current.json names).
func (c *Candidate) numberedAs(amend *Candidate) *Candidate {
	next := *c
	next.Scheme, next.Dictionary, next.Back, next.named = amend.Scheme, amend.Dictionary, amend.Back, amend.named
	next.Carried, next.moved = amend.Carried, amend.moved
	return &next
}

// withUsersOf adds users whom the build's sets take over from the live state "base" to the dictionary of the build. A
// set of the build can therefore keep users whom an amend (publish of some sets) added, although no input file of the
// build contains their ids. The bitmaps of the argument "base" must have the user numbers of the build's dictionary.
// The bitmaps in the returned LiveState have the user numbers of the dictionary with the added users.
func (c *Candidate) withUsersOf(base *LiveState) (*Candidate, *LiveState, error) {
	beyond := c.numbersBeyond()
	if len(beyond) == 0 {
		return c, base, nil
	}
	was := base.Generation.Original()
	in, err := (&segments.Generation{Scheme: c.Scheme, Dictionary: c.Dictionary, Back: c.Back}).Insert(was,
		base.Generation.NumbersBefore(beyond))
	if err != nil {
		return nil, nil, fmt.Errorf("keep amended users: %w", err)
	}
	next, by := *c, *base
	next.Dictionary, next.Back = in.Dictionary, in.Back
	next.Bitmaps, next.Sets = slices.Clone(c.Bitmaps), slices.Clone(c.Sets)
	faults := make([]error, len(c.Bitmaps)+len(c.Sets))
	parallel.OnAllCores(len(faults), func(i int) {
		if i < len(c.Bitmaps) {
			next.Bitmaps[i], faults[i] = in.BitmapBeyond(c.Bitmaps[i], beyond)
			return
		}
		of := &next.Sets[i-len(c.Bitmaps)]
		of.Bitmap, faults[i] = in.BitmapBeyond(of.Bitmap, beyond)
	})
	by.numbering = next.Dictionary
	by.Generation, err = was.RenumberedBy(next.Dictionary)
	return &next, &by, errors.Join(append(faults, err)...)
}

// numbersBeyond returns the user numbers in the candidate's sets that the candidate's dictionary lacks, in ascending
// order.
func (c *Candidate) numbersBeyond() (list []uint32) {
	if c.Dictionary == nil {
		return nil
	}
	for _, s := range c.Sets {
		if _, highest, ok := s.Bitmap.Bounds(); !ok || highest < c.Dictionary.Len() {
			continue
		}
		numbers := s.Bitmap.IDs()
		first, _ := slices.BinarySearch(numbers, c.Dictionary.Len())
		list = append(list, numbers[first:]...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// amendsBetween reports whether all publishes from one generation (published version) to a later one were amends
// (publishes of some sets). An amend with new ids changes user numbers; amendsBetween therefore compares the users of
// both generations after such an amend. amendsBetween does not read bitmaps that a generation in the list "known" has
// in memory.
func amendsBetween(ctx context.Context, at objects.Source, before, now *segments.Manifest,
	known ...*segments.Generation) (bool, error) {
	if before.SameNumbers(now) {
		return amendsAlone(before, now), nil
	}
	if !before.SameIDs(now) || !sameSizes(before.Segments, now.Segments) {
		return false, nil
	}
	var both [2]*segments.Generation
	for i, m := range []*segments.Manifest{before, now} {
		g, err := m.ReadNumbersOver(ctx, at, pick(known, m))
		if err != nil {
			return false, err
		}
		both[i] = g
	}
	by, err := both[0].RenumberedBy(both[1].Dictionary)
	if err != nil {
		return false, err
	}
	by.Dictionary = both[1].Dictionary
	same, _ := describe(by)
	return amendsAlone(same, now), nil
}

// The function "pick" returns the generation (published version) in the list with the same name as the manifest m, or
// nil.
func pick(list []*segments.Generation, m *segments.Manifest) *segments.Generation {
	for _, g := range list {
		if g != nil && g.Manifest.Generation == m.Generation {
			return g
		}
	}
	return nil
}

// sameSizes reports whether two lists of segments have the same names and the same user counts.
func sameSizes(a, b []segments.Segment) bool {
	return slices.EqualFunc(a, b, func(a, b segments.Segment) bool {
		return a.Name == b.Name && a.Cardinality == b.Cardinality
	})
}
