package bitmap

import (
	"encoding/binary"
	"sort"
)

// Contains reports whether the id is in the set. Contains does not allocate memory.
func (b *Bitmap) Contains(id uint32) bool {
	p := b.place(id >> 16)
	return p.has(b.raw, uint16(id)) == 1
}

// The method Mark sets marks[i] to the argument "mark" if the bitmap contains ids[i] and marks[i] is 0. The ids may be
// in any order, but Mark is fastest with ascending ids. The slice marks must be at least as long as ids. The method
// Mark does not allocate memory.
func (b *Bitmap) Mark(ids []uint32, marks []uint8, mark uint8) {
	marks = marks[:len(ids)]
	var p place
	key := ^uint32(0)
	for i, id := range ids {
		if next := id >> 16; next != key {
			p, key = b.place(next), next
		}
		// No branch of the loop depends on the result. The processor would often predict such a branch wrongly, and
		// delay the reads for the next ids.
		m := marks[i]
		marks[i] = m | mark&-(p.has(b.raw, uint16(id))&isZero(m))
	}
}

func isZero(m uint8) uint8 { return uint8((uint32(m) - 1) >> 31) }

// A place is the position and the form of a container in the encoded bytes of a bitmap. A place takes 8 bytes, so that
// the places of all containers of a bitmap fit in the processor's cache. If the bitmap has no container with the
// searched key, all fields of the place are 0.
type place struct {
	at   uint32
	n    uint16 // number of ids in an array container, or of runs in a run container
	kind placeKind
}

// placeSize is the size of a place in memory, in bytes.
const placeSize = 8

type placeKind uint8

const (
	noPlace placeKind = iota
	arrayPlace
	bitmapPlace
	runPlace
)

// denseSpan is the maximum number of entries per container in the table that maps container keys to places (positions
// in the encoded bytes). If the table of a bitmap would be larger, the bitmap has no table.
const denseSpan = 8

// tableOf returns a table that maps container keys, from the lowest key on, to the places of the containers. The
// function tableOf returns nil if the keys are so far apart that a binary search is better than a table.
func tableOf(list []container) []place {
	if len(list) == 0 {
		return nil
	}
	lowest, highest := int(list[0].key), int(list[len(list)-1].key)
	if highest-lowest >= denseSpan*len(list) {
		return nil
	}
	table := make([]place, highest-lowest+1)
	for i := range list {
		table[int(list[i].key)-lowest] = list[i].place()
	}
	return table
}

func (c *container) place() place {
	p := place{at: c.at}
	switch c.kind {
	case arrayKind:
		p.n, p.kind = uint16(c.card), arrayPlace
	case bitmapKind:
		p.kind = bitmapPlace
	default:
		p.at, p.n, p.kind = p.at+2, uint16(c.runs), runPlace
	}
	return p
}

// The method "place" returns the position and the form of the container with the given key in the encoded bytes of the
// bitmap.
func (b *Bitmap) place(key uint32) place {
	if len(b.table) > 0 {
		if at := key - uint32(b.containers[0].key); at < uint32(len(b.table)) {
			return b.table[at]
		}
		return place{}
	}
	if c := b.container(uint16(key)); c != nil {
		return c.place()
	}
	return place{}
}

// The method "container" returns the container with the given key, or nil if the bitmap has no such container.
func (b *Bitmap) container(key uint16) *container {
	i := sort.Search(len(b.containers), func(i int) bool { return b.containers[i].key >= key })
	if i == len(b.containers) || b.containers[i].key != key {
		return nil
	}
	return &b.containers[i]
}

// The method "has" returns 1 if the container has an id, and otherwise 0. The argument "low" is the lower 16 bits of
// the id.
func (p place) has(raw []byte, low uint16) uint8 {
	switch p.kind {
	case bitmapPlace:
		return raw[int(p.at)+int(low>>3)] >> (low & 7) & 1
	case arrayPlace:
		return arrayHas(raw[p.at:int(p.at)+2*int(p.n)], low)
	case runPlace:
		return runsHave(raw[p.at:int(p.at)+4*int(p.n)], low)
	}
	return 0
}

// The constant "window" is the number of neighbouring array elements that scanWindow compares with an id.
const window = 32

// arrayHas searches an array container for an id. First, arrayHas estimates the position from the id's value. If the
// ids are evenly spread, the error of the first estimate is about the square root of the number of ids. From the
// element at the estimated position, arrayHas computes a second estimate. If the ids are evenly spread, the second
// estimate is close enough: the id must be among the 32 elements around it. If the ids are spread unevenly, the id may
// be elsewhere, so arrayHas then makes a binary search.
func arrayHas(data []byte, low uint16) uint8 {
	n := len(data) / 2
	if n <= window {
		return scan(data, low)
	}
	guess := int(low) * n >> 16
	guess += (int(low) - int(at(data, guess))) * n >> 16
	from := min(max(guess-window/2, 0), n-window)
	part := data[2*from : 2*from+2*window]
	if at(part, 0) > low && from > 0 || at(part, window-1) < low && from < n-window {
		return halves(data, low)
	}
	return scanWindow((*[2 * window]byte)(part), low)
}

// The function "at" returns one element of an encoded array container: the lower 16 bits of the id with the index i.
func at(data []byte, i int) uint16 { return binary.LittleEndian.Uint16(data[2*i:]) }

// scanWindow searches 32 neighbouring elements of an array container for the lower 16 bits of an id, four elements at a
// time. If two elements are equal, their 16 bits in the XOR of the two words are 0. Unrolling the loop halves the time
// of scanWindow.
func scanWindow(data *[2 * window]byte, low uint16) uint8 {
	all := uint64(low) * ones
	w0, w1 := binary.LittleEndian.Uint64(data[0:])^all, binary.LittleEndian.Uint64(data[8:])^all
	w2, w3 := binary.LittleEndian.Uint64(data[16:])^all, binary.LittleEndian.Uint64(data[24:])^all
	w4, w5 := binary.LittleEndian.Uint64(data[32:])^all, binary.LittleEndian.Uint64(data[40:])^all
	w6, w7 := binary.LittleEndian.Uint64(data[48:])^all, binary.LittleEndian.Uint64(data[56:])^all
	zero := (w0-ones)&^w0 | (w1-ones)&^w1 | (w2-ones)&^w2 | (w3-ones)&^w3 |
		(w4-ones)&^w4 | (w5-ones)&^w5 | (w6-ones)&^w6 | (w7-ones)&^w7
	zero &= highs
	return uint8((zero | -zero) >> 63)
}

// The constant "ones" is a mask for the lowest bit of each 16-bit lane of a word. The constant "highs" is a mask for
// the highest bit of each lane.
const (
	ones  = 0x0001_0001_0001_0001
	highs = 0x8000_8000_8000_8000
)

// The function "scan" searches a short array container for the lower 16 bits of an id, element by element.
func scan(data []byte, low uint16) uint8 {
	all, zero := uint64(low)*ones, uint64(0)
	for ; len(data) >= 8; data = data[8:] {
		x := binary.LittleEndian.Uint64(data) ^ all
		zero |= (x - ones) &^ x
	}
	for ; len(data) >= 2; data = data[2:] {
		x := uint64(binary.LittleEndian.Uint16(data) ^ low)
		zero |= (x - 1) &^ x << 48
	}
	zero &= highs
	return uint8((zero | -zero) >> 63)
}

// The function "halves" selects 32 elements of an array container by binary search, and then calls scanWindow to find
// the id among these elements.
func halves(data []byte, low uint16) uint8 {
	from, n := 0, len(data)/2
	for n > window {
		half := n / 2
		from += half & atMost(at(data, from+half), low)
		n -= half
	}
	from = min(from, len(data)/2-window)
	return scanWindow((*[2 * window]byte)(data[2*from:]), low)
}

// runsHave returns 1 if a run container has an id, and otherwise 0. The argument "low" of runsHave is the lower 16 bits
// of the id. The function runsHave looks at a single run: the last one that begins at or below "low".
func runsHave(runs []byte, low uint16) uint8 {
	from := 0
	for n := len(runs) / 4; n > 1; {
		half := n / 2
		from += half & atMost(at(runs, 2*(from+half)), low)
		n -= half
	}
	start, length := at(runs, 2*from), at(runs, 2*from+1)
	return uint8(atMost(start, low)&1) & uint8(atMost(low-start, length)&1)
}

// atMost compares two numbers without a branch. If a <= b, atMost returns an integer with all bits set, and otherwise
// 0.
func atMost(a, b uint16) int { return (int(a) - int(b) - 1) >> 63 }
