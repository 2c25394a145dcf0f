package cli

import (
	"context"
	"io"
	"sort"
	"sync/atomic"
)

// Copy copies lines byte by byte from a reader to a writer, at the pace that Take allows. Run may be called once.
type Copy struct {
	From io.Reader
	To   io.Writer
	Skip int64 // lines at the beginning that are not copied
	Take take
	// Reached receives the number of copied lines, including the skipped ones.
	Reached func(lines int64)

	through atomic.Int64
}

// take waits until lines may be copied, and returns their number. The number is at most most.
type take = func(ctx context.Context, most int) (int, error)

// readError reports that the input cannot be read further or has a fault.
type readError struct{ error }

// Unwrap returns the cause.
func (e *readError) Unwrap() error { return e.error }

// writeError reports that the output cannot be written further.
type writeError struct{ error }

// Unwrap returns the cause.
func (e *writeError) Unwrap() error { return e.error }

// Lines returns the number of copied lines: the skipped lines, and the lines that were written completely.
func (c *Copy) Lines() int64 { return c.Skip + c.through.Load() }

// Run copies until the input ends and then returns nil. After a failure, Run returns the error of Take, a *readError
// or a *writeError.
func (c *Copy) Run(ctx context.Context) error {
	in := reader{from: c.From}
	b, err := in.skip(c.Skip)
	for err == nil {
		for len(b.ends) > 0 {
			n, err := c.Take(ctx, len(b.ends))
			if err != nil {
				return err
			}
			if err := c.write(&b, n); err != nil {
				return &writeError{err}
			}
			c.Reached(c.Lines())
		}
		b, err = in.next()
	}
	if err != io.EOF {
		return &readError{err}
	}
	return nil
}

// pieceSize is the most bytes of one write. A pipe accepts a write of this size completely or not at all, so a hanging
// write has written nothing.
const pieceSize = 4096

// write writes the first n lines of the block.
func (c *Copy) write(b *block, n int) error {
	for n > 0 {
		k := max(1, sort.SearchInts(b.ends[:n], b.start+pieceSize+1))
		written, err := c.To.Write(b.text[b.start:b.ends[k-1]])
		if err != nil {
			k = sort.SearchInts(b.ends[:k], b.start+written+1)
		}
		c.through.Add(int64(k))
		if err != nil {
			return err
		}
		b.drop(k)
		n -= k
	}
	return nil
}
