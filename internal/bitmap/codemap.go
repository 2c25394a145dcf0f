package bitmap

import (
	"math/bits"

	"capper/internal/parallel"
)

// CodeMap says of every id which of up to 255 bitmaps is the first that holds it.
// It is immutable, aliases none of them, and is safe for concurrent use. doc.go
// says how it is laid out and what it costs.
type CodeMap struct {
	blocks []block // by id>>16, up to the highest block that holds an id
	planes []uint64
	sparse []byte
	width  int // planes per block
}

// block is 65,536 neighbouring ids of a CodeMap.
type block struct {
	at   uint32 // plane block: index of its first word in planes; sparse block: of its first byte in sparse
	kind blockKind
	code uint8 // uniform block: the code of all its ids
}

const blockSize = 8

type blockKind uint8

const (
	// uniformBlock: all ids have one code; an empty block is uniform with code 0.
	uniformBlock blockKind = iota
	// planeBlock: a code has `width` bits, bit p of the code of id i is bit i of
	// plane p; the planes are interleaved by words of 64 ids.
	planeBlock
	// sparseBlock: 257 16-bit numbers, where each page of 256 ids starts and the
	// last ends, in users; then per user, ascending, the low byte of the id and the code.
	sparseBlock
)

const (
	sparseHeader = 257 * 2
	// sparseMax keeps pages short: 32 users on average, which is one cache line.
	sparseMax = 8192
)

// NewCodeMap lays up to 255 bitmaps over each other: the code of an id is the index
// of the first bitmap that holds it, plus 1. It uses at most that many goroutines.
func NewCodeMap(goroutines int, bitmaps []*Bitmap) *CodeMap {
	m := &CodeMap{width: bits.Len(uint(len(bitmaps)))}
	m.layOut(bitmaps)
	parallel.AtMost(goroutines, len(m.blocks), func(key int) {
		c := m.blocks[key]
		switch c.kind {
		case planeBlock:
			m.fillPlanes(m.planes[c.at:int(c.at)+containerWords*m.width], gather(bitmaps, key))
		case sparseBlock:
			m.fillSparse(m.sparse[c.at:], gather(bitmaps, key))
		}
	})
	return m
}

// SizeBytes is the memory that the map takes.
func (m *CodeMap) SizeBytes() int64 {
	return int64(len(m.blocks))*blockSize + int64(len(m.planes))*8 + int64(len(m.sparse))
}

// Lookup sets codes[i] to the code of ids[i], 0 where no bitmap holds it. Any order
// of ids is right, ascending is fastest. codes must be at least as long as ids. It
// does not allocate.
func (m *CodeMap) Lookup(ids []uint32, codes []uint8) {
	codes = codes[:len(ids)]
	blocks, planes, width := m.blocks, m.planes, m.width
	for i, id := range ids {
		key := id >> 16
		if int(key) >= len(blocks) {
			codes[i] = 0
			continue
		}
		c := blocks[key]
		switch c.kind {
		case uniformBlock:
			codes[i] = c.code
		case planeBlock:
			at := int(c.at) + int(id>>6&(containerWords-1))*width
			switch width {
			case 3:
				codes[i] = pick3(planes[at:at+3:at+3], id&63)
			case 6:
				codes[i] = pick3(planes[at:at+3:at+3], id&63) | pick3(planes[at+3:at+6:at+6], id&63)<<3
			default:
				codes[i] = pick(planes[at:at+width], id&63)
			}
		default:
			codes[i] = m.lookupSparse(int(c.at), id)
		}
	}
}

// pick gathers one bit of each plane. The planes' words of the same 64 ids
// stand side by side, so this touches one cache line, seldom two.
func pick(w []uint64, bit uint32) uint8 {
	var code uint64
	for p, x := range w {
		code |= x >> bit & 1 << p
	}
	return uint8(code)
}

// pick3 is pick for 3 planes, which 4 to 7 segments take: written out, the
// compiler inlines it, which halves the time of a lookup. Twice it is for 32 to 63, as
// many as there are time zones.
func pick3(w []uint64, bit uint32) uint8 {
	return uint8(w[0]>>bit&1 | w[1]>>bit&1<<1 | w[2]>>bit&1<<2)
}

// lookupSparse searches the page of the id, its 256 neighbours: see sparseBlock.
func (m *CodeMap) lookupSparse(at int, id uint32) uint8 {
	page := at + 2*int(id>>8&0xff)
	from, to := m.starts(page), m.starts(page+2)
	users := at + sparseHeader
	low := byte(id)
	for i := from; i < to; i++ {
		if got := m.sparse[users+2*i]; got >= low {
			if got == low {
				return m.sparse[users+2*i+1]
			}
			return 0
		}
	}
	return 0
}

func (m *CodeMap) starts(at int) int { return int(m.sparse[at]) | int(m.sparse[at+1])<<8 }
