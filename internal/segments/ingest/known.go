package ingest

import (
	"bytes"
	"slices"

	"capper/internal/dictionary"
	"capper/internal/segments"
)

// WarningsOver returns the result of an amend (publish of some sets) with warnings about the amend's ids and the ids of
// the live generation (published version that current.json names). The warnings are about ids that have the same image
// (64-bit number that stands for the id), and about twins (text ids that differ only in case or blanks). WarningsOver
// needs the Back (conversion of user numbers to ids) of the argument "live" to compare the ids. If the argument "live"
// has no Back, the warnings cover only two cases: ids of the input files that share an image, and twins whose plain
// form is an id. The argument "live" of WarningsOver has a Back if the amend has new ids and the location stores a
// BackFile (file with the user ids).
func (r *Result) WarningsOver(live *segments.Generation) *Result {
	own := r.Candidate
	if live == nil || live.Dictionary == nil || own.Dictionary == nil {
		return r
	}
	over := *r
	twins := newTwinFinder(own.Scheme)
	twins.odd = slices.Clone(r.odd)
	if live.Back != nil && own.Back != nil {
		over.addShared(live)
		if twins.scheme != nil {
			twins.addRelated(live.Back, own.Dictionary)
		}
	}
	over.Twins = twins.find(own.Dictionary, live.Dictionary)
	return &over
}

// addShared adds pairs of ids with the same image (64-bit number that stands for the id) to the result. One id of a
// pair is in the input files, and a different id is in the live generation (published version that current.json names).
func (r *Result) addShared(live *segments.Generation) {
	own := r.Candidate
	r.Shared = r.Shared[:len(r.Shared):len(r.Shared)]
	name := func(g *segments.Generation, number uint32) string { return string(g.RenumberedName(nil, number)) }
	files := &segments.Generation{Scheme: own.Scheme, Dictionary: own.Dictionary, Back: own.Back}
	for number, is := range own.Dictionary.NumbersIn(live.Dictionary) {
		if is == dictionary.Unknown || own.Back.SameID(uint32(number), live.Back, is) {
			continue
		}
		if r.SharedCount++; len(r.Shared) < sharedSamples {
			r.Shared = append(r.Shared, SharedImage{name(live, is), name(files, uint32(number))})
		}
	}
}

// addRelated collects texts in a Back that are twins of ids in the input files: the texts differ from these ids only in
// case or blanks. A text is a twin if its plain form (lower case, without blanks around it) is an id in the files, or
// equals the plain form of such an id.
func (f *twinFinder) addRelated(back *segments.Back, files *segments.Dictionary) {
	plainForms := map[uint64]bool{}
	for _, one := range f.odd {
		plainForms[one.plain] = true
	}
	for _, text := range back.Texts {
		if isPlain(text) {
			continue
		}
		one, ok := f.oddOf(text)
		if !ok {
			continue
		}
		if _, known := files.Number(one.plain); known || plainForms[one.plain] {
			f.odd = append(f.odd, one)
		}
	}
}

// oddOf returns an oddText and true if a text id differs from its plain form (lower case, without blanks around the
// id). For a text id in the plain form, oddOf returns false.
func (f *twinFinder) oddOf(text []byte) (oddText, bool) {
	plain, err := f.scheme.Parse(bytes.ToLower(bytes.TrimSpace(text)))
	if err != nil {
		return oddText{}, false
	}
	image, err := f.scheme.Parse(text)
	if err != nil || plain == image {
		return oddText{}, false
	}
	return oddText{plain, image, string(text)}, true
}
