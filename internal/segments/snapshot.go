package segments

import (
	"time"

	"capper/internal/bitmap"
)

// Snapshot is one generation in memory, immutable: which segment is a user in?
// It holds no bitmaps but a bitmap.CodeMap of them. Safe for concurrent use.
type Snapshot struct {
	manifest Manifest
	codes    *bitmap.CodeMap
}

// SegmentSize is one segment of a snapshot.
type SegmentSize struct {
	Name        string
	Cardinality uint64 // users in the bitmap
	SizeBytes   int64  // of the serialized bitmap
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
func (s *Snapshot) SizeBytes() int64 { return s.codes.SizeBytes() }

// Lookup sets codes[i] to the code of the segment that users[i] is in: 0 for
// none, else the segment's index in Names plus 1. Any order of users is right,
// ascending is fastest. codes must be at least as long as users. It does not
// allocate.
func (s *Snapshot) Lookup(users []uint32, codes []uint8) { s.codes.Lookup(users, codes) }
