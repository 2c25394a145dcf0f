package testkit

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that stands still until a test moves it. Clock is safe for concurrent use.
type Clock struct{ nanos atomic.Int64 }

// NewClock returns a clock at the real time, truncated to milliseconds, the resolution of the stores.
func NewClock() *Clock { return NewClockAt(time.Now().Truncate(time.Millisecond)) }

// NewClockAt returns a clock at the given time.
func NewClockAt(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now returns the time of the clock, in UTC.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }

// Set sets the clock to an earlier or later time.
func (c *Clock) Set(now time.Time) { c.nanos.Store(now.UnixNano()) }

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }
