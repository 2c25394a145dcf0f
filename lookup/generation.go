package lookup

import (
	"fmt"
	"time"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/segments"
)

// NoSegment is the segment name that look-ups return for users in no segment.
const NoSegment = "default"

// Generation is one published version of all segments and sets. A Generation never changes and is safe
// for concurrent use.
type Generation struct {
	snapshot *segments.Snapshot
	codes    *bitmap.CodeMap
	names    [256]string // names of segments by code; code 0 is NoSegment
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

// The method Name returns the generation's name, which begins with its creation time.
func (g *Generation) Name() string { return g.snapshot.Generation() }

// CreatedAt returns the creation time of the generation (published version).
func (g *Generation) CreatedAt() time.Time { return g.snapshot.CreatedAt() }

// SizeBytes returns the size of the generation in memory, in bytes.
func (g *Generation) SizeBytes() int64 { return g.snapshot.SizeBytes() }

// The method Segment returns the name of the user's segment, or NoSegment. The method Segment does not allocate memory.
func (g *Generation) Segment(user uint32) string { return g.names[g.codes.Code(user)] }

// The method Segments returns the names of the segments in the order of precedence. The caller must not change the
// slice.
func (g *Generation) Segments() []string { return g.segments }

// SegmentCodes sets codes[i] to a code for the segment of users[i]: the segment's index in Segments plus 1, or 0 for no
// segment. The users may be in any order, but SegmentCodes is fastest with ascending users. The slice codes must be at
// least as long as the slice users. SegmentCodes does not allocate memory.
func (g *Generation) SegmentCodes(users []uint32, codes []uint8) { g.codes.Lookup(users, codes) }

// The method Contains reports whether a user is in the named set or segment. If no segment or set has the name,
// Contains returns an *UnknownError. Without an error, Contains does not allocate memory.
func (g *Generation) Contains(name string, user uint32) (bool, error) {
	s, ok := g.byName[name]
	if !ok {
		return false, &UnknownError{Name: name, Generation: g.Name()}
	}
	return s.Contains(user), nil
}

// The method Set returns the named set or segment, for repeated look-ups. The error of Set is an *UnknownError.
func (g *Generation) Set(name string) (Set, error) {
	s, ok := g.byName[name]
	if !ok {
		return Set{}, &UnknownError{Name: name, Generation: g.Name()}
	}
	return *s, nil
}

// The method Sets returns the names of the sets in the order of the generation, without the segments. The caller owns
// the slice.
func (g *Generation) Sets() []string {
	sets := g.snapshot.Sets()
	names := make([]string, len(sets))
	for i := range sets {
		names[i] = sets[i].Name
	}
	return names
}

// UnknownError reports that the generation contains no set and no segment with the given name.
type UnknownError struct{ Name, Generation string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("lookup: generation %s has no segment or set %q", e.Generation, e.Name)
}

// A Set is a set or a segment of users in one generation (published version). The zero Set has no user.
type Set struct {
	name   string
	users  uint64
	bitmap *bitmap.Bitmap  // users of a set; nil for a segment
	code   uint8           // for a segment: its code; 1 for a set, 0 for the zero value
	codes  *bitmap.CodeMap // for a segment
}

// The method Name returns the name of the set or segment.
func (s Set) Name() string { return s.name }

// The method Users returns the number of users in the published bitmap of the set or segment. If the Set is a segment,
// the result of Users includes users who belong to an earlier segment.
func (s Set) Users() uint64 { return s.users }

// The method Contains reports whether the user is in the set or segment. If the bitmaps of several segments contain a
// user, the user belongs to the first of these segments, and to no other segment. The method Contains does not allocate
// memory.
func (s Set) Contains(user uint32) bool {
	if s.bitmap != nil {
		return s.bitmap.Contains(user)
	}
	return s.codes != nil && s.codes.Code(user) == s.code
}

// The method Mark sets in[i] to true if users[i] is in the set, and otherwise to false. The users may be in any order,
// but Mark is fastest with ascending users. The slice "in" must be at least as long as the slice users. The method Mark
// does not allocate memory.
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

// The method "mark" sets marks[i] to the set's code if users[i] is in the set, and otherwise to another value.
func (s Set) mark(users []uint32, marks []uint8) {
	clear(marks)
	switch {
	case s.codes != nil:
		s.codes.Lookup(users, marks)
	case s.bitmap != nil:
		s.bitmap.Mark(users, marks, s.code)
	}
}
