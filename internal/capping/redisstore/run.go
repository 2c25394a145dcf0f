package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

const (
	callUsers      = 512 // users of one call, at most
	window         = 64  // calls of one run in flight on one node
	heldCalls      = 256 // calls of one run for one node that are in flight or wait for another attempt
	firstPause     = 10 * time.Millisecond
	longPause      = 250 * time.Millisecond
	sideGrace      = 20 * time.Millisecond // for what is stored beside the logs, when all users are settled
	maxServerTries = 3                     // a call is given up then
)

// run does one job: it cuts the batch into calls, keeps a window of them in
// flight on every node, and tries again what failed, until all is answered or
// the context ends. It runs on its caller's goroutine; lanes only ever see
// calls, so that nothing of the batch is touched after it returned.
type run struct {
	store   *Store
	job     job
	durable bool
	most    int         // users of a call
	over    atomic.Bool // lanes drop what they have not sent yet
	inbox   inbox

	plan    script.Plan
	fronts  []*front
	waiting []*call // for their time to be tried again
	flying  int
	strayed bool // a part moved to another front
	open    int  // users and single commands that are not settled
	faults  faults
	arrived []*call
	ready   []*call
	free    []*call // settled: their buffers serve again
}

// front is what is left to send to one node.
type front struct {
	sender *sender // nil: no node serves the slots
	node   *topology.Node
	parts  []script.Part // with items that are in no call
	ready  []*call
	flying int // calls that the node has
	held   int // calls that are not settled
}

// reset readies the run for another job. Settled calls keep their buffers.
func (r *run) reset() {
	r.job, r.open, r.faults = nil, 0, faults{}
	for _, f := range r.fronts {
		f.parts, f.ready = f.parts[:0], f.ready[:0]
	}
	if len(r.fronts) > 64 { // nodes come and go
		r.fronts = nil
	}
	for _, c := range r.free {
		c.job, c.items, c.node = nil, nil, nil
	}
	r.free = r.free[:min(len(r.free), 64)]
	select {
	case <-r.inbox.signal:
	default:
	}
}

func (r *run) front(n *topology.Node) *front {
	for _, f := range r.fronts {
		if f.node == n {
			return f
		}
	}
	f := &front{node: n, sender: r.store.senders.of(n)}
	r.fronts = append(r.fronts, f)
	return f
}

// users lays the users of a batch out for the run.
func (r *run) users(users []capping.UserID) {
	r.plan.Arrange(r.store.layout, users)
	r.open += len(users)
	for _, part := range r.plan.Parts {
		f := r.front(r.store.top.Route(part.Partition))
		f.parts = append(f.parts, part)
	}
}

// add puts a single command into the run.
func (r *run) add(c *call) {
	c.run, c.since = r, capping.Never
	r.open += c.weight()
	f := r.front(r.store.top.Route(c.partition))
	f.ready = append(f.ready, c)
}

// loop runs until everything is settled or ctx ends.
func (r *run) loop(ctx context.Context) {
	var due, grace <-chan time.Time
	for {
		r.fill()
		if r.flying == 0 && len(r.waiting) == 0 {
			return
		}
		if r.open == 0 && grace == nil {
			grace = time.After(sideGrace)
		}
		if next, ok := r.nextDue(); ok {
			due = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			r.abandon(ctx)
			return
		case <-grace:
			return
		case <-due:
			r.wake()
		case <-r.inbox.signal:
			r.arrived = r.inbox.drain(r.arrived[:0])
			for _, c := range r.arrived {
				r.flying--
				c.front.flying--
				r.settle(c)
			}
		}
	}
}

// fill submits calls where there is room. A part whose route changed moves to
// a front that may have been passed already.
func (r *run) fill() {
	for r.strayed = true; r.strayed; {
		r.strayed = false
		r.fillFronts()
	}
}

func (r *run) fillFronts() {
	for i := 0; i < len(r.fronts); i++ { // fronts may grow meanwhile
		f := r.fronts[i]
		r.ready = r.ready[:0]
		for f.flying < window {
			c := r.next(f)
			if c == nil {
				break
			}
			c.hold(f)
			if err := r.refusal(c); err != nil {
				c.err = err
				r.settle(c)
				continue
			}
			f.flying++
			r.ready = append(r.ready, c)
		}
		if len(r.ready) > 0 {
			r.flying += len(r.ready)
			f.sender.submit(r.ready)
		}
	}
}

// refusal is why the call is not sent, or nil.
func (r *run) refusal(c *call) error {
	if c.node == nil {
		return fault.ErrNoRoute
	}
	if b := r.store.top.Bar(c.partition); b != nil {
		return b
	}
	return nil
}

// hold counts the call to a front until it is settled.
func (c *call) hold(f *front) {
	c.release()
	c.front, c.node = f, f.node
	f.held++
}

func (c *call) release() {
	if c.front != nil {
		c.front.held--
		c.front = nil
	}
}

// next is the next call for the front's node, or nil.
func (r *run) next(f *front) *call {
	if n := len(f.ready); n > 0 {
		c := f.ready[0]
		f.ready = f.ready[1:]
		return c
	}
	for len(f.parts) > 0 && f.held < heldCalls {
		part := f.parts[0]
		f.parts = f.parts[1:]
		if now := r.store.top.Route(part.Partition); now != f.node {
			other := r.front(now)
			other.parts = append(other.parts, part)
			r.strayed = true
			continue
		}
		c := r.call(part.Partition, r.plan.Items[part.Start:min(part.Start+r.most, part.End)])
		if part.Start += len(c.items); part.Start < part.End {
			f.parts = append(f.parts, part)
		}
		return c
	}
	return nil
}

// call is a call of the run's job for items of a partition.
func (r *run) call(partition int, items []uint64) *call {
	c := &call{}
	if n := len(r.free); n > 0 {
		c = r.free[n-1]
		r.free = r.free[:n-1]
		c.tries, c.serverTries, c.asking = 0, 0, false
	}
	c.run, c.job, c.partition, c.items, c.durable, c.since = r, r.job, partition, items, r.durable, capping.Never
	c.job.encode(c)
	return c
}

func (r *run) nextDue() (due time.Time, ok bool) {
	for _, c := range r.waiting {
		if !ok || c.due.Before(due) {
			due, ok = c.due, true
		}
	}
	return due, ok
}

// wake makes the calls ready whose time has come.
func (r *run) wake() {
	now, kept := time.Now(), r.waiting[:0]
	for _, c := range r.waiting {
		if c.due.After(now) {
			kept = append(kept, c)
			continue
		}
		r.again(c)
	}
	r.waiting = kept
}

// again makes the call ready for the node that holds its slot now.
func (r *run) again(c *call) {
	c.asking = false
	f := r.front(r.store.top.Route(c.partition))
	f.ready = append(f.ready, c)
}
