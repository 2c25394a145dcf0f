package wire

import (
	"context"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Members holds the members of a set, or of a segment after precedence has been applied.
type Members struct {
	name     string
	snapshot *segments.Snapshot
	set      *bitmap.Bitmap // nil: the members are those of a segment
	code     uint8          // code of the segment
}

// MembersOf returns the members of a segment or set in a generation.
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

// Generation returns the name of the generation.
func (m *Members) Generation() string { return m.snapshot.Generation() }

// blocks returns one more than the key of the last block that has a member.
func (m *Members) blocks() int {
	if m.set != nil {
		return m.set.Blocks()
	}
	return m.snapshot.Codes().Blocks()
}

// load stores the members of a block in w, and returns false when the block has no members.
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

// Page returns up to n members whose ids are first or greater.
func (m *Members) Page(first uint64, n int) *api.Members {
	ids := []uint32{}
	var w bitmap.Words
	for key := int(first >> 16); key < m.blocks() && len(ids) <= n; key++ {
		if !m.load(key, &w) {
			continue
		}
		if key == int(first>>16) && uint16(first) > 0 {
			w.Keep(uint16(first), 1<<16-1)
		}
		ids = w.AppendIDs(ids, key, n+1-len(ids))
	}
	page := &api.Members{Generation: m.Generation(), Name: m.name, UserIDs: ids}
	if len(ids) > n {
		page.UserIDs = ids[:n]
		page.Next = &ids[n-1]
	}
	return page
}

// Bitmap returns all members. The members of a segment are computed on all cores, after the holder has waited for its
// turn.
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

// MostBytes returns the approximate memory that Bitmap needs in addition to the generation, in bytes.
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
