package segments

import (
	"iter"
	"runtime"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
	"capper/internal/ids"
)

// Unify returns two generations of the same kind and key by the numbers of one dictionary, which has the ids of both.
// The manifests stay, and describe the stored bitmaps. Generations that have the same numbers already, such as those of
// dense ids, are returned as they are.
func Unify(a, b *Generation) (ua, ub *Generation, err error) {
	if a.Manifest.SameNumbers(b.Manifest) {
		return a, b, nil
	}
	d, back, err := unite(a, b)
	if err != nil {
		return nil, nil, err
	}
	if ua, err = a.renumberedAs(d, back); err == nil {
		ub, err = b.renumberedAs(d, back)
	}
	return ua, ub, err
}

// renumberedAs is RenumberedBy for a dictionary with all ids of the generation, which the result has.
func (g *Generation) renumberedAs(d *Dictionary, back *Back) (*Generation, error) {
	r, err := NewRenumbering(g.Dictionary, d)
	if err != nil {
		return nil, err
	}
	n := *g
	n.Dictionary, n.Back, n.lazyBack, n.was, n.by = d, back, nil, g, r
	n.Bitmaps, n.Sets = r.bitmaps(g.Bitmaps), r.bitmaps(g.Sets)
	return &n, nil
}

// Original returns the generation before Unify or RenumberedBy.
func (g *Generation) Original() *Generation {
	if g.was != nil {
		return g.was
	}
	return g
}

// unite returns the dictionary of the ids of two generations, with a way back if both have one.
func unite(a, b *Generation) (*Dictionary, *Back, error) {
	n := uint64(b.Dictionary.Len())
	for _, number := range dictionary.Merge(a.Dictionary.Dictionary, b.Dictionary.Dictionary) {
		if number == dictionary.Unknown {
			n++
		}
	}
	if n >= dictionary.Unknown {
		return nil, nil, errTooManyNumbers
	}
	var file buffer
	w, err := dictionary.NewWriter(&file, uint32(n))
	if err != nil {
		return nil, nil, err
	}
	for image := range bothOf(a, b) {
		if err := w.Add(image); err != nil {
			return nil, nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	d, err := NewDictionary(file)
	if err != nil {
		return nil, nil, err
	}
	back, err := uniteBacks(a, b, uint32(n))
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return d, back, err
}

// buffer is a file in memory.
type buffer []byte

// Write implements io.Writer.
func (f *buffer) Write(p []byte) (int, error) {
	*f = append(*f, p...)
	return len(p), nil
}

// place is the number of an image in one of two generations.
type place struct {
	of     *Generation
	number uint32
}

// bothOf yields the images of two generations in ascending order, each once.
func bothOf(a, b *Generation) iter.Seq2[uint64, place] {
	return func(yield func(uint64, place) bool) {
		next, stop := iter.Pull2(b.Dictionary.All())
		defer stop()
		number, image, more := next()
		for aNumber, aImage := range a.Dictionary.All() {
			for more && image < aImage {
				if !yield(image, place{b, number}) {
					return
				}
				number, image, more = next()
			}
			if more && image == aImage {
				number, image, more = next()
			}
			if !yield(aImage, place{a, aNumber}) {
				return
			}
		}
		for ; more; number, image, more = next() {
			if !yield(image, place{b, number}) {
				return
			}
		}
	}
}

// uniteBacks returns the way back of the n users of two generations, or nil if one of the two has none.
func uniteBacks(a, b *Generation, n uint32) (*Back, error) {
	ofA, err := a.names()
	if err != nil {
		return nil, err
	}
	ofB, err := b.names()
	if err != nil || ofA == nil || ofB == nil {
		return nil, err
	}
	of := func(p place) *Back {
		if p.of == a {
			return ofA
		}
		return ofB
	}
	var file buffer
	var add func(p place) error
	var end func() error
	if a.Scheme.Kind() == ids.Text {
		w, err := dictionary.NewTextWriter(&file, n)
		if err != nil {
			return nil, err
		}
		add, end = func(p place) error { return w.Add(of(p).texts.Text(p.number)) }, w.Close
	} else {
		w, err := dictionary.NewRestWriter(&file, n)
		if err != nil {
			return nil, err
		}
		add, end = func(p place) error { return w.Add(of(p).rests.Rest(p.number)) }, w.Close
	}
	for _, p := range bothOf(a, b) {
		if err := add(p); err != nil {
			return nil, err
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	return NewBack(a.Scheme.Kind(), file)
}

// Extended describes bitmaps that RenumberedBy made, together with those of the later generation: the numbers behind
// those of the later generation's dictionary belong to users of the earlier generation alone.
type Extended struct {
	Dictionary *Dictionary // of the users of both
	Back       *Back
	to         []uint32
}

// Extend returns the dictionary of all users that have numbers after earlier.RenumberedBy(later.Dictionary).
func Extend(earlier, later *Generation) (*Extended, error) {
	was := earlier.Original()
	d, back, err := unite(was, later)
	if err != nil {
		return nil, err
	}
	ofLater, err := NewRenumbering(later.Dictionary, d)
	if err != nil {
		return nil, err
	}
	e := &Extended{Dictionary: d, Back: back, to: ofLater.to}
	if earlier.by == nil {
		return e, nil
	}
	ofEarlier, err := NewRenumbering(was.Dictionary, d)
	if err != nil {
		return nil, err
	}
	for number, in := range earlier.by.to {
		if in >= later.Dictionary.Len() { // ascends by one
			e.to = append(e.to, ofEarlier.to[number])
		}
	}
	return e, nil
}

// Bitmap returns the users of a bitmap by the numbers of the dictionary of both.
func (e *Extended) Bitmap(b *bitmap.Bitmap) *bitmap.Bitmap { return (&Renumbering{to: e.to}).Bitmap(b) }
