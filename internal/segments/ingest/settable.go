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

// ReadSets reads tables of ids and the names of sets: what stands in a row, behind
// the prefix, is the name of a set that the user is in, and every name makes one.
// Rows whose name cannot be that of a set are bad.
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

// setTable is the destination of tables whose rows name sets: there may be many, and
// most of them small.
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

// flushAt is how many ids a worker collects of one set before it takes its lock.
const flushAt = 4096

type setTableSink struct {
	nameCache
	table *setTable
	parts splitter
}

func (s *setTableSink) add(ids []uint32, codes []uint16) {
	for code, part := range s.parts.split(ids, codes) {
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

// hand gives what was collected of a set to all workers' set.
func (s *setTableSink) hand(code int) {
	s.table.names.mu.Lock()
	to := s.table.members[code]
	s.table.names.mu.Unlock()
	to.add(s.parts[code])
	s.parts[code] = s.parts[code][:0]
}

// members are the users of one set: a list while they are few.
type members struct {
	mu   sync.Mutex
	list []uint32
	set  *bitmap.Set // nil while there is a list
}

// listedMembers is how many rows are listed, at 4 bytes each: as much as an empty bitmap.Set takes.
const listedMembers = 1 << 19

// sortedMembers is how many are sorted faster than a Set of them is made.
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
