package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// An Encoded contains the ids of one block (65,536 neighbouring ids) in the compressed form of a Bitmap. The zero
// Encoded contains no id.
type Encoded struct{ of container }

// Encode returns the ids of the set w in the compressed form of a Bitmap. The argument "key" of Encode is the upper 16
// bits of the ids.
func (w *Words) Encode(key int) Encoded { return Encoded{encodeContainer(uint16(key), &w.bits)} }

// The function Join returns the bitmap with the ids of the given blocks. The elements of the argument "blocks" must be
// in ascending order of the blocks' keys (upper 16 bits of the ids). The function Join leaves out blocks without ids.
func Join(blocks []Encoded) *Bitmap {
	list := make([]container, 0, len(blocks))
	for _, b := range blocks {
		if b.of.card > 0 {
			list = append(list, b.of)
		}
	}
	return assemble(list)
}

// Blocks returns the number of blocks (65,536 neighbouring ids each) up to the bitmap's highest id. For an empty
// bitmap, Blocks returns 0.
func (b *Bitmap) Blocks() int { return keys([]*Bitmap{b}) }

// Load sets w to those ids of the bitmap whose upper 16 bits equal key. Load reports whether the bitmap has none, some
// or all of the 65,536 ids with this key. Load changes w only if it returns Some.
func (b *Bitmap) Load(key int, w *Words) Extent {
	c := b.container(uint16(key))
	if c == nil {
		return Nothing
	}
	extent := extentOf(c.card)
	if extent == Some {
		c.loadInto(&w.bits)
	}
	return extent
}

// Add adds to the set w those ids of the bitmap whose upper 16 bits equal key.
func (b *Bitmap) Add(key int, w *Words) {
	if c := b.container(uint16(key)); c != nil {
		c.addTo(&w.bits)
	}
}

// loadInto sets w to the container's ids.
func (c *container) loadInto(w *words) {
	if c.kind != bitmapKind {
		clear(w[:])
		c.addTo(w)
		return
	}
	data := c.data[:bitmapBytes]
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
}

// CountIn counts the ids that are in both the set w and the bitmap. The argument "key" of CountIn is the upper 16 bits
// of the ids in w.
func (b *Bitmap) CountIn(key int, w *Words) (n int) {
	c := b.container(uint16(key))
	switch {
	case c == nil:
		return 0
	case c.card == containerIDs:
		return w.Count()
	case c.kind == arrayKind:
		for data := c.data; len(data) >= 2; data = data[2:] {
			v := binary.LittleEndian.Uint16(data)
			n += int(w.bits[v>>6] >> (v & 63) & 1)
		}
	case c.kind == bitmapKind:
		data := c.data[:bitmapBytes]
		for i, x := range w.bits {
			n += bits.OnesCount64(x & binary.LittleEndian.Uint64(data[8*i:]))
		}
	default:
		var v words
		c.addTo(&v)
		for i, x := range w.bits {
			n += bits.OnesCount64(x & v[i])
		}
	}
	return n
}

// Blocks returns the number of blocks (65,536 neighbouring ids each) up to the highest id with a code in the CodeMap.
func (m *CodeMap) Blocks() int { return len(m.blocks) }

// Code returns the code of one id (index of the first bitmap with this id, plus 1).
func (m *CodeMap) Code(id uint32) uint8 {
	var codes [1]uint8
	m.Lookup([]uint32{id}, codes[:])
	return codes[0]
}

// The method "block" returns the CodeMap's block of the ids whose upper 16 bits equal key. If the CodeMap ends before
// this block, the method "block" returns a block in which no id has a code.
func (m *CodeMap) block(key int) block {
	if key < len(m.blocks) {
		return m.blocks[key]
	}
	return block{kind: uniformBlock}
}

// Load sets w to those ids of one block (all ids whose upper 16 bits equal key) that have the given code. Load reports
// whether none, some or all ids of the block have the code. If no id has the code, Load returns Nothing; if every id
// has the code, Load returns Everything. If Load returns Nothing or Everything, the content of w is undefined. The code
// must not be 0.
func (m *CodeMap) Load(code uint8, key int, w *Words) Extent {
	b := m.block(key)
	switch b.kind {
	case uniformBlock:
		if b.code == code {
			return Everything
		}
		return Nothing
	case planeBlock:
		return w.match(m.planesOf(b), m.width, code)
	default:
		w.Clear()
		found := Nothing
		m.sparseIDs(b, func(low uint16, is uint8) {
			if is == code {
				w.bits[low>>6] |= 1 << (low & 63)
				found = Some
			}
		})
		return found
	}
}

// LoadAny sets w to those ids of one block (all ids whose upper 16 bits equal key) that have a code. LoadAny reports
// whether none, some or all ids of the block have a code. If no id has a code, LoadAny returns Nothing; if every id has
// a code, LoadAny returns Everything. If LoadAny returns Nothing or Everything, the content of w is undefined.
func (m *CodeMap) LoadAny(key int, w *Words) Extent {
	b := m.block(key)
	switch {
	case b.kind == uniformBlock && b.code == 0:
		return Nothing
	case b.kind == uniformBlock:
		return Everything
	case b.kind == planeBlock:
		return w.anyOf(m.planesOf(b), m.width)
	default:
		w.Clear()
		m.sparseIDs(b, func(low uint16, _ uint8) { w.bits[low>>6] |= 1 << (low & 63) })
		return Some
	}
}

func (m *CodeMap) planesOf(b block) []uint64 {
	return m.planes[b.at : int(b.at)+containerWords*m.width]
}

// The method "match" sets w to the ids of a bit-sliced block that have the given code. A bit-sliced block stores the
// codes in planes: plane p contains bit p of the code of every id.
func (w *Words) match(planes []uint64, width int, code uint8) Extent {
	var flip [8]uint64 // plane ^ flip[p]: the ids whose bit p equals bit p of the code
	for p := range width {
		flip[p] = uint64(code>>p&1) - 1
	}
	any, all := uint64(0), ^uint64(0)
	if width == 3 { // 4 to 7 segments; the loop is unrolled, as in Lookup
		for i := range w.bits {
			p := planes[3*i : 3*i+3 : 3*i+3]
			x := (p[0] ^ flip[0]) & (p[1] ^ flip[1]) & (p[2] ^ flip[2])
			w.bits[i], any, all = x, any|x, all&x
		}
		return extentOfWords(any, all)
	}
	for i := range w.bits {
		x := ^uint64(0)
		for p, plane := range planes[i*width : (i+1)*width] {
			x &= plane ^ flip[p&7]
		}
		w.bits[i], any, all = x, any|x, all&x
	}
	return extentOfWords(any, all)
}

// anyOf sets w to those ids of a bit-sliced block that have any code (a number above 0 that names a bitmap).
func (w *Words) anyOf(planes []uint64, width int) Extent {
	any, all := uint64(0), ^uint64(0)
	for i := range w.bits {
		x := uint64(0)
		for _, plane := range planes[i*width : (i+1)*width] {
			x |= plane
		}
		w.bits[i], any, all = x, any|x, all&x
	}
	return extentOfWords(any, all)
}

// extentOfWords reports whether none, some or all ids of a block are in a set. The argument "union" is the bitwise OR
// of all words of the block, and the argument "intersection" is their bitwise AND.
func extentOfWords(union, intersection uint64) Extent {
	switch {
	case union == 0:
		return Nothing
	case intersection == ^uint64(0):
		return Everything
	default:
		return Some
	}
}

// sparseIDs calls the function "found" for each id of a sparse block. The arguments of "found" are the lower 16 bits of
// the id, and the id's code.
func (m *CodeMap) sparseIDs(b block, found func(low uint16, code uint8)) {
	at := int(b.at)
	users := at + sparseHeader
	for page := range 256 {
		for i, to := m.starts(at+2*page), m.starts(at+2*page+2); i < to; i++ {
			found(uint16(page)<<8|uint16(m.sparse[users+2*i]), m.sparse[users+2*i+1])
		}
	}
}

// CountCodes counts the ids of the set w by code, and adds the results to the slice "counts". The slice "counts" must
// have an element for every code; element 0 is for ids without a code. The argument "key" of CountCodes is the upper 16
// bits of the ids in w.
func (m *CodeMap) CountCodes(key int, w *Words, counts []uint64) {
	b := m.block(key)
	switch b.kind {
	case uniformBlock:
		counts[b.code] += uint64(w.Count())
	case planeBlock:
		countPlanes(m.planesOf(b), m.width, w, counts)
	default:
		rest := uint64(w.Count())
		m.sparseIDs(b, func(low uint16, code uint8) {
			is := w.bits[low>>6] >> (low & 63) & 1
			counts[code] += is
			rest -= is
		})
		counts[0] += rest
	}
}

// countPlanes counts the ids of a bit-sliced block by code. In each word of 64 ids, countPlanes takes the lowest
// uncounted id, and counts all ids of the word that have the same code. countPlanes repeats these two steps until it
// has counted all ids of the word.
func countPlanes(planes []uint64, width int, w *Words, counts []uint64) {
	for i, left := range w.bits {
		group := planes[i*width : (i+1)*width]
		for left != 0 {
			bit := bits.TrailingZeros64(left)
			same, code := left, uint64(0)
			for p, plane := range group {
				is := plane >> bit & 1
				code |= is << p
				same &= plane ^ (is - 1)
			}
			counts[code] += uint64(bits.OnesCount64(same))
			left &^= same
		}
	}
}

// The method Filled returns the number of blocks (65,536 neighbouring ids each) in which the bitmap has at least one
// id.
func (b *Bitmap) Filled() int { return len(b.containers) }

// KeyAt returns the upper 16 bits of the ids in the bitmap's block with the index i. Blocks without ids have no index.
// For a higher index, the result is higher.
func (b *Bitmap) KeyAt(i int) int { return int(b.containers[i].key) }

// AppendAt appends the ids in the bitmap's block with the index i to the slice "ids", in ascending order. Blocks
// without ids have no index.
func (b *Bitmap) AppendAt(ids []uint32, i int) []uint32 { return b.containers[i].appendTo(ids) }
