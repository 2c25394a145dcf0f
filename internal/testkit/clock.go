package testkit

import (
	"sync/atomic"
	"time"
)

// A Clock is a clock whose time changes only when a test sets the time. A Clock is safe for concurrent use.
type Clock struct{ nanos atomic.Int64 }

// NewClock returns a Clock that shows the present time, truncated to milliseconds. A millisecond is also the
// resolution of times in the stores.
func NewClock() *Clock { return NewClockAt(time.Now().Truncate(time.Millisecond)) }

// NewClockAt returns a Clock that shows the given time.
func NewClockAt(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now returns the time that the clock shows, in UTC.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }

// Set sets the clock to the given time, which may be earlier or later.
func (c *Clock) Set(now time.Time) { c.nanos.Store(now.UnixNano()) }

// Advance sets the clock forward by the duration d.
func (c *Clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }
