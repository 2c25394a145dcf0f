package redisstore

import (
	"context"
	"fmt"
	"time"

	"capper/internal/capping/redisstore/script"
)

// settle takes a call that came back.
func (r *run) settle(c *call) {
	fix := remedyOf(c.err)
	if fix.kind == kindNone {
		r.apply(c)
		return
	}
	if fix.kind == kindClock {
		c.err = r.judgeClock(c, &fix)
	}
	err := c.err
	if c.node != nil {
		err = fmt.Errorf("node %s: %w", c.node.addr, c.err)
	}
	r.faults.attempt(fix.kind, err)
	c.tries++
	if fix.kind == kindServer {
		c.serverTries++
	}
	if fix.unknown && c.now < c.since {
		c.since = c.now
	}
	if fix.vet && c.node != nil {
		c.node.vetted.Store(0)
	}
	if fix.refresh {
		r.store.top.outdated()
	}
	if fix.kind == kindClock && fix.off > 0 {
		r.store.top.alarm() // a server that is ahead may have let logs expire
	}
	if c.side && !fix.now {
		c.release()
		return
	}
	if r.hopeless(c, &fix) {
		r.leave(c, fix.kind, err)
		return
	}
	r.retry(c, &fix)
}

// hopeless reports whether another attempt could not end otherwise.
func (r *run) hopeless(c *call, fix *remedy) bool {
	switch fix.kind {
	case kindServer:
		return c.serverTries >= maxServerTries
	case kindClock:
		return true
	}
	return fix.final
}

// judgeClock tells a wrong clock from a call that was late: the node read its
// clock between the attempt's beginning and now.
func (r *run) judgeClock(c *call, fix *remedy) error {
	skew := r.store.config.ClockSkew
	e := &clockError{off: fix.off, skew: skew, late: late(fix.off, time.Since(c.began), skew)}
	if e.late {
		fix.kind = kindLag
	}
	return e
}

func (r *run) retry(c *call, fix *remedy) {
	switch {
	case fix.kind == kindScript:
		c.node.scripts.Store(false)
	case fix.kind == kindMoved && fix.addr != "":
		r.store.top.moved(c.partition, c.node.beside(fix.addr))
	case fix.kind == kindAsk && fix.addr != "":
		c.asking = true
		f := r.front(r.store.top.node(c.node.beside(fix.addr)))
		f.ready = append(f.ready, c)
		return
	case fix.kind == kindTryAgain && r.split(c):
		return
	}
	if fix.now && c.tries <= 2 {
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
		r.leave(c, kindServer, err)
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
func (r *run) leave(c *call, k kind, err error) {
	c.release()
	r.open -= c.weight()
	r.faults.undecided(k, c.weight(), err)
}

// abandon counts what is open when time is up.
func (r *run) abandon(ctx context.Context) {
	r.over.Store(true)
	r.faults.undecided(kindDeadline, r.open, context.Cause(ctx))
}
