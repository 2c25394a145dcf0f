package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// layOut chooses the form of each block of the CodeMap (uniform, sparse or bit-sliced), and allocates the memory of all
// blocks. The method layOut reads only the number of ids in each container of the bitmaps.
func (m *CodeMap) layOut(bitmaps []*Bitmap) {
	counts := make([]int, maxContainers) // ids per block; ids in several bitmaps count several times
	full := make([]uint8, maxContainers) // the code of the block if the first bitmap with ids in the block has every id
	highest := -1
	for i, b := range bitmaps {
		for _, c := range b.containers {
			if counts[c.key] == 0 && c.card == containerIDs {
				full[c.key] = uint8(i + 1)
			}
			counts[c.key] += c.card
			highest = max(highest, int(c.key))
		}
	}
	m.blocks = make([]block, highest+1)
	planes, sparse := 0, 0
	for key := range m.blocks {
		n := counts[key]
		size := sparseHeader + 2*n
		switch {
		case n == 0 || full[key] != 0:
			m.blocks[key] = block{kind: uniformBlock, code: full[key]}
		case n <= sparseMax && size < m.width*containerWords*8:
			m.blocks[key] = block{kind: sparseBlock, at: uint32(sparse)}
			sparse += size
		default:
			m.blocks[key] = block{kind: planeBlock, at: uint32(planes)}
			planes += containerWords * m.width
		}
	}
	m.planes, m.sparse = make([]uint64, planes), make([]byte, sparse)
}

// The struct "coded" contains one bitmap's container for a block of ids, and the code (number in the CodeMap) of this
// bitmap.
type coded struct {
	code uint8
	data *container
}

// The function "gather" returns the containers with the given key (upper 16 bits of the ids) from all bitmaps, in the
// order of the bitmaps.
func gather(bitmaps []*Bitmap, key int) []coded {
	var found []coded
	for i, b := range bitmaps {
		if c := b.container(uint16(key)); c != nil {
			found = append(found, coded{code: uint8(i + 1), data: c})
		}
	}
	return found
}

func (m *CodeMap) fillPlanes(planes []uint64, found []coded) {
	var taken words
	for _, f := range found {
		var w words
		f.data.addTo(&w)
		for i, x := range w {
			if x &^= taken[i]; x == 0 {
				continue
			}
			taken[i] |= x
			for p := range m.width {
				if f.code>>p&1 == 1 {
					planes[i*m.width+p] |= x
				}
			}
		}
	}
}

func (m *CodeMap) fillSparse(out []byte, found []coded) {
	var taken words
	var codes [containerIDs]uint8
	for _, f := range found {
		if f.data.kind == arrayKind {
			takeArray(f.data.data, f.code, &taken, &codes)
		} else {
			takeWords(f.data, f.code, &taken, &codes)
		}
	}
	n := 0
	for i, x := range taken {
		if i%4 == 0 { // a page of 256 ids is four words
			binary.LittleEndian.PutUint16(out[i/2:], uint16(n))
		}
		for ; x != 0; x &= x - 1 {
			id := i<<6 + bits.TrailingZeros64(x)
			out[sparseHeader+2*n], out[sparseHeader+2*n+1] = byte(id), codes[id]
			n++
		}
	}
	binary.LittleEndian.PutUint16(out[2*256:], uint16(n))
}

// takeArray sets the code of all ids in a bitmap's array container that have no code from an earlier bitmap. Unlike
// takeWords, takeArray builds no bitset. In a sparse block, most containers are arrays, so building a bitset for each
// array would cost too much.
func takeArray(data []byte, code uint8, taken *words, codes *[containerIDs]uint8) {
	for i := 0; i+1 < len(data); i += 2 {
		id := binary.LittleEndian.Uint16(data[i:])
		if w := &taken[id>>6]; *w>>(id&63)&1 == 0 {
			*w |= 1 << (id & 63)
			codes[id] = code
		}
	}
}

func takeWords(c *container, code uint8, taken *words, codes *[containerIDs]uint8) {
	var w words
	c.addTo(&w)
	for i, x := range w {
		x &^= taken[i]
		taken[i] |= x
		for ; x != 0; x &= x - 1 {
			codes[i<<6+bits.TrailingZeros64(x)] = code
		}
	}
}
