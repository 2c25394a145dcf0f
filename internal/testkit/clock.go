package testkit

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that stands still until it is moved. It is safe for
// concurrent use.
type Clock struct{ nanos atomic.Int64 }

// NewClock is a clock that shows the real time, cut to its millisecond, which is
// what the stores count.
func NewClock() *Clock { return NewClockAt(time.Now().Truncate(time.Millisecond)) }

// NewClockAt is a clock that shows a time.
func NewClockAt(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now is what the clock shows, in UTC.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }

// Set makes the clock show a time, earlier or later.
func (c *Clock) Set(now time.Time) { c.nanos.Store(now.UnixNano()) }

// Advance moves the clock on by d.
func (c *Clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }
