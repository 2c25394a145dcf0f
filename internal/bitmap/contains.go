package bitmap

import (
	"encoding/binary"
	"sort"
)

// Contains reports whether id is in the set. It does not allocate.
func (b *Bitmap) Contains(id uint32) bool {
	p := b.place(id >> 16)
	return p.has(b.raw, uint16(id)) == 1
}

// Mark sets marks[i] to mark where ids[i] is in the set and marks[i] is 0. Any order
// of ids is right, ascending is fastest. marks must be at least as long as ids. It does
// not allocate.
func (b *Bitmap) Mark(ids []uint32, marks []uint8, mark uint8) {
	marks = marks[:len(ids)]
	var p place
	key := ^uint32(0)
	for i, id := range ids {
		if next := id >> 16; next != key {
			p, key = b.place(next), next
		}
		// No branch hangs on the answer: it would be predicted wrongly, and the reads for
		// the ids that follow would wait for it.
		m := marks[i]
		marks[i] = m | mark&-(p.has(b.raw, uint16(id))&isZero(m))
	}
}

func isZero(m uint8) uint8 { return uint8((uint32(m) - 1) >> 31) }

// place is where a container is in the bytes of its bitmap, in 8 bytes, so that those of
// all containers stay in a cache. The zero value is that of a key without one.
type place struct {
	at   uint32
	n    uint16 // ids of an array, runs of runs
	kind placeKind
}

// placeSize is the memory of a place.
const placeSize = 8

type placeKind uint8

const (
	noPlace placeKind = iota
	arrayPlace
	bitmapPlace
	runPlace
)

// denseSpan is how many keys of the table there may be for each container.
const denseSpan = 8

// tableOf are the places by key, from the lowest key on; nil where the keys are so far
// apart that they are searched instead.
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

// place finds the container of a key.
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

// container finds the container of a key, nil when there is none.
func (b *Bitmap) container(key uint16) *container {
	i := sort.Search(len(b.containers), func(i int) bool { return b.containers[i].key >= key })
	if i == len(b.containers) || b.containers[i].key != key {
		return nil
	}
	return &b.containers[i]
}

// has is 1 where the container holds the id with this lower half, else 0.
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

// window is how many neighbours of an array are compared at once, in words of four.
const window = 32

// arrayHas searches an array. Ids that are spread evenly are where their share of the
// container says, give or take the square root of their number; and a second guess, from
// what is at the first, hits a window of 32. Elsewhere the window shows that it is
// the wrong one, and a search by halves follows.
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

// at is the i-th lower half of an array.
func at(data []byte, i int) uint16 { return binary.LittleEndian.Uint16(data[2*i:]) }

// scanWindow looks for a lower half in a window, four at a time: in what differs of two
// words, a lane of 16 bits is 0 where they are equal. Written out it takes half of the time.
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

// The lowest and the highest bit of each lane of 16 bits.
const (
	ones  = 0x0001_0001_0001_0001
	highs = 0x8000_8000_8000_8000
)

// scan looks for a lower half in a short array.
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

// halves searches an array by halving it, down to a window.
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

// runsHave searches runs for the last that begins at low or before.
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

// atMost is all ones where a <= b, else 0, without a branch.
func atMost(a, b uint16) int { return (int(a) - int(b) - 1) >> 63 }
