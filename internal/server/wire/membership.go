package wire

import (
	"fmt"
	"slices"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// A membership holds the segment and the sets of each requested user.
type membership struct {
	Generation string
	Names      []string // segment names of the generation
	Sets       []string // the requested sets
	Users      []uint32
	Codes      []uint8  // segment of each user: 0 for no segment, otherwise index in Names plus 1
	In         []uint64 // bits of each user, one for each of Sets; nil: the call requested no sets
}

// The constant piece is the number of users in a group. MembershipOf looks up one group in all sets before the next
// group, so that the users stay in the processor's cache.
const piece = 8192

// MembershipOf looks up the segment and the sets of each user in a segments generation (published version).
func MembershipOf(s *segments.Snapshot, users []uint32, sets []string) (*membership, error) {
	bitmaps, err := bitmapsOf(s, sets)
	if err != nil {
		return nil, err
	}
	m := &membership{
		Generation: s.Generation(), Names: s.Names(), Sets: sets,
		Users: users, Codes: make([]uint8, len(users)),
	}
	s.Lookup(users, m.Codes)
	if len(sets) == 0 {
		return m, nil
	}
	m.In = make([]uint64, len(users))
	for first := 0; first < len(users); first += piece {
		last := min(first+piece, len(users))
		m.mark(bitmaps, users[first:last], m.In[first:last])
	}
	return m, nil
}

func (m *membership) mark(sets []*bitmap.Bitmap, users []uint32, in []uint64) {
	var marks [piece]uint8
	for k, set := range sets {
		clear(marks[:len(users)])
		set.Mark(users, marks[:len(users)], 1)
		for i := range users {
			in[i] |= uint64(marks[i]) << k
		}
	}
}

func bitmapsOf(s *segments.Snapshot, sets []string) (bitmaps []*bitmap.Bitmap, err error) {
	for i, name := range sets {
		set := s.Set(name)
		if set == nil {
			return nil, noSet(s, fmt.Sprintf("sets[%d]", i), name)
		}
		bitmaps = append(bitmaps, set)
	}
	return bitmaps, nil
}

func noSet(s *segments.Snapshot, field, name string) error {
	if slices.Contains(s.Names(), name) {
		return Invalid(field, "%q is a segment: a lookup returns the segment of each user in any case", name)
	}
	return Invalid(field, "generation %s has no set %q%s", s.Generation(), Clip([]byte(name)),
		meant(name, setsOf(s)))
}

func setsOf(s *segments.Snapshot) (names []string) {
	for _, set := range s.Sets() {
		names = append(names, set.Name)
	}
	return names
}
