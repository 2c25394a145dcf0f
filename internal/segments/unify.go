package segments

import (
	"cmp"
	"iter"
	"runtime"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
)

// Unify converts the bitmaps of two generations (published versions) to the user numbers of one dictionary, which has
// all ids of both generations. The two generations must have the same kind and hash key of ids. Unify does not change
// the manifests of the two generations: the manifests still describe the stored bitmaps. If the two generations already
// have the same user numbers, for example with dense ids (32-bit integers), Unify returns both unchanged.
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

// renumberedAs works like RenumberedBy, but for a dictionary that contains all ids of the generation (published
// version). The given dictionary is also the dictionary of the returned generation.
func (g *Generation) renumberedAs(d *Dictionary, back *Back) (*Generation, error) {
	r, err := NewRenumbering(g.Dictionary, d)
	if err != nil {
		return nil, err
	}
	n := *g
	n.Dictionary, n.Back, n.lazyBack, n.was, n.by = d, back, nil, g, r
	n.Bitmaps, n.Sets = eachBitmap(g.Bitmaps, r.Bitmap), eachBitmap(g.Sets, r.Bitmap)
	return &n, nil
}

// Original returns the generation (published version) with its original bitmaps, which Unify or RenumberedBy has
// converted. If the bitmaps were not converted, Original returns the generation itself.
func (g *Generation) Original() *Generation {
	return cmp.Or(g.was, g)
}

// The function "unite" returns a dictionary of the ids of two generations (published versions). If both generations
// have a Back (conversion of user numbers to ids), "unite" also returns a Back.
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
	ofA, err := a.names()
	if err != nil {
		return nil, nil, err
	}
	ofB, err := b.names()
	if err != nil {
		return nil, nil, err
	}
	names := int64(0)
	if ofA != nil && ofB != nil {
		names = int64(len(ofA.raw) + len(ofB.raw))
	}
	w, err := NewNumberWriter(a.Scheme.Kind(), uint32(n), names)
	if err != nil {
		return nil, nil, err
	}
	for image, p := range bothOf(a, b) {
		var rest uint64
		var text []byte
		switch {
		case names == 0:
		case p.of == a:
			rest, text = ofA.at(p.number)
		default:
			rest, text = ofB.at(p.number)
		}
		if err := w.Add(image, rest, text); err != nil {
			return nil, nil, err
		}
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return w.Close()
}

// A place is the generation (published version) and the user number of an image (64-bit number that stands for an id)
// that bothOf found.
type place struct {
	of     *Generation
	number uint32
}

// bothOf yields the images (64-bit numbers that stand for ids) in the dictionaries of two generations (published
// versions) in ascending order, each once.
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

// An Extended is a dictionary with the users of two generations (published versions): an earlier generation after
// RenumberedBy, and a later generation.
type Extended struct {
	Dictionary *Dictionary // of the users of both generations
	Back       *Back
	to         []uint32
}

// Extend returns an Extended with the users of both generations (published versions). The argument "earlier" of Extend
// may be a result of RenumberedBy(later.Dictionary), whose bitmaps have further numbers for users whom the later
// generation lacks.
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

// The method Bitmap converts a bitmap of the later generation (published version) to the user numbers of the common
// dictionary. The method Bitmap also converts bitmaps of the earlier generation after RenumberedBy.
func (e *Extended) Bitmap(b *bitmap.Bitmap) *bitmap.Bitmap { return (&Renumbering{to: e.to}).Bitmap(b) }
