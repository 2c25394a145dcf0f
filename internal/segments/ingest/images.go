package ingest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/parallel"
	"capper/internal/segments"
	"capper/internal/segments/ingest/format"
)

// An imageList contains the images (64-bit numbers that stand for ids) of the users of one segment or set.
type imageList struct {
	mu     sync.Mutex
	chunks [][]uint64 // in the order of reading
	sorted []uint64   // ascending, each image once; set by sort
}

// chunkImages is the number of images (64-bit numbers that stand for ids) that a worker collects before it locks the
// imageList to add them.
const chunkImages = 1 << 16

func (l *imageList) take(chunk []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chunks = append(l.chunks, chunk)
}

// imageLists is the destination for inputs whose ids are not dense (32-bit integers). An imageLists has one list of
// images (64-bit numbers that stand for ids) or, for a table, one list for each name in the table.
type imageLists struct {
	of     *images
	scheme *ids.Scheme
	names  *names // nil: no table
	lists  []*imageList
}

func (d *imageLists) isTable() bool { return d.names != nil }

func (d *imageLists) newSink() (sink, format.Names) {
	if d.names == nil {
		return &imageSink{to: d, list: d.lists[0]}, nil
	}
	s := &imageTableSink{to: d, nameCache: nameCache{names: d.names, codes: map[string]uint16{}}}
	return s, s
}

func (d *imageLists) addBitmap(*bitmap.Bitmap) error {
	return fmt.Errorf("a bitmap holds only dense ids (32-bit integers), but the location has ids of the kind %s",
		d.scheme.Kind())
}

type imageSink struct {
	to    *imageLists
	list  *imageList
	chunk []uint64
}

func (s *imageSink) add(b *format.Block) {
	s.to.of.keep(b)
	for images := b.Images; len(images) > 0; {
		if s.chunk == nil {
			s.chunk = make([]uint64, 0, chunkImages)
		}
		n := min(len(images), chunkImages-len(s.chunk))
		s.chunk, images = append(s.chunk, images[:n]...), images[n:]
		if len(s.chunk) == chunkImages {
			s.flush()
		}
	}
}

func (s *imageSink) flush() {
	if len(s.chunk) > 0 {
		s.list.take(s.chunk)
	}
	s.chunk = nil
}

// tableChunk is the number of images (64-bit numbers that stand for ids) that a worker collects for one name in a
// table. When a worker has collected as many, it locks the name's imageList to add them. tableChunk is less than
// chunkImages, because a table may have many names.
const tableChunk = 1 << 13

type imageTableSink struct {
	nameCache
	to    *imageLists
	parts splitter[uint64]
}

func (s *imageTableSink) add(b *format.Block) {
	s.to.of.keep(b)
	for code, part := range s.parts.split(b.Images, b.Codes) {
		if len(part) >= tableChunk {
			s.hand(code)
		}
	}
}

func (s *imageTableSink) flush() {
	for code, part := range s.parts {
		if len(part) > 0 {
			s.hand(code)
		}
	}
}

// The method "hand" moves the images (64-bit numbers that stand for ids) that a worker has collected for one name to
// the imageList of this name. All workers share the imageList of a name.
func (s *imageTableSink) hand(code int) {
	s.to.names.mu.Lock()
	list := s.to.lists[code]
	s.to.names.mu.Unlock()
	list.take(slices.Clone(s.parts[code]))
	s.parts[code] = s.parts[code][:0]
}

// The struct "images" collects the ids from all inputs of a build until the ids have user numbers. For dense ids
// (32-bit integers), a build does not use the type images.
type images struct {
	lists []*imageList
	back  *back
	twins *twinFinder
}

// The method "keep" stores the data for converting the images of a block back to ids. The method "keep" also stores
// text ids of the block that may equal other ids except for case or blanks.
func (m *images) keep(b *format.Block) {
	m.back.add(b)
	m.twins.add(b)
}

// newList adds an empty list of images (64-bit numbers that stand for ids) to the build, and returns the list.
func (m *images) newList() *imageList {
	l := &imageList{}
	m.lists = append(m.lists, l)
	return l
}

// The method "sort" sorts the images of a list and drops repeated images, when all inputs have been read.
func (l *imageList) sort() {
	sorted := dictionary.Sort(l.chunks)
	n := len(sorted)
	l.chunks, l.sorted = nil, slices.Compact(sorted)
	if len(l.sorted) < n/2 {
		l.sorted = slices.Clone(l.sorted)
	}
	release(n)
}

// If a list was large, the function "release" immediately returns free memory to the operating system. Without release,
// the Go runtime would keep the free memory until the build had used much more.
func release(images int) {
	if images >= 1<<22 {
		debug.FreeOSMemory()
	}
}

// partBits is the number of upper bits of an image (64-bit number that stands for the id) that choose its part of a
// list. All CPU cores merge the parts of the lists in parallel.
const partBits = 11

// The method "number" returns the dictionary of all ids in the inputs, and the Back, which converts user numbers to
// ids. If the build keeps no ids, the Back is nil.
func (m *images) number(kind ids.Kind) (*segments.Dictionary, *segments.Back, error) {
	if m.back != nil {
		return m.back.number()
	}
	parts := make([][]uint64, 1<<partBits)
	parallel.OnAllCores(len(parts), func(i int) { parts[i] = m.part(uint64(i)) })
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	w, err := newNumberWriter(kind, n, 0)
	if err != nil {
		return nil, nil, err
	}
	for i, part := range parts {
		for _, image := range part {
			if err := w.Add(image, 0, nil); err != nil {
				return nil, nil, err
			}
		}
		parts[i] = nil
	}
	return w.Close()
}

// newNumberWriter works like segments.NewNumberWriter, but returns an error if there are too many ids.
func newNumberWriter(kind ids.Kind, n int, names int64) (*segments.NumberWriter, error) {
	if n >= dictionary.Unknown {
		return nil, fmt.Errorf("the inputs have %d different ids, and at most %d are allowed", n,
			uint32(dictionary.Unknown)-1)
	}
	return segments.NewNumberWriter(kind, uint32(n), names)
}

// The method "part" returns the images (64-bit numbers that stand for ids) from all lists whose upper bits have the
// given value. The images in the result are in ascending order, without duplicates.
func (m *images) part(upper uint64) []uint64 {
	var runs [][]uint64
	for _, l := range m.lists {
		first, _ := slices.BinarySearch(l.sorted, upper<<(64-partBits))
		end := len(l.sorted)
		if upper+1 < 1<<partBits {
			end, _ = slices.BinarySearch(l.sorted, (upper+1)<<(64-partBits))
		}
		if first < end {
			runs = append(runs, l.sorted[first:end])
		}
	}
	for len(runs) > 1 {
		var merged [][]uint64
		for pair := range slices.Chunk(runs, 2) {
			if len(pair) == 2 {
				pair[0] = union(pair[0], pair[1])
			}
			merged = append(merged, pair[0])
		}
		runs = merged
	}
	if len(runs) == 0 {
		return nil
	}
	return runs[0]
}

// The function "union" merges two ascending lists of images (64-bit numbers that stand for ids) into one ascending list
// without repetitions.
func union(a, b []uint64) []uint64 {
	both := make([]uint64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x < y:
			both, a = append(both, x), a[1:]
		case y < x:
			both, b = append(both, y), b[1:]
		default:
			both, a, b = append(both, x), a[1:], b[1:]
		}
	}
	return append(append(both, a...), b...)
}

// The method "numbered" converts a list of images (64-bit numbers that stand for ids) to a bitmap of the dictionary's
// user numbers, and frees the list.
func (l *imageList) numbered(d *segments.Dictionary) *bitmap.Bitmap {
	numbers := make([]uint32, len(l.sorted))
	const piece = 1 << 16
	parallel.OnAllCores((len(numbers)+piece-1)/piece, func(i int) {
		first, end := i*piece, min((i+1)*piece, len(numbers))
		d.Numbers(l.sorted[first:end], numbers[first:end])
	})
	l.sorted = nil
	return bitmap.OfSorted(numbers)
}
