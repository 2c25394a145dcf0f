package segments

import (
	"encoding/binary"
	"math/bits"
)

// chunk is 65,536 neighbouring ids of a snapshot.
type chunk struct {
	at   uint32 // plane chunk: index of its first word in planes; sparse chunk: of its first byte in sparse
	kind chunkKind
	code uint8 // uniform chunk: the code of all its ids
}

const chunkSize = 8

type chunkKind uint8

const (
	// uniformChunk: all ids have one code; an empty chunk is uniform with code 0.
	uniformChunk chunkKind = iota
	// planeChunk: a code has `width` bits, bit p of the code of id i is bit i of
	// plane p; the planes are interleaved by words of 64 ids.
	planeChunk
	// sparseChunk: 257 16-bit numbers, where each page of 256 ids starts and the
	// last ends, in users; then per user, ascending, the low byte of the id and the code.
	sparseChunk
)

const (
	sparseHeader = 257 * 2
	// sparseMax keeps pages short: 32 users on average, which is one cache line.
	sparseMax = 8192
)

// newSnapshot lays the bitmaps, one per segment of m in the same order, over
// each other; where two hold a user the earlier wins. It uses all cores.
func newSnapshot(m *Manifest, bitmaps []*Bitmap) *Snapshot {
	s := &Snapshot{manifest: *m, width: bits.Len(uint(len(bitmaps)))}
	s.layOut(bitmaps)
	inParallel(len(s.chunks), func(key int) {
		c := s.chunks[key]
		switch c.kind {
		case planeChunk:
			s.fillPlanes(s.planes[c.at:int(c.at)+chunkWords*s.width], gather(bitmaps, key))
		case sparseChunk:
			s.fillSparse(s.sparse[c.at:], gather(bitmaps, key))
		}
	})
	return s
}

// layOut decides each chunk's kind from the cardinalities alone and reserves its memory.
func (s *Snapshot) layOut(bitmaps []*Bitmap) {
	counts := make([]int, maxContainers) // users per chunk, counted twice where segments overlap
	full := make([]uint8, maxContainers) // the code when the first segment of a chunk has every id
	highest := -1
	for i, b := range bitmaps {
		for _, c := range b.containers {
			if counts[c.key] == 0 && c.card == chunkIDs {
				full[c.key] = uint8(i + 1)
			}
			counts[c.key] += c.card
			highest = max(highest, int(c.key))
		}
	}
	s.chunks = make([]chunk, highest+1)
	planes, sparse := 0, 0
	for key := range s.chunks {
		n := counts[key]
		size := sparseHeader + 2*n
		switch {
		case n == 0 || full[key] != 0:
			s.chunks[key] = chunk{kind: uniformChunk, code: full[key]}
		case n <= sparseMax && size < s.width*chunkWords*8:
			s.chunks[key] = chunk{kind: sparseChunk, at: uint32(sparse)}
			sparse += size
		default:
			s.chunks[key] = chunk{kind: planeChunk, at: uint32(planes)}
			planes += chunkWords * s.width
		}
	}
	s.planes, s.sparse = make([]uint64, planes), make([]byte, sparse)
}

// coded is the users of one segment in one chunk.
type coded struct {
	code uint8
	data *container
}

// gather finds the containers of one chunk, in order of precedence.
func gather(bitmaps []*Bitmap, key int) []coded {
	var found []coded
	for i, b := range bitmaps {
		if c := b.container(uint16(key)); c != nil {
			found = append(found, coded{code: uint8(i + 1), data: c})
		}
	}
	return found
}

func (s *Snapshot) fillPlanes(planes []uint64, found []coded) {
	var taken words
	for _, f := range found {
		var w words
		f.data.addTo(&w)
		for i, x := range w {
			if x &^= taken[i]; x == 0 {
				continue
			}
			taken[i] |= x
			for p := range s.width {
				if f.code>>p&1 == 1 {
					planes[i*s.width+p] |= x
				}
			}
		}
	}
}

func (s *Snapshot) fillSparse(out []byte, found []coded) {
	var taken words
	var codes [chunkIDs]uint8
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

// takeArray gives the code to the ids of an array that nobody has taken yet. It
// goes without the bitset that takeWords makes: arrays are what sparse chunks are made of.
func takeArray(data []byte, code uint8, taken *words, codes *[chunkIDs]uint8) {
	for i := 0; i+1 < len(data); i += 2 {
		id := binary.LittleEndian.Uint16(data[i:])
		if w := &taken[id>>6]; *w>>(id&63)&1 == 0 {
			*w |= 1 << (id & 63)
			codes[id] = code
		}
	}
}

func takeWords(c *container, code uint8, taken *words, codes *[chunkIDs]uint8) {
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
