package cli

import (
	"context"
	"io"
	"sort"
	"sync/atomic"
)

// Copy copies lines, byte by byte. Its Run is called once.
type Copy struct {
	From io.Reader
	To   io.Writer
	Skip int64 // so many lines at the beginning are not copied
	Take take
	// Reached is told how many lines went through, those that were skipped included.
	Reached func(lines int64)

	through atomic.Int64
}

// take waits until a line may go through, and tells how many, of at most so many.
type take = func(ctx context.Context, most int) (int, error)

// readError is that the input could not be read on, or has a fault.
type readError struct{ error }

// Unwrap is the cause.
func (e *readError) Unwrap() error { return e.error }

// writeError is that the lines could not be written on.
type writeError struct{ error }

// Unwrap is the cause.
func (e *writeError) Unwrap() error { return e.error }

// Lines is how many lines went through: those that were written whole, behind those
// that were skipped.
func (c *Copy) Lines() int64 { return c.Skip + c.through.Load() }

// Run copies until the input ends, and returns nil then; else the error of Take, a
// *ReadError or a *WriteError.
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

// pieceSize is what is written at once: a pipe takes so much whole or not at all, so
// that nothing of a write that hangs has gone through.
const pieceSize = 4096

// write writes the first n lines.
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
