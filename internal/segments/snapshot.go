package segments

import (
	"time"
)

// Snapshot is one generation in memory, immutable: which segment is a user in?
// It holds no bitmaps but a map from chunks of 65,536 ids to codes; doc.go
// says what it costs. Safe for concurrent use.
type Snapshot struct {
	manifest Manifest
	chunks   []chunk // by id>>16, up to the highest chunk that holds a user
	planes   []uint64
	sparse   []byte
	width    int // planes per chunk
}

// SegmentSize is one segment of a snapshot.
type SegmentSize struct {
	Name        string `json:"name"`
	Cardinality uint64 `json:"cardinality"` // users in the bitmap
	SizeBytes   int64  `json:"size_bytes"`  // of the serialized bitmap
}

// Generation names the generation.
func (s *Snapshot) Generation() string { return s.manifest.Generation }

// CreatedAt is when the generation was built.
func (s *Snapshot) CreatedAt() time.Time { return s.manifest.CreatedAt }

// Names lists the segments in order of precedence: the segment of code c is
// Names()[c-1]. The slice is the caller's.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.manifest.Segments))
	for i, segment := range s.manifest.Segments {
		names[i] = segment.Name
	}
	return names
}

// Segments lists the segments with their sizes, in order of precedence. The
// slice is the caller's.
func (s *Snapshot) Segments() []SegmentSize {
	sizes := make([]SegmentSize, len(s.manifest.Segments))
	for i, segment := range s.manifest.Segments {
		sizes[i] = SegmentSize{Name: segment.Name, Cardinality: segment.Cardinality, SizeBytes: segment.SizeBytes}
	}
	return sizes
}

// SizeBytes is the memory that the map takes.
func (s *Snapshot) SizeBytes() int64 {
	return int64(len(s.chunks))*chunkSize + int64(len(s.planes))*8 + int64(len(s.sparse))
}

// Lookup sets codes[i] to the code of the segment that users[i] is in: 0 for
// none, else the segment's index in Names plus 1. Any order of users is right,
// ascending is fastest. codes must be at least as long as users. It does not
// allocate.
func (s *Snapshot) Lookup(users []uint32, codes []uint8) {
	codes = codes[:len(users)]
	chunks, planes, width := s.chunks, s.planes, s.width
	for i, id := range users {
		key := id >> 16
		if int(key) >= len(chunks) {
			codes[i] = 0
			continue
		}
		c := chunks[key]
		switch c.kind {
		case uniformChunk:
			codes[i] = c.code
		case planeChunk:
			at := int(c.at) + int(id>>6&(chunkWords-1))*width
			if width == 3 {
				codes[i] = pick3(planes[at:at+3:at+3], id&63)
			} else {
				codes[i] = pick(planes[at:at+width], id&63)
			}
		default:
			codes[i] = s.lookupSparse(int(c.at), id)
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
// compiler inlines it, which halves the time of a lookup.
func pick3(w []uint64, bit uint32) uint8 {
	return uint8(w[0]>>bit&1 | w[1]>>bit&1<<1 | w[2]>>bit&1<<2)
}

// lookupSparse searches the page of the id, its 256 neighbours: see sparseChunk.
func (s *Snapshot) lookupSparse(at int, id uint32) uint8 {
	page := at + 2*int(id>>8&0xff)
	from, to := s.starts(page), s.starts(page+2)
	users := at + sparseHeader
	low := byte(id)
	for i := from; i < to; i++ {
		if got := s.sparse[users+2*i]; got >= low {
			if got == low {
				return s.sparse[users+2*i+1]
			}
			return 0
		}
	}
	return 0
}

func (s *Snapshot) starts(at int) int { return int(s.sparse[at]) | int(s.sparse[at+1])<<8 }
