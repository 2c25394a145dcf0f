package wire

import (
	"context"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// The type Members holds the members of a set or of a segment. If several segments contain a user, the user is a member
// only of the segment with the highest precedence.
type Members struct {
	name     string
	snapshot *segments.Snapshot
	set      *bitmap.Bitmap // nil: members of a segment
	code     uint8          // code of the segment
}

// MembersOf returns the members that a segment or set has in a segments generation (published version).
func MembersOf(s *segments.Snapshot, name string) (*Members, error) {
	if set := s.Set(name); set != nil {
		return &Members{name: name, snapshot: s, set: set}, nil
	}
	names := s.Names()
	for i, segment := range names {
		if segment == name {
			return &Members{name: name, snapshot: s, code: uint8(i + 1)}, nil
		}
	}
	return nil, NewFailure(api.CodeNotFound, "generation %s has no segment or set %q%s",
		s.Generation(), Clip([]byte(name)), meant(name, append(names, setsOf(s)...)))
}

// The method Generation returns the name of the segments generation (published version) from which the members come.
func (m *Members) Generation() string { return m.snapshot.Generation() }

// The method "blocks" returns the number of blocks of 65,536 user numbers, up to the last block with a member of the
// segment or set.
func (m *Members) blocks() int {
	if m.set != nil {
		return m.set.Blocks()
	}
	return m.snapshot.Codes().Blocks()
}

// The method load writes the members in one block of 65,536 user numbers to w, and returns false if the block contains
// no members.
func (m *Members) load(key int, w *bitmap.Words) (any bool) {
	var extent bitmap.Extent
	if m.set != nil {
		extent = m.set.Load(key, w)
	} else {
		extent = m.snapshot.Codes().Load(m.code, key, w)
	}
	if extent == bitmap.Everything {
		w.Fill()
	}
	return extent != bitmap.Nothing
}

// The method "numbers" returns up to n members in ascending order, from the number "first" on, and reports whether
// further members follow.
func (m *Members) numbers(first uint64, n int) (numbers []uint32, more bool) {
	numbers = []uint32{}
	var w bitmap.Words
	for key := int(first >> 16); key < m.blocks() && len(numbers) <= n; key++ {
		if !m.load(key, &w) {
			continue
		}
		if key == int(first>>16) && uint16(first) > 0 {
			w.Keep(uint16(first), 1<<16-1)
		}
		numbers = w.AppendIDs(numbers, key, n+1-len(numbers))
	}
	if len(numbers) > n {
		return numbers[:n], true
	}
	return numbers, false
}

// The method Page returns a page of up to n members, beginning at the position in the argument "from".
func (m *Members) Page(from Position, n int) (*PageOfMembers, error) {
	first := uint64(0)
	if from.given {
		first = m.snapshot.NumberAfter(from.after)
	}
	p := &PageOfMembers{generation: m.Generation(), name: m.name}
	p.numbers, p.more = m.numbers(first, n)
	if m.snapshot.IDs().Kind() == ids.Dense {
		return p, nil
	}
	if !m.snapshot.HasNames() {
		return nil, noNames(m.snapshot, "", "POST /v1/audience/count counts its users")
	}
	var err error
	p.given, err = givenOf(m.snapshot, p.numbers)
	return p, err
}

// noNames returns the failure of a call whose response would list user ids, if the segments generation does not
// contain the ids of its users.
func noNames(s *segments.Snapshot, field, instead string) error {
	const text = "generation %s does not contain its ids (segmentbuild build --no-names): %s"
	if field == "" {
		return NewFailure(api.CodeInvalidRequest, text, s.Generation(), instead)
	}
	return Invalid(field, text, s.Generation(), instead)
}

// PageOfMembers is a page in the list of members of a segment or set.
type PageOfMembers struct {
	generation, name string
	numbers          []uint32
	given            *Given // nil: the ids are dense, so numbers holds the ids
	more             bool   // further members follow
}

// EncodeMembers appends a page of members to dst.
func EncodeMembers(dst []byte, page *PageOfMembers) []byte {
	a := &answer{out: dst, given: page.given}
	a.raw(`{"generation":`).text(page.generation)
	a.raw(`,"name":`).text(page.name)
	a.raw(`,"user_ids":`)
	if page.given == nil {
		list(a, page.numbers)
	} else {
		a.raw(`[`)
		for i := range page.numbers {
			if i > 0 {
				a.raw(`,`)
			}
			a.out = page.given.append(a.out, i, 0)
		}
		a.raw(`]`)
	}
	a.raw(`,"next":`)
	switch last := len(page.numbers) - 1; {
	case !page.more:
		a.raw(`null`)
	case page.given == nil:
		a.number(int(page.numbers[last]))
	default:
		a.out = page.given.append(a.out, last, 0)
	}
	return a.raw("}\n").out
}

// Bitmap returns a bitmap of all members. For the members of a segment, Bitmap uses all cores, so Bitmap first waits
// for the client's turn.
func (f *Finder) Bitmap(ctx context.Context, holder string, m *Members) (*bitmap.Bitmap, error) {
	if m.set != nil {
		return m.set, nil
	}
	end, err := f.turns.take(ctx, holder)
	if err != nil {
		return nil, evaluationFailure(err)
	}
	defer end()
	blocks := make([]bitmap.Encoded, m.blocks())
	parallel.OnAllCores(len(blocks), func(key int) {
		var w bitmap.Words
		if ctx.Err() == nil && m.load(key, &w) {
			blocks[key] = w.Encode(key)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, evaluationFailure(err)
	}
	return bitmap.Join(blocks), nil
}

// MostBytes returns the approximate number of bytes that the method Bitmap allocates.
func (m *Members) MostBytes() int64 {
	if m.set != nil {
		return 1024
	}
	for _, size := range m.snapshot.Segments() {
		if size.Name == m.name {
			return 1024 + 2*size.SizeBytes
		}
	}
	return 1024
}
