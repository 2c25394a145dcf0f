package archive

import (
	"container/heap"
	"context"
	"iter"

	"capper/internal/audit"
	"capper/internal/capping"
)

// filesAhead is the number of audit files that a merge reads and checks in advance.
const filesAhead = 3

// The method Records yields the audit records that the query selects, sorted by At (beginning of the call), instance
// and sequence number. After a *FileError (error about one audit file), the iteration continues with the records of the
// other files. Every other error ends the iteration. The method Records omits erased users; see Erased. The caller of
// Records owns each record.
//
// Records keeps the audit files around the instant of the last yielded record in memory, and the next few files. For a
// given instant, one or two audit files of each instance can have records.
func (a *Archive) Records(ctx context.Context, q Query) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		erased, err := a.Erased(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		m, err := a.newMerge(ctx, q)
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			r, err := m.next()
			switch {
			case err != nil:
				if !yield(nil, err) || ctx.Err() != nil {
					return
				}
			case r == nil || q.Until != 0 && r.At >= q.Until:
				return
			case !q.wants(r):
			default:
				if erased.Apply(r); q.has(r) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// A merge merges the records of several audit files in the order of time.
type merge struct {
	ctx     context.Context
	archive *Archive
	entries []*Entry          // in order, without entries whose files are being read
	ahead   []chan fetched    // fetched contents of the first files, in their order
	starts  []capping.Instant // starts of the files in ahead
	open    []*file           // files that instances are still writing
	faults  []error           // faults to return first
	files   cursors
}

// The type "fetched" is an audit file, or the error that occurred when the archive read the file.
type fetched struct {
	file *file
	err  error
}

// newMerge reads the open audit files, lists the complete audit files, and begins the merge with the open files.
func (a *Archive) newMerge(ctx context.Context, q Query) (*merge, error) {
	listed, err := a.list(ctx, q)
	if err != nil {
		return nil, err
	}
	m := &merge{ctx: ctx, archive: a, entries: listed.entries, faults: listed.faults}
	rolled, err := m.readOpen(listed.open)
	if err == nil && rolled { // some open files were completed since the listing, so the index has them now
		if listed, err = a.list(ctx, q); err == nil {
			m = &merge{ctx: ctx, archive: a, entries: listed.entries, faults: listed.faults}
			_, err = m.readOpen(listed.open)
		}
	}
	if err != nil {
		return nil, err
	}
	inOrder(m.entries)
	for _, f := range m.open {
		if err := m.enter(f); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *merge) readOpen(open []openFile) (rolled bool, err error) {
	for _, o := range open {
		f, err := m.archive.readOpen(m.ctx, o)
		switch {
		case m.ctx.Err() != nil:
			return false, m.ctx.Err()
		case err != nil:
			m.faults = append(m.faults, err)
		case f == nil:
			rolled = true
		default:
			m.open = append(m.open, f)
		}
	}
	return rolled, nil
}

// The method next returns the next record of all audit files, or nil after the last record.
func (m *merge) next() (*audit.Record, error) {
	if len(m.faults) > 0 {
		err := m.faults[0]
		m.faults = m.faults[1:]
		return nil, err
	}
	for m.start() {
		if err := m.take(); err != nil {
			return nil, err
		}
	}
	if len(m.files) == 0 {
		return nil, m.ctx.Err()
	}
	top := m.files[0]
	r := top.first
	first, err := top.next()
	if err != nil || first == nil {
		heap.Pop(&m.files)
	} else {
		top.first = first
		heap.Fix(&m.files, 0)
	}
	if err != nil { // never happens: the archive has checked every frame
		m.faults = append(m.faults, &FileError{top.file.key, err})
	}
	return r, nil
}

// The method start begins to read further audit files in advance. The method start reports whether the next record of
// the merge may be in the first of the files that are read in advance.
func (m *merge) start() bool {
	for len(m.ahead) < filesAhead && len(m.entries) > 0 && m.ctx.Err() == nil {
		e, done := m.entries[0], make(chan fetched, 1)
		m.entries = m.entries[1:]
		m.ahead, m.starts = append(m.ahead, done), append(m.starts, e.From)
		go func() {
			f, err := m.archive.readRolled(m.ctx, e)
			done <- fetched{f, err}
		}()
	}
	return len(m.ahead) > 0 && (len(m.files) == 0 || m.starts[0] <= m.files[0].first.At)
}

// The method take waits for the first of the audit files that are read in advance, and adds this file to the merge.
func (m *merge) take() error {
	got := <-m.ahead[0]
	m.ahead, m.starts = m.ahead[1:], m.starts[1:]
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	if got.err != nil {
		return got.err
	}
	return m.enter(got.file)
}

// The method enter adds an audit file to the merge.
func (m *merge) enter(f *file) error {
	c, err := newCursor(f)
	if err != nil {
		return &FileError{f.key, err}
	}
	first, err := c.next()
	if err != nil {
		return &FileError{f.key, err}
	}
	if first != nil {
		heap.Push(&m.files, &reading{c, first})
	}
	return nil
}

// A reading is an audit file in a merge, together with the file's next record.
type reading struct {
	*cursor
	first *audit.Record
}

// The type "cursors" is a heap of audit files in a merge, sorted by the next records of the files.
type cursors []*reading

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return before(c[i].first, c[j].first) }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)        { *c = append(*c, x.(*reading)) }
func (c *cursors) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
