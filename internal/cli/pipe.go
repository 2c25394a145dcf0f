package cli

import (
	"context"
	"sort"
	"time"
)

// An outlet reports the number of unread bytes in an output such as a pipe. A byte is unread until the consumer has
// read the byte.
type outlet interface {
	// drained waits until the consumer has read the whole output, for at most the time "most". drained returns the
	// number of unread bytes. If no process can read the output any more, the error is EPIPE.
	drained(most time.Duration) (unread int, err error)
	// restore undoes the changes that outletOf made to the output.
	restore()
}

// drainStep is the longest time for which Copy waits for the consumer of the output before it checks the context
// again.
const drainStep = 50 * time.Millisecond

// The type flight describes the lines of one write to the output. The consumer of the output reads the lines of a
// flight one after another.
type flight struct {
	start   int       // beginning of the first line in the block
	ends    []int     // end of each line in the block
	written int       // number of bytes
	from    int64     // number of lines that were copied before
	taken   int       // number of lines that the consumer has read completely
	until   time.Time // a line that the consumer reads later needs a second permit
}

// The method "settle" counts the lines of a write that the consumer of the output has read. The argument "unread" is
// the number of bytes of the output that the consumer has not read yet.
func (c *Copy) settle(f *flight, unread int) {
	f.taken = max(f.taken, sort.SearchInts(f.ends, f.start+f.written-unread+1))
	c.through.Store(f.from + int64(f.taken))
	c.unread.Store(int64(len(f.ends) - f.taken))
	c.Reached(c.Lines())
}

// The method "deliver" waits until the consumer of the output has read the lines of a write. The result "late" is the
// number of lines that the consumer had not read by the time of their permits.
func (c *Copy) deliver(ctx context.Context, f *flight) (late int, err error) {
	for late = len(f.ends); ; {
		step, left := drainStep, time.Until(f.until)
		if left > 0 {
			step = min(step, left)
		}
		stopped := ctx.Err() // after the context ends, the consumer gets one more step
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
