package lookup

import (
	"fmt"
	"time"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/segments"
)

// NoSegment is what users in no segment are in.
const NoSegment = "default"

// Generation is one published version of all segments and sets. It never changes,
// and is safe for concurrent use.
type Generation struct {
	snapshot *segments.Snapshot
	codes    *bitmap.CodeMap
	names    [256]string // of segments by code; NoSegment of 0
	segments []string
	byName   map[string]*Set
	engine   *audience.Engine
	named    *audience.Named
}

func newGeneration(s *segments.Snapshot, engine *audience.Engine, named *audience.Named) *Generation {
	g := &Generation{snapshot: s, codes: s.Codes(), segments: s.Names(), byName: map[string]*Set{}, engine: engine,
		named: named}
	g.names[0] = NoSegment
	for i, segment := range s.Segments() {
		g.names[i+1] = segment.Name
		g.byName[segment.Name] = &Set{name: segment.Name, users: segment.Cardinality, code: uint8(i + 1),
			codes: g.codes}
	}
	for _, set := range s.Sets() {
		g.byName[set.Name] = &Set{name: set.Name, users: set.Cardinality, code: 1, bitmap: s.Set(set.Name)}
	}
	return g
}

// Name is the generation's name: it begins with its time.
func (g *Generation) Name() string { return g.snapshot.Generation() }

// CreatedAt is when it was built.
func (g *Generation) CreatedAt() time.Time { return g.snapshot.CreatedAt() }

// SizeBytes is the memory that it takes.
func (g *Generation) SizeBytes() int64 { return g.snapshot.SizeBytes() }

// Segment names the segment that a user is in, NoSegment for none. It does not allocate.
func (g *Generation) Segment(user uint32) string { return g.names[g.codes.Code(user)] }

// Segments lists the segments in order of precedence. The caller must not change it.
func (g *Generation) Segments() []string { return g.segments }

// SegmentCodes sets codes[i] to 0 where users[i] is in no segment, else to the segment's
// index in Segments plus 1. Any order of users is right, ascending is fastest. codes must
// be at least as long as users. It does not allocate.
func (g *Generation) SegmentCodes(users []uint32, codes []uint8) { g.codes.Lookup(users, codes) }

// Contains reports whether a user is in a set or a segment. The error is an
// *UnknownError. It does not allocate otherwise.
func (g *Generation) Contains(name string, user uint32) (bool, error) {
	s, ok := g.byName[name]
	if !ok {
		return false, &UnknownError{Name: name, Generation: g.Name()}
	}
	return s.Contains(user), nil
}

// Set is a set or a segment by its name, for many look-ups. The error is an *UnknownError.
func (g *Generation) Set(name string) (Set, error) {
	s, ok := g.byName[name]
	if !ok {
		return Set{}, &UnknownError{Name: name, Generation: g.Name()}
	}
	return *s, nil
}

// Sets lists the names of the sets in the order of the generation, without segments. The slice is the caller's.
func (g *Generation) Sets() []string {
	sets := g.snapshot.Sets()
	names := make([]string, len(sets))
	for i := range sets {
		names[i] = sets[i].Name
	}
	return names
}

// UnknownError is a name that a generation has neither as a set nor as a segment.
type UnknownError struct{ Name, Generation string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("lookup: generation %s has no segment or set %q", e.Generation, e.Name)
}

// Set is a set or a segment of one generation. The zero value has nobody.
type Set struct {
	name   string
	users  uint64
	bitmap *bitmap.Bitmap  // of a set
	code   uint8           // of a segment; 1: of a set, 0: of the zero value
	codes  *bitmap.CodeMap // of a segment
}

// Name is its name.
func (s Set) Name() string { return s.name }

// Users is how many users were published: of a segment also those who are in an earlier one.
func (s Set) Users() uint64 { return s.users }

// Contains reports whether a user is in it: in a segment, by precedence. It does not allocate.
func (s Set) Contains(user uint32) bool {
	if s.bitmap != nil {
		return s.bitmap.Contains(user)
	}
	return s.codes != nil && s.codes.Code(user) == s.code
}

// Mark sets in[i] to whether users[i] is in it. Any order of users is right, ascending is
// fastest. in must be at least as long as users. It does not allocate.
func (s Set) Mark(users []uint32, in []bool) {
	in = in[:len(users)]
	var marks [256]uint8
	for first := 0; first < len(users); first += len(marks) {
		part := users[first:min(first+len(marks), len(users))]
		s.mark(part, marks[:len(part)])
		for i := range part {
			in[first+i] = marks[i] != 0 && marks[i] == s.code
		}
	}
}

// mark sets marks[i] to the code of the set exactly where users[i] is in it.
func (s Set) mark(users []uint32, marks []uint8) {
	clear(marks)
	switch {
	case s.codes != nil:
		s.codes.Lookup(users, marks)
	case s.bitmap != nil:
		s.bitmap.Mark(users, marks, s.code)
	}
}
