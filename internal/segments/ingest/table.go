package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/ingest/format"
)

// The struct "names" assigns a numeric code to each name of a segment or set in a table's rows. The codes are in the
// order of the names' first appearance. Two builds of the same files may assign different codes, but no result of a
// build depends on the codes.
type names struct {
	mu      sync.Mutex
	check   func(name string) error // returns the reason if rows with this name are bad
	most    int
	tooMany error
	added   func() // called when a name gets its code
	codes   map[string]uint16
	list    []string
	// The map "refused" caches the first rejected names, because an export may repeat a wrong name in millions of rows.
	refused map[string]error
}

func newNames(most int, tooMany error, check func(string) error, added func()) *names {
	return &names{check: check, most: most, tooMany: tooMany, added: added, codes: map[string]uint16{},
		refused: map[string]error{}}
}

func (n *names) code(name string) (uint16, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if code, ok := n.codes[name]; ok {
		return code, nil
	}
	if err := n.refuse(name); err != nil {
		return 0, err
	}
	if len(n.list) == n.most {
		return 0, n.tooMany
	}
	code := uint16(len(n.list))
	n.codes[name] = code
	n.list = append(n.list, name)
	n.added()
	return code, nil
}

func (n *names) refuse(name string) error {
	if err, seen := n.refused[name]; seen {
		return err
	}
	err := errNoName
	if name != "" {
		err = n.check(name)
	}
	if err != nil && len(n.refused) < segments.MaxSets {
		n.refused[name] = err
	}
	return err
}

// errNoName reports that the name of a segment or set is empty. If a name is empty, this error text is clearer than the
// general rule for names.
var errNoName = errors.New("segment or set name is empty")

// A table receives the rows of input files that name segments or sets, and adds the users to the named segments and
// sets.
type table struct {
	known []string // nil: every name
	names *names
	sets  []*bitmap.Set
}

var errTooManySegments = fmt.Errorf("table has more than %d different segments: is this the segment column?",
	segments.MaxSegments)

func newTable(known []string) *table {
	t := &table{known: known}
	t.names = newNames(max(segments.MaxSegments, len(known)), errTooManySegments, t.check,
		func() { t.sets = append(t.sets, new(bitmap.Set)) })
	return t
}

func (t *table) isTable() bool { return true }

func (t *table) newSink() (sink, format.Names) {
	s := &tableSink{table: t, nameCache: nameCache{names: t.names, codes: map[string]uint16{}}}
	return s, s
}

func (t *table) addBitmap(*bitmap.Bitmap) error { return errBitmapTable }

var errBitmapTable = errors.New("a bitmap cannot be used as a table of user ids and segments")

func (t *table) check(name string) error {
	if slices.Contains(t.known, name) {
		return nil
	}
	if err := segments.CheckName(name); err != nil || t.known == nil {
		return err
	}
	return fmt.Errorf("segment %q must be one of the segments to build%s", name, t.similar(name))
}

// The method "similar" returns a hint for an error text if an expected name differs from the given name only in upper
// and lower case.
func (t *table) similar(name string) string {
	for _, known := range t.known {
		if strings.EqualFold(known, name) {
			return fmt.Sprintf("; %q exists and differs only by case", known)
		}
	}
	return ""
}

func (t *table) bySegment() map[string]*bitmap.Set {
	sets := map[string]*bitmap.Set{}
	for i, name := range t.names.list {
		sets[name] = t.sets[i]
	}
	return sets
}

// A nameCache stores names of segments or sets and their codes for one worker. For a stored name, the worker needs no
// lock.
type nameCache struct {
	names  *names
	codes  map[string]uint16
	last   string // the name in the previous row; in most exports, neighbouring rows often have the same name
	lastIs uint16
}

// Code implements format.Names.
func (s *nameCache) Code(name []byte) (uint16, error) {
	if string(name) == s.last && s.last != "" {
		return s.lastIs, nil
	}
	code, ok := s.codes[string(name)]
	if !ok {
		var err error
		if code, err = s.names.code(string(name)); err != nil {
			return 0, err
		}
		s.codes[string(name)] = code
	}
	s.last, s.lastIs = string(name), code
	return code, nil
}

// A splitter divides the ids of a block into lists: one list for each segment or set that the rows name.
type splitter[ID uint32 | uint64] [][]ID

// The method "split" appends each id to the list of the segment or set that the id's row names. The index of a list in
// the result is the code of the segment or set.
func (s *splitter[ID]) split(ids []ID, codes []uint16) [][]ID {
	for i, id := range ids {
		for int(codes[i]) >= len(*s) {
			*s = append(*s, nil)
		}
		(*s)[codes[i]] = append((*s)[codes[i]], id)
	}
	return *s
}

type tableSink struct {
	nameCache
	table   *table
	writers []*bitmap.Writer
	parts   splitter[uint32]
}

func (s *tableSink) add(b *format.Block) {
	parts := s.parts.split(b.IDs, b.Codes)
	for code, part := range parts {
		if len(part) > 0 {
			s.writer(code).Add(part)
			parts[code] = part[:0]
		}
	}
}

func (s *tableSink) writer(code int) *bitmap.Writer {
	for len(s.writers) <= code {
		s.table.names.mu.Lock()
		set := s.table.sets[len(s.writers)]
		s.table.names.mu.Unlock()
		s.writers = append(s.writers, set.NewWriter())
	}
	return s.writers[code]
}

func (s *tableSink) flush() {
	for _, w := range s.writers {
		w.Flush()
	}
}
