package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/ingest/format"
)

// ReadSets reads input files whose rows have an id and the name of a set. The name of the set is the prefix, followed
// by the name in the row. If the prefix plus the name in a row is not a valid name of a set, the row is bad.
func (r *reader) ReadSets(ctx context.Context, inputs []Input, prefix string) (map[string]*bitmap.Bitmap, error) {
	t := &setTable{}
	check := func(name string) error { return segments.CheckSetName(prefix + name) }
	t.names = newNames(segments.MaxSets, errTooManySets, check, func() { t.members = append(t.members, &members{}) })
	if err := r.read(ctx, inputs, t); err != nil {
		return nil, err
	}
	sets := map[string]*bitmap.Bitmap{}
	for i, name := range t.names.list {
		sets[prefix+name] = t.members[i].bitmap()
		t.members[i] = nil
	}
	return sets, nil
}

var errTooManySets = fmt.Errorf("table has more than %d different sets: is this the column of set names?",
	segments.MaxSets)

// A setTable receives the rows of input files that name sets, and adds the users to these sets. A setTable may have
// many sets, most of them small.
type setTable struct {
	names   *names
	members []*members
}

func (t *setTable) isTable() bool { return true }

func (t *setTable) newSink() (sink, format.Names) {
	s := &setTableSink{table: t, nameCache: nameCache{names: t.names, codes: map[string]uint16{}}}
	return s, s
}

func (t *setTable) addBitmap(*bitmap.Bitmap) error { return errBitmapTable }

// flushAt is the number of ids that a worker collects for one set before it locks the set to add these ids.
const flushAt = 4096

type setTableSink struct {
	nameCache
	table *setTable
	parts splitter[uint32]
}

func (s *setTableSink) add(b *format.Block) {
	for code, part := range s.parts.split(b.IDs, b.Codes) {
		if len(part) >= flushAt {
			s.hand(code)
		}
	}
}

func (s *setTableSink) flush() {
	for code := range s.parts {
		s.hand(code)
	}
}

// The method "hand" moves the ids that a worker has collected for one set to the users ("members") of this set. All
// workers share the members value of a set.
func (s *setTableSink) hand(code int) {
	s.table.names.mu.Lock()
	to := s.table.members[code]
	s.table.names.mu.Unlock()
	to.add(s.parts[code])
	s.parts[code] = s.parts[code][:0]
}

// The type "members" contains the users of one set: as a list while the set has few users, and later as a bitmap.Set.
type members struct {
	mu   sync.Mutex
	list []uint32
	set  *bitmap.Set // nil while there is a list
}

// listedMembers is the maximum length of the list in the type "members". The list takes 4 bytes per row, so a list with
// listedMembers rows takes as much memory as an empty bitmap.Set.
const listedMembers = 1 << 19

// If a set has at most sortedMembers users, sorting a list is faster than building a bitmap.Set.
const sortedMembers = 1 << 12

func (m *members) add(ids []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set == nil && len(m.list)+len(ids) <= listedMembers {
		m.list = append(m.list, ids...)
		return
	}
	if m.set == nil {
		m.set = bitmap.SetOf(m.list...)
		m.list = nil
	}
	for _, id := range ids {
		m.set.Add(id)
	}
}

func (m *members) bitmap() *bitmap.Bitmap {
	switch {
	case m.set != nil:
		return m.set.Bitmap()
	case len(m.list) > sortedMembers:
		return bitmap.SetOf(m.list...).Bitmap()
	}
	slices.Sort(m.list)
	return bitmap.OfSorted(slices.Compact(m.list))
}
