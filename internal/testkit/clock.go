package testkit

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that stands still until it is moved. It counts milliseconds,
// as the stores do. It is safe for concurrent use.
type Clock struct{ millis atomic.Int64 }

// NewClock is a clock that shows the real time, cut to its millisecond.
func NewClock() *Clock { return NewClockAt(time.Now()) }

// NewClockAt is a clock that shows a time, cut to its millisecond.
func NewClockAt(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now is what the clock shows, in UTC.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.millis.Load()).UTC() }

// Set makes the clock show a time, earlier or later.
func (c *Clock) Set(now time.Time) { c.millis.Store(now.UnixMilli()) }

// Advance moves the clock on by d, whole milliseconds.
func (c *Clock) Advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }
