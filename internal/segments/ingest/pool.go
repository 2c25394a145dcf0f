package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// destination is where rows go: one set, or one set per segment of a table.
type destination interface {
	isTable() bool
	newSink() sink // for one worker
}

// sink takes the rows of one worker.
type sink interface {
	// code of a segment's name; only for tables.
	code(name []byte) (uint8, error)
	// add takes rows; codes is as long as ids for tables, else empty.
	add(ids []uint32, codes []uint8)
	flush()
}

// pool is the workers that parse blocks of all files of one destination.
type pool struct {
	tasks chan func(*worker)
	wg    sync.WaitGroup
	to    destination
	bytes sync.Pool // of *[]byte, blocks to fill
}

// worker is what one goroutine of the pool reuses from block to block.
type worker struct {
	sink  sink
	ids   []uint32
	codes []uint8
	seen  sketch // of ids
	bad   []BadRow
	count int64 // of bad rows in the block, those beyond len(bad) included
	keep  int   // how many bad rows are kept
	lines int64 // of the row that is looked at

	multiline Multiline // rows of the block over several lines
}

func startPool(workers, keep int, to destination) *pool {
	p := &pool{tasks: make(chan func(*worker)), to: to}
	p.bytes.New = func() any { b := make([]byte, 0, blockBytes+64); return &b }
	for range workers {
		p.wg.Go(func() {
			w := &worker{sink: to.newSink(), keep: keep}
			for task := range p.tasks {
				task(w)
			}
			w.sink.flush()
		})
	}
	return p
}

func (p *pool) stop() {
	close(p.tasks)
	p.wg.Wait()
}

// submit hands a task to a worker and waits until one takes it; done is
// released when the task is finished.
func (p *pool) submit(ctx context.Context, done *sync.WaitGroup, task func(*worker)) error {
	done.Add(1)
	wrapped := func(w *worker) {
		defer done.Done()
		task(w)
	}
	select {
	case p.tasks <- wrapped:
		return nil
	case <-ctx.Done():
		done.Done()
		return ctx.Err()
	}
}

// begin empties the worker for a new block.
func (w *worker) begin() {
	w.ids, w.codes, w.bad, w.count = w.ids[:0], w.codes[:0], nil, 0
	w.lines, w.multiline = 1, Multiline{}
}

// reject notes a bad row. It counts as many as it has lines: what a stray quote
// encloses are rows too.
func (w *worker) reject(row int64, value []byte, reason string) {
	w.count += w.lines
	if len(w.bad) < w.keep {
		w.bad = append(w.bad, w.badRow(row, value, reason))
	}
}

func (w *worker) badRow(row int64, value []byte, reason string) BadRow {
	b := BadRow{Row: row, Value: clip(value, maxValue), Reason: reason}
	if w.lines > 1 {
		b.Lines = w.lines
	}
	return b
}

// end passes the block's rows on.
func (w *worker) end(j *job) {
	w.sink.add(w.ids, w.codes)
	j.done(w)
}

// oneSet is the destination of the inputs of one segment.
type oneSet struct{ set *bitmap.Set }

func (o *oneSet) isTable() bool { return false }

func (o *oneSet) newSink() sink { return &setSink{writer: o.set.NewWriter()} }

type setSink struct{ writer *bitmap.Writer }

func (s *setSink) code([]byte) (uint8, error)  { return 0, errors.New("not a table") }
func (s *setSink) add(ids []uint32, _ []uint8) { s.writer.Add(ids) }
func (s *setSink) flush()                      { s.writer.Flush() }

// table is the destination of tables. Codes are given in the order in which
// names are first seen, which differs from run to run; nothing depends on it.
type table struct {
	mu    sync.Mutex
	known []string // nil: every name
	codes map[string]uint8
	names []string
	sets  []*bitmap.Set
	// refused are the first names that are none, which repeat by the million where a whole export spells them otherwise.
	refused map[string]error
}

func newTable(known []string) *table {
	return &table{known: known, codes: map[string]uint8{}, refused: map[string]error{}}
}

func (t *table) isTable() bool { return true }

func (t *table) newSink() sink {
	return &tableSink{table: t, codes: map[string]uint8{}}
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

func (s *tableSink) code(name []byte) (uint8, error) {
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
