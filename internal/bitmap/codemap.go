package bitmap

import (
	"math/bits"

	"capper/internal/parallel"
)

// A CodeMap maps every id to a code that names the first of up to 255 bitmaps with this id. A CodeMap is immutable,
// shares no memory with the bitmaps, and is safe for concurrent use. The package comment in doc.go describes the layout
// of a CodeMap and the time of a lookup.
type CodeMap struct {
	blocks []block // index: id>>16; the last block is the highest with an id
	planes []uint64
	sparse []byte
	width  int // planes per block
}

// A block represents 65,536 neighbouring ids of a CodeMap.
type block struct {
	at   uint32 // plane block: index of its first word in planes; sparse block: index of its first byte in sparse
	kind blockKind
	code uint8 // uniform block: the code of all ids of the block
}

const blockSize = 8

type blockKind uint8

const (
	// A uniformBlock is a block in which all ids have the same code. A block in which no id has a code is a
	// uniformBlock with the code 0.
	uniformBlock blockKind = iota
	// A planeBlock is a block that stores `width` bits per code: bit p of the code of the id i is bit i of plane p. The
	// planes are interleaved: for every 64 ids, one 64-bit word of each plane follows the other.
	planeBlock
	// A sparseBlock is a block that begins with 257 16-bit offsets, counted in stored ids. The offsets are the start of
	// each page (range of 256 ids) and the end of the last page. After the offsets, a sparseBlock stores two bytes per
	// id in ascending order: the low byte of the id, and the code.
	sparseBlock
)

const (
	sparseHeader = 257 * 2
	// sparseMax is the maximum number of ids in a sparse block. Because of this limit, a page has at most 32 ids on
	// average, and they fit in one cache line.
	sparseMax = 8192
)

// NewCodeMap returns the CodeMap of up to 255 bitmaps. The code of an id is the index of the first bitmap with this id,
// plus 1. The argument "goroutines" is the maximum number of goroutines that build the CodeMap.
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

// SizeBytes returns the size of the CodeMap in memory, in bytes.
func (m *CodeMap) SizeBytes() int64 {
	return int64(len(m.blocks))*blockSize + int64(len(m.planes))*8 + int64(len(m.sparse))
}

// The method Lookup sets codes[i] to the code of ids[i], or to 0 if no bitmap has this id. The ids may be in any order,
// but Lookup is fastest with ascending ids. len(codes) must be at least len(ids). The method Lookup does not allocate
// memory.
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

// The function "pick" returns the code of one id in a bit-sliced block, from one bit of each plane. A plane contains
// one bit of every code, and each word of a plane is for 64 ids. The words of all planes for these ids are adjacent in
// memory, so pick usually reads one cache line, and rarely two.
func pick(w []uint64, bit uint32) uint8 {
	var code uint64
	for p, x := range w {
		code |= x >> bit & 1 << p
	}
	return uint8(code)
}

// The function pick3 works like pick, but for exactly 3 planes, which encode 4 to 7 segments. The function pick3 has no
// loop, so the compiler inlines it. Inlining halves the time of a lookup. Two calls of pick3 read 6 planes. 6 planes
// encode 32 to 63 segments, which is enough for one segment per usual time zone.
func pick3(w []uint64, bit uint32) uint8 {
	return uint8(w[0]>>bit&1 | w[1]>>bit&1<<1 | w[2]>>bit&1<<2)
}

// lookupSparse returns the code of an id in a sparse block. The method lookupSparse searches the page (range of 256
// ids) of the id, and no other page. The comment at sparseBlock describes the layout of a sparse block.
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
