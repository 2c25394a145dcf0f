package segments

import (
	"fmt"
	"runtime"
	"slices"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
)

// An Insertion is the dictionary of a generation (published version) after an insertion of further users. Each inserted
// user changes the numbers of later users, so an Insertion also converts bitmaps from the old to the new user numbers.
type Insertion struct {
	Dictionary *Dictionary
	// Back converts user numbers of the new dictionary to ids. If one of the two generations has no Back, the field
	// Back is nil.
	Back *Back
	// The field "before" contains, for each inserted user in ascending order, the old number of the next user in the
	// dictionary.
	before []uint32
	behind uint32 // the number of users before the insertion
}

// Insert returns the dictionary of the generation g (published version) with further users from the generation "from".
// The two generations must have the same kind and hash key of ids. The argument "numbers" of Insert contains the
// numbers of the further users in the generation "from", in ascending order. The dictionary of g must not contain the
// further users. Insert makes one pass over the ids. Besides the memory for its result, Insert needs 12 bytes for each
// further user.
func (g *Generation) Insert(from *Generation, numbers []uint32) (*Insertion, error) {
	n := uint64(g.Dictionary.Len()) + uint64(len(numbers))
	if n >= dictionary.Unknown {
		return nil, errTooManyNumbers
	}
	mine, err := g.names()
	if err != nil {
		return nil, err
	}
	theirs, err := from.names()
	if err != nil {
		return nil, err
	}
	names := int64(0)
	if mine != nil && theirs != nil {
		names = int64(len(mine.raw)) + theirs.sizeOf(numbers)
	} else {
		mine, theirs = nil, nil
	}
	w, err := NewNumberWriter(g.Scheme.Kind(), uint32(n), names)
	if err != nil {
		return nil, err
	}
	in := &Insertion{before: make([]uint32, 0, len(numbers)), behind: g.Dictionary.Len()}
	if err := in.write(w, g.Dictionary, entries{of: mine.reader()}, &entries{of: theirs.reader(), numbers: numbers,
		images: dictionary.AppendImages[uint64](nil, from.Dictionary.Dictionary, numbers)}); err != nil {
		return nil, err
	}
	runtime.KeepAlive(g)
	runtime.KeepAlive(from)
	in.Dictionary, in.Back, err = w.Close()
	return in, err
}

// The type "entries" is a list of ids with their images (64-bit numbers that stand for ids), in ascending order of the
// user numbers.
type entries struct {
	of      backReader
	numbers []uint32
	images  []uint64
}

// The method "next" writes the first id of the list to w, and removes this id from the list.
func (e *entries) next(w *NumberWriter) error {
	rest, text := e.of.at(e.numbers[0])
	image := e.images[0]
	e.numbers, e.images = e.numbers[1:], e.images[1:]
	return w.Add(image, rest, text)
}

// The method "write" writes the ids of the dictionary d and the further ids to w, in ascending order of all images
// (64-bit numbers that stand for ids).
func (in *Insertion) write(w *NumberWriter, d *Dictionary, mine entries, further *entries) error {
	for number, image := range d.All() {
		for len(further.images) > 0 && further.images[0] < image {
			in.before = append(in.before, number)
			if err := further.next(w); err != nil {
				return err
			}
		}
		rest, text := mine.of.at(number)
		if err := w.Add(image, rest, text); err != nil { // also an error if an inserted id is the same
			return err
		}
	}
	for len(further.images) > 0 {
		in.before = append(in.before, d.Len())
		if err := further.next(w); err != nil {
			return err
		}
	}
	return nil
}

// The method "number" returns an inserted user's number in the new dictionary. The argument "i" of the method "number"
// is the index of the inserted user in the slice in.before.
func (in *Insertion) number(i int) uint32 { return in.before[i] + uint32(i) }

// Bitmap converts a bitmap from the user numbers before the insertion to the user numbers of the new dictionary.
func (in *Insertion) Bitmap(b *bitmap.Bitmap) *bitmap.Bitmap { return b.Spread(in.before) }

// BitmapBeyond works like Bitmap, but also accepts a bitmap from Generation.RenumberedBy. Such a bitmap may contain
// users whom the generation (published version) lacks. The argument "beyond" of BitmapBeyond contains the numbers of
// all inserted users in the bitmap b, in ascending order.
func (in *Insertion) BitmapBeyond(b *bitmap.Bitmap, beyond []uint32) (*bitmap.Bitmap, error) {
	if _, highest, ok := b.Bounds(); !ok || highest < in.behind {
		return in.Bitmap(b), nil
	}
	numbers := b.IDs()
	end, _ := slices.BinarySearch(numbers, in.behind)
	var users bitmap.Set
	users.AddBitmap(in.Bitmap(bitmap.OfSorted(numbers[:end])))
	for _, number := range numbers[end:] {
		i, ok := slices.BinarySearch(beyond, number)
		if !ok {
			return nil, fmt.Errorf("number %d belongs to no user", number)
		}
		users.Add(in.number(i))
	}
	return users.Bitmap(), nil
}

// Generation returns the generation (published version) with all of its bitmaps converted to the user numbers of the
// new dictionary. A generation with converted bitmaps keeps the old manifest, which still describes the stored bitmaps.
func (in *Insertion) Generation(g *Generation) *Generation {
	n := *g
	n.Dictionary, n.Back, n.lazyBack, n.was, n.by = in.Dictionary, in.Back, nil, g, nil
	n.Bitmaps, n.Sets = eachBitmap(g.Bitmaps, in.Bitmap), eachBitmap(g.Sets, in.Bitmap)
	return &n
}

// The method Only returns a copy of the generation (published version) with the wanted sets, and without segments and
// other sets; see Manifest.Only.
func (g *Generation) Only(wanted func(set string) bool) *Generation {
	part := *g
	part.Manifest, part.Bitmaps, part.Sets = g.Manifest.Only(wanted), nil, nil
	for i, s := range g.Manifest.Sets {
		if wanted(s.Name) {
			part.Sets = append(part.Sets, g.Sets[i])
		}
	}
	return &part
}

// NumbersIn returns, for each user of the dictionary, the number of the same user in another dictionary. The results
// are in the order of the users' numbers in the first dictionary. If the other dictionary lacks the user, the result is
// 2^32-1. Apart from 2^32-1, the returned numbers ascend.
func (d *Dictionary) NumbersIn(other *Dictionary) []uint32 {
	numbers := make([]uint32, d.Len())
	images := make([]uint64, 0, 1024)
	at := 0
	look := func() {
		other.Numbers(images, numbers[at:at+len(images)])
		at, images = at+len(images), images[:0]
	}
	for _, image := range d.All() {
		if images = append(images, image); len(images) == cap(images) {
			look()
		}
	}
	look()
	runtime.KeepAlive(d)
	runtime.KeepAlive(other)
	return numbers
}

// OfNumbers converts a bitmap to other user numbers: to[n] is the new number for n. The new numbers must ascend.
func OfNumbers(b *bitmap.Bitmap, to []uint32) *bitmap.Bitmap {
	numbers := b.IDs()
	for i, number := range numbers {
		numbers[i] = to[number]
	}
	return bitmap.OfSorted(numbers)
}

// NumbersBefore returns the numbers of users before Generation.RenumberedBy changed these numbers. The argument
// "numbers" of NumbersBefore must be in ascending order, and must be numbers of users whom the later dictionary lacks.
func (g *Generation) NumbersBefore(numbers []uint32) (was []uint32) {
	for number, is := range g.by.to {
		if len(was) == len(numbers) {
			break
		}
		if is == numbers[len(was)] {
			was = append(was, uint32(number))
		}
	}
	return was
}

// backReader reads the ids in a Back in ascending order of their user numbers. The zero backReader returns empty ids.
type backReader struct {
	rests *dictionary.Rests
	texts *dictionary.TextReader
}

// The method "reader" returns a reader of the ids in the Back. For a nil Back, the method "reader" returns the zero
// backReader.
func (b *Back) reader() (r backReader) {
	switch {
	case b == nil:
	case b.texts != nil:
		texts := b.texts.Reader()
		r.texts = &texts
	default:
		r.rests = b.rests
	}
	return r
}

// The method "at" returns the data for converting a user's number to the id. For a UUID, the result "rest" is the 64
// bits that the image (64-bit number that stands for the id) lacks. For a text id, the result "text" is the id.
func (r backReader) at(number uint32) (rest uint64, text []byte) {
	switch {
	case r.rests != nil:
		return r.rests.Rest(number), nil
	case r.texts != nil:
		return 0, r.texts.Text(number)
	}
	return 0, nil
}

// sizeOf returns the maximum size of a BackFile (file with the user ids) for the given users. The result of sizeOf is
// above 0.
func (b *Back) sizeOf(numbers []uint32) int64 {
	if b.rests != nil {
		return dictionary.RestsSize(uint32(len(numbers)))
	}
	texts, total := b.texts.Reader(), int64(0)
	for _, number := range numbers {
		total += int64(len(texts.Text(number)))
	}
	return dictionary.TextsSize(uint32(len(numbers)), total)
}

// The method Texts yields the user number and the text of each id in a Back with text ids, in ascending order of the
// numbers.
func (b *Back) Texts(yield func(number uint32, text []byte) bool) {
	texts := b.texts.Reader()
	for number := range b.Len() {
		if !yield(number, texts.Text(number)) {
			return
		}
	}
}

// SameID reports whether a user number in one Back and a user number in another Back belong to the same id. The caller
// of SameID must ensure that both ids have the same kind and the same image (64-bit number that stands for the id).
func (b *Back) SameID(number uint32, other *Back, its uint32) bool {
	rest, text := b.at(number)
	otherRest, otherText := other.at(its)
	return rest == otherRest && slices.Equal(text, otherText)
}
