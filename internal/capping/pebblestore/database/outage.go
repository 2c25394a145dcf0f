package database

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// outage is why and how far a store is out of service.
type outage struct {
	fault      atomic.Pointer[error] // why nothing can be written any more
	down       chan struct{}         // closed: there is a fault
	isolated   chan struct{}         // closed: Pebble must not be called any more
	isIsolated atomic.Bool
	flush      atomic.Pointer[string] // what the last attempt to empty a write buffer met
	spoken     minuteLimit
}

func newOutage() outage {
	return outage{down: make(chan struct{}), isolated: make(chan struct{})}
}

// Broken is why nothing can be written any more, nil while all is well.
func (d *DB) Broken() error {
	if fault := d.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// takeDown puts the store out of service: after a refused write nobody knows what
// is on the disk, so nothing may be allowed on top of it before a restart.
func (d *DB) takeDown(err error) error { return d.fail(err, func() {}) }

// fail is takeDown, and does also what else has to be so before those who wait are
// told.
func (d *DB) fail(err error, also func()) error {
	err = fmt.Errorf("the embedded store is out of service until capper restarts: %w", err)
	first := d.fault.CompareAndSwap(nil, &err)
	also()
	if first {
		close(d.down)
		d.config.CountError("write")
		if d.disk.Serving() { // else Open reports it
			d.config.Logger.Error("the embedded store is out of service", "error", err.Error())
		}
	}
	return d.Broken()
}

// isolate also keeps everybody away from Pebble, which may hold its mutexes for
// ever.
func (d *DB) isolate(err error) error {
	return d.fail(err, func() {
		if d.isIsolated.CompareAndSwap(false, true) {
			close(d.isolated)
		}
	})
}

// Rescue is work with a panic as its error. Whether the panic is Pebble's or
// our own, what it has left undone is unknown: the store is out of service, its
// stack is in the log, and the process serves on, as a call that ends it would
// end it again when it is retried. The context is only for the log.
func (d *DB) Rescue(ctx context.Context, work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			d.config.Logger.ErrorContext(ctx, "a panic in the embedded store", "panic", fmt.Sprint(r), "stack",
				string(debug.Stack()))
			if cause, ok := r.(error); ok {
				err = d.isolate(cause)
			} else {
				err = d.isolate(fmt.Errorf("panic: %v", r))
			}
		}
	}()
	return work()
}

// reportBackground reports that work of Pebble's own failed, which it tries again.
func (d *DB) reportBackground(err error) {
	d.config.CountError("background")
	if d.disk.TableRefused() && !d.disk.Serving() {
		_ = d.takeDown(err) // Open ends with it; without an end, Pebble would try again
		return
	}
	if repeats, ok := d.spoken.allow(time.Now()); ok && d.Broken() == nil {
		d.config.Logger.Error("background work of the embedded store failed and will be retried",
			"error", err.Error(), "unreported", repeats)
	}
}

// emptyBuffer is Pebble's error when a write buffer that held nothing came to be
// emptied, as after a start at which nothing had been written since the last.
const emptyBuffer = "pebble: empty table"

// noteFlush notes how the last attempt to empty a write buffer ended.
func (d *DB) noteFlush(err error) {
	if err == nil || err.Error() == emptyBuffer {
		d.flush.Store(nil)
		return
	}
	text := "writes are durable but collect in memory, because no data file can be written: " + err.Error()
	d.flush.Store(&text)
}

// minuteLimit lets one in a minute through.
type minuteLimit struct {
	last    atomic.Int64 // unix seconds
	skipped atomic.Int64
}

func (l *minuteLimit) allow(now time.Time) (skipped int64, ok bool) {
	last := l.last.Load()
	if now.Unix()-last < 60 || !l.last.CompareAndSwap(last, now.Unix()) {
		l.skipped.Add(1)
		return 0, false
	}
	return l.skipped.Swap(0), true
}
