package redisstore

import (
	"context"
	"fmt"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// settle takes a call that came back.
func (r *run) settle(c *call) {
	fix := fault.Of(c.err)
	if fix.Kind == fault.None {
		r.apply(c)
		return
	}
	if fix.Kind == fault.Clock {
		c.err = r.judgeClock(c, &fix)
	}
	err := c.err
	if c.node != nil {
		err = fmt.Errorf("node %s: %w", c.node.Addr(), c.err)
	}
	r.faults.attempt(fix.Kind, err)
	c.tries++
	if fix.Kind == fault.Server {
		c.serverTries++
	}
	if fix.Unknown && c.now < c.since {
		c.since = c.now
	}
	if fix.Vet && c.node != nil {
		c.node.VetSoon()
	}
	if fix.Refresh {
		r.store.top.RefreshSoon()
	}
	if fix.Kind == fault.Clock && fix.Off > 0 {
		r.store.top.DoubtSigns() // a server that is ahead may have let logs expire
	}
	if c.side && !fix.Now {
		c.release()
		return
	}
	if r.hopeless(c, &fix) {
		r.leave(c, fix.Kind, err)
		return
	}
	r.retry(c, &fix)
}

// hopeless reports whether another attempt could not end otherwise.
func (r *run) hopeless(c *call, fix *fault.Remedy) bool {
	switch fix.Kind {
	case fault.Server:
		return c.serverTries >= maxServerTries
	case fault.Clock:
		return true
	}
	return fix.Final
}

// judgeClock tells a wrong clock from a call that was late: the node read its
// clock between the attempt's beginning and now.
func (r *run) judgeClock(c *call, fix *fault.Remedy) error {
	skew := r.store.config.ClockSkew
	e := &clockError{off: fix.Off, skew: skew, late: late(fix.Off, time.Since(c.began), skew)}
	if e.late {
		fix.Kind = fault.Lag
	}
	return e
}

func (r *run) retry(c *call, fix *fault.Remedy) {
	switch {
	case fix.Kind == fault.Script:
		c.node.MarkUnloaded()
	case fix.Kind == fault.Moved && fix.Addr != "":
		r.store.top.Redirect(c.partition, c.node, fix.Addr)
	case fix.Kind == fault.Ask && fix.Addr != "":
		c.asking = true
		f := r.front(r.store.top.Named(c.node, fix.Addr))
		f.ready = append(f.ready, c)
		return
	case fix.Kind == fault.TryAgain && r.split(c):
		return
	}
	if fix.Now && c.tries <= 2 {
		r.again(c)
		return
	}
	c.due = time.Now().Add(min(firstPause<<min(c.tries, 10), longPause))
	r.waiting = append(r.waiting, c)
}

// split makes a call for each bucket of c and reports whether there were
// several.
func (r *run) split(c *call) bool {
	l := r.store.layout
	if len(c.items) == 0 || l.Bucket(script.UserOf(c.items[0])) == l.Bucket(script.UserOf(c.items[len(c.items)-1])) {
		return false
	}
	c.release()
	for rest := c.items; len(rest) > 0; {
		n := 1
		for n < len(rest) && l.Bucket(script.UserOf(rest[n])) == l.Bucket(script.UserOf(rest[0])) {
			n++
		}
		part := r.call(c.partition, rest[:n])
		part.since, part.tries, part.serverTries = c.since, c.tries, c.serverTries
		r.again(part)
		rest = rest[n:]
	}
	return true
}

// apply takes a reply that holds.
func (r *run) apply(c *call) {
	n, err := c.job.apply(c)
	if err == nil && n == 0 && len(c.items) > 0 {
		err = script.ErrReply
	}
	if err != nil {
		r.leave(c, fault.Server, err)
		return
	}
	if n < len(c.items) {
		r.open -= n
		c.items = c.items[n:]
		c.job.encode(c)
		r.again(c)
		return
	}
	c.release()
	r.open -= c.weight()
	if c.items != nil {
		r.free = append(r.free, c)
	}
}

// leave gives the call's users up.
func (r *run) leave(c *call, k fault.Kind, err error) {
	c.release()
	r.open -= c.weight()
	r.faults.undecided(k, c.weight(), err)
}

// abandon counts what is open when time is up.
func (r *run) abandon(ctx context.Context) {
	r.over.Store(true)
	r.faults.undecided(fault.Deadline, r.open, context.Cause(ctx))
}
