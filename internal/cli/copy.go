package cli

import (
	"context"
	"io"
	"sort"
	"sync/atomic"

	"capper/client"
)

// Copy copies lines byte by byte from a reader to a writer, at the pace that Take allows. Run may be called once.
//
// With an Outlet, Copy writes the next lines when the reader of the output has taken the ones before, and counts the
// lines that the reader has taken. Lines that the reader takes late are sends that need permits of that later time, so
// Copy takes permits for them a second time.
type Copy struct {
	From io.Reader
	To   io.Writer
	Skip int64 // lines at the beginning that are not copied
	Take take
	// Reached receives the number of copied lines, including the skipped ones.
	Reached func(lines int64)
	Outlet  outlet // nil: written lines count as copied

	through atomic.Int64
	unread  atomic.Int64
	late    atomic.Int64
	batch   int // with an Outlet: most lines of the next write, if more than 1
	again   int // lines that need permits a second time
}

// take waits until lines may be copied, and returns their number, at most most, with the time until which they may be
// copied.
type take = func(ctx context.Context, most int) (client.Start, error)

// readError reports that the input cannot be read further or has a fault.
type readError struct{ error }

// Unwrap returns the cause.
func (e *readError) Unwrap() error { return e.error }

// writeError reports that the output cannot be written further.
type writeError struct{ error }

// Unwrap returns the cause.
func (e *writeError) Unwrap() error { return e.error }

// Lines returns the number of copied lines: the skipped lines, and the lines that were written completely. With an
// Outlet, the reader has taken all of these lines.
func (c *Copy) Lines() int64 { return c.Skip + c.through.Load() }

// Unread returns the number of lines that were written and that the reader of the Outlet has not taken.
func (c *Copy) Unread() int64 { return c.unread.Load() }

// Late returns the number of lines that the reader of the Outlet took after the time of their permits.
func (c *Copy) Late() int64 { return c.late.Load() }

// Run copies until the input ends and then returns nil. After a failure, Run returns the error of Take, a *readError
// or a *writeError.
func (c *Copy) Run(ctx context.Context) error {
	in := reader{from: c.From}
	b, err := in.skip(c.Skip)
	for err == nil {
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

// some copies some lines of the block.
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

// hand writes as many lines as the reader is expected to take in time, and waits until it has taken them.
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
	}
	return err
}

// pieceSize is the most bytes of one write. A pipe accepts a write of this size completely or not at all, so a hanging
// write has written nothing.
const pieceSize = 4096

// piece returns how many of the first n lines of the block fit into one write.
func piece(b *block, n int) int { return max(1, sort.SearchInts(b.ends[:n], b.start+pieceSize+1)) }

// write writes the first n lines of the block.
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
