package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/ingest/rows"
)

// table is the destination of tables. Codes are given in the order in which
// names are first seen, which differs from run to run; nothing depends on it.
type table struct {
	mu    sync.Mutex
	known []string // nil: every name
	codes map[string]uint8
	names []string
	sets  []*bitmap.Set
	// refused are the first names that are not a segment's, which repeat by the million where a whole export spells them otherwise.
	refused map[string]error
}

func newTable(known []string) *table {
	return &table{known: known, codes: map[string]uint8{}, refused: map[string]error{}}
}

func (t *table) isTable() bool { return true }

func (t *table) newSink() (sink, rows.Names) {
	s := &tableSink{table: t, codes: map[string]uint8{}}
	return s, s
}

func (t *table) addBitmap(*bitmap.Bitmap) error {
	return errors.New("a bitmap cannot be a table of ids and segments")
}

var errTooManySegments = fmt.Errorf("more than %d different segments: is this the segment column?", segments.MaxSegments)

func (t *table) code(name string) (uint8, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if code, ok := t.codes[name]; ok {
		return code, nil
	}
	if err := t.check(name); err != nil {
		return 0, err
	}
	if len(t.names) == segments.MaxSegments {
		return 0, errTooManySegments
	}
	code := uint8(len(t.names))
	t.codes[name] = code
	t.names, t.sets = append(t.names, name), append(t.sets, new(bitmap.Set))
	return code, nil
}

// check says why rows with this name are bad.
func (t *table) check(name string) error {
	if err, seen := t.refused[name]; seen {
		return err
	}
	err := segments.CheckName(name)
	if err == nil && t.known != nil && !slices.Contains(t.known, name) {
		err = fmt.Errorf("segment %q is not one of those to build%s", name, t.similar(name))
	}
	if err != nil && len(t.refused) < segments.MaxSegments {
		t.refused[name] = err
	}
	return err
}

// similar says which of the names to build is the same in other letters' case.
func (t *table) similar(name string) string {
	for _, known := range t.known {
		if strings.EqualFold(known, name) {
			return fmt.Sprintf("; %q is, which differs by case only", known)
		}
	}
	return ""
}

func (t *table) bySegment() map[string]*bitmap.Set {
	sets := map[string]*bitmap.Set{}
	for i, name := range t.names {
		sets[name] = t.sets[i]
	}
	return sets
}

type tableSink struct {
	table   *table
	codes   map[string]uint8
	writers []*bitmap.Writer
	last    string // the name of the row before: most exports are grouped or have few names
	lastIs  uint8
	split   [segments.MaxSegments][]uint32
}

// Code implements rows.Names.
func (s *tableSink) Code(name []byte) (uint8, error) {
	if string(name) == s.last && s.last != "" {
		return s.lastIs, nil
	}
	code, ok := s.codes[string(name)]
	if !ok {
		var err error
		if code, err = s.table.code(string(name)); err != nil {
			return 0, err
		}
		s.codes[string(name)] = code
	}
	s.last, s.lastIs = string(name), code
	return code, nil
}

func (s *tableSink) add(ids []uint32, codes []uint8) {
	for i, id := range ids {
		s.split[codes[i]] = append(s.split[codes[i]], id)
	}
	for code, part := range s.split {
		if len(part) > 0 {
			s.writer(code).Add(part)
			s.split[code] = part[:0]
		}
	}
}

func (s *tableSink) writer(code int) *bitmap.Writer {
	for len(s.writers) <= code {
		s.table.mu.Lock()
		set := s.table.sets[len(s.writers)]
		s.table.mu.Unlock()
		s.writers = append(s.writers, set.NewWriter())
	}
	return s.writers[code]
}

func (s *tableSink) flush() {
	for _, w := range s.writers {
		w.Flush()
	}
}
