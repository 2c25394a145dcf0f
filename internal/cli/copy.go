package cli

import (
	"context"
	"io"
	"sort"
	"sync/atomic"

	"capper/client"
)

// The type Copy copies lines unchanged from a reader to a writer, at the rate at which the function Take grants
// permits. A caller may call the method Run only once for each Copy.
//
// If the field Outlet is set, Copy writes lines only after the consumer (the program that reads the output) has read
// the previous lines. With an Outlet, Copy counts a line when the consumer has read the line. If the consumer reads a
// line too late for the line's permit, Copy takes a second permit for the later time.
type Copy struct {
	From io.Reader
	To   io.Writer
	Skip int64 // number of lines at the beginning that are not copied
	Take take
	// Copy calls the function Reached with the number of copied lines, including the skipped lines.
	Reached func(lines int64)
	Outlet  outlet // reports the number of unread bytes; nil: a written line counts as copied

	through atomic.Int64
	needs   atomic.Int64
	unread  atomic.Int64
	late    atomic.Int64
	batch   int // with an Outlet: maximum number of lines in the next write, if above 1
	again   int // number of lines that need a second permit
}

// The type take is the type of a function that waits for permits to copy lines. A function of the type take returns the
// number of its permits (at most the argument "most"), and the time at which the permits expire.
type take = func(ctx context.Context, most int) (client.Start, error)

// readError reports that Copy cannot read more of the input, or that the input is invalid.
type readError struct{ error }

// Unwrap returns the cause of the error.
func (e *readError) Unwrap() error { return e.error }

// writeError reports that Copy cannot write more of the output.
type writeError struct{ error }

// Unwrap returns the cause of the error.
func (e *writeError) Unwrap() error { return e.error }

// The method Lines returns the number of lines that Copy has skipped or completely written. If Outlet is set, Lines
// counts the skipped lines, and the lines that the consumer of the output has read.
func (c *Copy) Lines() int64 { return c.Skip + c.through.Load() }

// The method Unread returns the number of written lines that the consumer of the output has not read yet.
func (c *Copy) Unread() int64 { return c.unread.Load() }

// The method Late returns the number of lines that the consumer of the output read after the time of their permits.
func (c *Copy) Late() int64 { return c.late.Load() }

// The method Needs returns the number of permits for the lines that Copy has read so far, including second permits.
func (c *Copy) Needs() int64 { return c.needs.Load() }

// The method Run copies lines until the input ends, and then returns nil. If copying fails, the error of Run is an
// error of Take, a *readError or a *writeError.
func (c *Copy) Run(ctx context.Context) error {
	in := reader{from: c.From}
	b, err := in.skip(c.Skip)
	for err == nil {
		c.needs.Add(int64(len(b.ends)))
		for len(b.ends) > 0 {
			if err := c.some(ctx, &b); err != nil {
				return err
			}
		}
		b, err = in.next()
	}
	if err != io.EOF {
		return &readError{err}
	}
	return nil
}

// The method "some" requests permits, and copies one line of the input block for each granted permit.
func (c *Copy) some(ctx context.Context, b *block) error {
	if c.Outlet != nil {
		return c.hand(ctx, b)
	}
	start, err := c.Take(ctx, len(b.ends))
	if err != nil {
		return err
	}
	if err := c.write(b, start.Permits); err != nil {
		return &writeError{err}
	}
	c.Reached(c.Lines())
	return nil
}

// The method "hand" writes as many lines as the consumer of the output will probably read in time, and waits until the
// consumer has read them.
func (c *Copy) hand(ctx context.Context, b *block) error {
	for c.again > 0 {
		start, err := c.Take(ctx, c.again)
		if err != nil {
			return err
		}
		c.again -= start.Permits
	}
	start, err := c.Take(ctx, min(max(c.batch, 1), piece(b, len(b.ends))))
	if err != nil {
		return err
	}
	n := start.Permits
	f := flight{start: b.start, ends: b.ends[:n], from: c.through.Load(), until: start.Until}
	f.written, err = c.To.Write(b.text[b.start:b.ends[n-1]])
	if err != nil {
		unread, _ := c.Outlet.drained(0)
		c.settle(&f, unread)
		return &writeError{err}
	}
	late, err := c.deliver(ctx, &f)
	if c.batch = max(c.batch, 2*n); late > 0 {
		c.batch = n - late
	}
	b.drop(n)
	if err == nil {
		c.again = late
		c.late.Add(int64(late))
		c.needs.Add(int64(late))
	}
	return err
}

// pieceSize is the maximum number of bytes in one write. A pipe accepts a write of at most pieceSize bytes completely
// or not at all, so a blocked write has not written anything.
const pieceSize = 4096

// The function "piece" returns the number of lines, at most n, that fit into one write to the pipe.
func piece(b *block, n int) int { return max(1, sort.SearchInts(b.ends[:n], b.start+pieceSize+1)) }

// The method "write" writes the first n lines of the block of input lines to the output.
func (c *Copy) write(b *block, n int) error {
	for n > 0 {
		k := piece(b, n)
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
