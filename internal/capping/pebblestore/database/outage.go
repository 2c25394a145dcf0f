package database

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// The type "outage" holds the reason why the store is out of service, and whether the store may still call Pebble.
type outage struct {
	fault      atomic.Pointer[error] // reason why nothing can be written; nil: none
	down       chan struct{}         // closed when the store goes out of service
	isolated   chan struct{}         // closed when the store must not call Pebble any more
	isIsolated atomic.Bool
	flush      atomic.Pointer[string] // the error of the last attempt to flush a write buffer
	spoken     minuteLimit
}

func newOutage() outage {
	return outage{down: make(chan struct{}), isolated: make(chan struct{})}
}

// The method Broken returns the reason why the store cannot write, or nil if the store works.
func (d *DB) Broken() error {
	if fault := d.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// takeDown takes the store out of service after the error err. After a refused write, the content of the disk is
// unknown, so the store must not allow sends before a restart.
func (d *DB) takeDown(err error) error { return d.fail(err, func() {}) }

// The method "fail" takes the store out of service after an error, like takeDown. The method "fail" calls the function
// "also" before waiting calls get the error.
func (d *DB) fail(err error, also func()) error {
	err = fmt.Errorf("the embedded store is out of service until capper restarts: %w", err)
	first := d.fault.CompareAndSwap(nil, &err)
	also()
	if first {
		close(d.down)
		d.config.CountError("write")
		if d.disk.Serving() { // otherwise Open returns the error
			d.config.Logger.Error("the embedded store is out of service", "error", err.Error())
		}
	}
	return d.Broken()
}

// The method "isolate" takes the store out of service and prevents all further calls to Pebble, because Pebble may hold
// its mutexes for ever.
func (d *DB) isolate(err error) error {
	return d.fail(err, func() {
		if d.isIsolated.CompareAndSwap(false, true) {
			close(d.isolated)
		}
	})
}

// The method Rescue runs the function "work", and returns a panic in this function as an error. After a panic, the
// state of the database is unknown, so Rescue takes the store out of service and logs the stack. The process continues,
// because a retry of the same call would otherwise end the process again. The method Rescue uses the context only for
// the log.
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

// reportBackground logs an error of Pebble's background work, such as a flush. Pebble retries failed background work.
func (d *DB) reportBackground(err error) {
	d.config.CountError("background")
	if d.disk.TableRefused() && !d.disk.Serving() {
		_ = d.takeDown(err) // Open returns the error; Pebble would retry without end
		return
	}
	if repeats, ok := d.spoken.allow(time.Now()); ok && d.Broken() == nil {
		d.config.Logger.Error("background work of the embedded store failed and will be retried",
			"error", err.Error(), "unreported", repeats)
	}
}

// emptyBuffer is Pebble's error when it flushes an empty write buffer, for example if nothing was written between two
// starts.
const emptyBuffer = "pebble: empty table"

// noteFlush records the result of the last attempt to flush a write buffer.
func (d *DB) noteFlush(err error) {
	if err == nil || err.Error() == emptyBuffer {
		d.flush.Store(nil)
		return
	}
	text := "writes are durable but collect in memory, because no data file can be written: " + err.Error()
	d.flush.Store(&text)
}

// minuteLimit allows one log line a minute.
type minuteLimit struct {
	last    atomic.Int64 // Unix time in seconds
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
