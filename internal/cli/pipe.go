package cli

import (
	"context"
	"sort"
	"time"
)

// outlet reports how much of the output its reader has not taken yet.
type outlet interface {
	// drained waits until the reader has taken everything, or for at most the given time, and returns the number of
	// bytes that the reader has not taken. If there is no reader any more, the error is EPIPE.
	drained(most time.Duration) (unread int, err error)
	// restore undoes changes to the output.
	restore()
}

// drainStep is the longest time for which a wait for the reader ignores the context.
const drainStep = 50 * time.Millisecond

// flight is a write of lines, which the reader takes one after the other.
type flight struct {
	start   int       // start of the first line, in the block
	ends    []int     // end of each line
	written int       // bytes
	from    int64     // lines that were copied before
	taken   int       // lines that the reader has taken completely
	until   time.Time // lines that the reader takes later need permits of that later time
}

// settle counts the lines that the reader has taken when it has not taken the last unread bytes.
func (c *Copy) settle(f *flight, unread int) {
	f.taken = max(f.taken, sort.SearchInts(f.ends, f.start+f.written-unread+1))
	c.through.Store(f.from + int64(f.taken))
	c.unread.Store(int64(len(f.ends) - f.taken))
	c.Reached(c.Lines())
}

// deliver waits until the reader has taken the lines of a write. The result late is the number of lines that the reader
// took after the time until which their permits may be used.
func (c *Copy) deliver(ctx context.Context, f *flight) (late int, err error) {
	for late = len(f.ends); ; {
		step, left := drainStep, time.Until(f.until)
		if left > 0 {
			step = min(step, left)
		}
		stopped := ctx.Err() // the reader has one more step after that
		unread, err := c.Outlet.drained(step)
		c.settle(f, unread)
		if left > 0 {
			late = len(f.ends) - f.taken
		}
		switch {
		case err != nil:
			return late, &writeError{err}
		case f.taken == len(f.ends):
			return late, nil
		case stopped != nil:
			return late, stopped
		}
	}
}
