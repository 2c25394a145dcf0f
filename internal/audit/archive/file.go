package archive

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
)

// FileError reports a fault in one audit file. The records of other audit files remain readable.
type FileError struct {
	Key string
	Err error
}

func (e *FileError) Error() string { return e.Key + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// errNotAsIndexed reports that the SHA-256 of an audit file differs from the SHA-256 in its index entry.
var errNotAsIndexed = errors.New("SHA-256 mismatch")

// A file is an audit file in memory whose checksums were correct.
type file struct {
	key     string
	raw     []byte
	first   capping.Instant   // the earliest At
	notLate []capping.Instant // for each record, the earliest At of the record and of all later records in the file
}

// readRolled reads and checks the complete audit file that an index entry names. If the audit file was removed,
// readRolled returns an empty file.
func (a *Archive) readRolled(ctx context.Context, e *Entry) (*file, error) {
	raw, e, err := a.Bytes(ctx, e)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return &file{first: capping.Never}, nil
	}
	f, err := a.scan(e.Key, raw, false)
	if err != nil {
		return nil, &FileError{e.Key, err}
	}
	return f, nil
}

// The method Bytes reads the audit file that an index entry names. If a compaction has rewritten the audit file, Bytes
// returns the new file, and the result "now" is the index entry of the new file. If both the audit file and its index
// entry were removed, the result "raw" is nil. The error of Bytes is a *FileError or the error of ctx.
func (a *Archive) Bytes(ctx context.Context, e *Entry) (raw []byte, now *Entry, err error) {
	raw, err = a.at.Read(ctx, e.Key, e.Bytes)
	if errors.Is(err, objects.ErrNotFound) {
		again, missing := a.readEntry(ctx, e.IndexKey)
		switch {
		case errors.Is(missing, objects.ErrNotFound):
			return nil, e, nil
		case missing != nil:
			return nil, e, missing
		case again.Key != e.Key:
			return a.Bytes(ctx, again)
		}
	}
	if ctx.Err() != nil {
		return nil, e, ctx.Err()
	}
	if err != nil {
		return nil, e, &FileError{e.Key, err}
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != e.SHA256 {
		return nil, e, &FileError{e.Key, errNotAsIndexed}
	}
	return raw, e, nil
}

// maxOpenBytes is the maximum number of bytes that the archive reads of an open audit file. A writer begins the next
// audit file long before a file has maxOpenBytes.
const maxOpenBytes = 4 << 30

// readOpen reads an audit file that its writer has not closed, up to the last complete record. The method readOpen
// returns nil if the writer has closed and uploaded the file meanwhile.
func (a *Archive) readOpen(ctx context.Context, o openFile) (*file, error) {
	raw, err := a.at.Read(ctx, o.key, maxOpenBytes)
	if errors.Is(err, objects.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{o.key, err}
	}
	f, err := a.scan(o.key, raw, true)
	if err != nil {
		return nil, &FileError{o.key, err}
	}
	return f, nil
}

// The method scan checks the kind of ids and all frames (entries) of an audit file. The method scan ignores an
// incomplete frame at the end of an open file.
func (a *Archive) scan(key string, raw []byte, open bool) (*file, error) {
	f := &file{key: key, raw: raw, first: capping.Never}
	r, err := audit.NewReader(bytes.NewReader(raw))
	if err != nil {
		return f, tornIs(err, open)
	}
	if err := r.Header().IDs.Same(a.ids); err != nil {
		return f, err
	}
	for {
		frame, err := r.Next()
		if err != nil {
			if err = tornIs(err, open); err == nil && !open && !r.Ended() {
				err = errors.New("audit file has no end marker")
			}
			f.raw = raw[:r.Offset()]
			f.settle()
			return f, err
		}
		if frame.Record != nil {
			f.notLate = append(f.notLate, frame.Record.At)
		}
	}
}

// tornIs returns nil if the error reports the regular end of an audit file, or an incomplete last frame (entry) of an
// open file. If the error reports a fault of the file, tornIs returns the error unchanged.
func tornIs(err error, open bool) error {
	var torn *audit.TornError
	if errors.Is(err, io.EOF) || open && errors.As(err, &torn) {
		return nil
	}
	return err
}

// The method settle computes, for each record of an audit file, the earliest beginning of the calls in this record and
// all later records.
func (f *file) settle() {
	earliest := capping.Instant(math.MaxInt64)
	for i := len(f.notLate) - 1; i >= 0; i-- {
		earliest = min(earliest, f.notLate[i])
		f.notLate[i] = earliest
	}
	if len(f.notLate) > 0 {
		f.first = earliest
	}
}

// A cursor returns the records of an audit file in the order of At (the beginning of the call). An audit file has the
// records in the order of the ends of the calls. The cursor therefore returns a record only when no later record of the
// file can have an earlier At.
type cursor struct {
	file   *file
	reader *audit.Reader
	read   int
	held   records
}

func newCursor(f *file) (*cursor, error) {
	c := &cursor{file: f}
	if len(f.notLate) == 0 {
		return c, nil
	}
	reader, err := audit.NewReader(bytes.NewReader(f.raw))
	c.reader = reader
	return c, err
}

// The method next returns the remaining record whose call began first, or nil at the end of the file.
func (c *cursor) next() (*audit.Record, error) {
	for c.read < len(c.file.notLate) && (len(c.held) == 0 || c.held[0].At > c.file.notLate[c.read]) {
		frame, err := c.reader.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.file.key, err)
		}
		if frame.Record != nil {
			heap.Push(&c.held, frame.Record)
			c.read++
		}
	}
	if len(c.held) == 0 {
		return nil, nil
	}
	return heap.Pop(&c.held).(*audit.Record), nil
}

// The type "records" is a heap of audit records, sorted by time and then by position in the file.
type records []*audit.Record

func (r records) Len() int           { return len(r) }
func (r records) Less(i, j int) bool { return before(r[i], r[j]) }
func (r records) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *records) Push(x any)        { *r = append(*r, x.(*audit.Record)) }
func (r *records) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = nil
	*r = (*r)[:len(*r)-1]
	return last
}

// The function "before" reports whether the archive returns the record a before the record b.
func before(a, b *audit.Record) bool {
	switch {
	case a.At != b.At:
		return a.At < b.At
	case a.Instance != b.Instance:
		return a.Instance < b.Instance
	}
	return a.Sequence < b.Sequence
}
