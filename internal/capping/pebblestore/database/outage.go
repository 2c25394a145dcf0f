package database

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// outage is why and how far a store is out of service.
type outage struct {
	fault   atomic.Pointer[error] // why nothing can be written any more
	down    chan struct{}         // closed: there is a fault
	wrecked chan struct{}         // closed: Pebble must not be called any more
	ruined  atomic.Bool
	flush   atomic.Pointer[string] // what the last attempt to empty a write buffer met
	seldom  seldom
}

func newOutage() outage {
	return outage{down: make(chan struct{}), wrecked: make(chan struct{})}
}

// Broken is why nothing can be written any more, nil while all is well.
func (d *DB) Broken() error {
	if fault := d.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// fail puts the store out of service: after a refused write nobody knows what
// is on the disk, so nothing may be allowed on top of it before a restart.
func (d *DB) fail(err error) error {
	err = fmt.Errorf("out of service until restarted: %w", err)
	if d.fault.CompareAndSwap(nil, &err) {
		close(d.down)
		d.config.CountError("write")
		if d.disk.Serving() { // else Open reports it
			d.config.Logger.Error("the embedded store is out of service", "error", err.Error())
		}
	}
	return d.Broken()
}

// wreck also keeps everybody away from Pebble, which may hold its mutexes for
// ever.
func (d *DB) wreck(err error) error {
	err = d.fail(err)
	if d.ruined.CompareAndSwap(false, true) {
		close(d.wrecked)
	}
	return err
}

// Rescue is work with a panic as its error. Whether the panic is Pebble's or
// our own, what it has left undone is unknown: the store is out of service, its
// stack is in the log, and the process serves on, as a call that ends it would
// end it again when it is retried.
func (d *DB) Rescue(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			d.config.Logger.Error("a panic in the embedded store", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			if cause, ok := r.(error); ok {
				err = d.wreck(cause)
			} else {
				err = d.wreck(fmt.Errorf("panic: %v", r))
			}
		}
	}()
	return work()
}

// background reports that work of Pebble's own failed, which it tries again.
func (d *DB) background(err error) {
	d.config.CountError("background")
	if d.disk.TableRefused() && !d.disk.Serving() {
		_ = d.fail(err) // Open ends with it; without an end, Pebble would try again
		return
	}
	if repeats, ok := d.seldom.speak(time.Now()); ok && d.Broken() == nil {
		d.config.Logger.Error("the embedded store's background work met an error, and is tried again",
			"error", err.Error(), "unreported", repeats)
	}
}

// emptyBuffer is Pebble's error when a write buffer that held nothing came to be
// emptied, as after a start at which nothing had been written since the last.
const emptyBuffer = "pebble: empty table"

// flushed notes how the last attempt to empty a write buffer ended.
func (d *DB) flushed(err error) {
	if err == nil || err.Error() == emptyBuffer {
		d.flush.Store(nil)
		return
	}
	text := "writes are durable and gather in memory, as no file can be made of them: " + err.Error()
	d.flush.Store(&text)
}

// seldom lets one in a minute through.
type seldom struct {
	last   atomic.Int64 // unix seconds
	unsaid atomic.Int64
}

func (l *seldom) speak(now time.Time) (unsaid int64, ok bool) {
	last := l.last.Load()
	if now.Unix()-last < 60 || !l.last.CompareAndSwap(last, now.Unix()) {
		l.unsaid.Add(1)
		return 0, false
	}
	return l.unsaid.Swap(0), true
}
