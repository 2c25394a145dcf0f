package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/trace"
)

const (
	firstPause     = 10 * time.Millisecond
	longPause      = 250 * time.Millisecond
	maxServerTries = 3 // after this number of server errors, the run gives up the command
)

// The method "settle" processes the result of a command's attempt: "settle" accepts the reply, retries the command, or
// gives up.
func (r *Run) settle(c *Command) {
	fix := fault.Of(c.attempt.err)
	if fix.Kind == fault.None {
		r.apply(c)
		return
	}
	if errors.Is(c.attempt.err, capping.ErrCallerGone) {
		r.giveUp(c, fault.Gone, capping.ErrCallerGone)
		return
	}
	if fix.Kind == fault.Clock {
		c.attempt.err = r.judgeClock(c, &fix)
	}
	err := c.attempt.err
	var bar *topology.Bar
	if c.attempt.node != nil && !(errors.As(err, &bar) && bar.Names(c.attempt.node.Addr())) {
		err = fmt.Errorf("node %s: %w", c.attempt.node.Addr(), err)
	}
	r.Faults.addAttempt(fix.Kind, err)
	c.tries++
	if fix.Kind == fault.Server {
		c.serverTries++
	}
	if fix.Unknown {
		c.since = min(c.since, c.attempt.now)
	}
	r.tellTopology(c, &fix)
	r.failed.add(c, fix.Kind)
	switch {
	case r.left:
		r.giveUp(c, fault.Gone, err)
	case c.awaited && !fix.Now && fix.Unknown:
		r.finish(c)
	case c.hopeless(&fix):
		r.giveUp(c, fix.Kind, err)
	default:
		r.retry(c, &fix)
	}
}

// tellTopology makes the topology examine a node, or reload the map of hash slots, if the error of a command requires
// this.
func (r *Run) tellTopology(c *Command, fix *fault.Remedy) {
	if fix.Vet && c.attempt.node != nil {
		c.attempt.node.VetSoon()
	}
	if fix.Refresh {
		r.dispatcher.top.RefreshSoon()
	}
	if fix.Kind == fault.Clock && fix.Off > 0 {
		r.dispatcher.top.DoubtSigns() // a server with a fast clock may have let logs expire
	}
}

// The method "hopeless" reports whether a retry of the command would fail in the same way, so that the run can give up
// immediately.
func (c *Command) hopeless(fix *fault.Remedy) bool {
	switch fix.Kind {
	case fault.Server:
		return c.serverTries >= maxServerTries
	case fault.Clock:
		return true
	}
	return fix.Final
}

// judgeClock determines the cause of a clock error: the clock of the node is wrong, or the command arrived late. The
// node read its clock at some time between the start of the attempt and now.
func (r *Run) judgeClock(c *Command, fix *fault.Remedy) error {
	skew := r.dispatcher.config.ClockSkew
	e := &clockError{off: fix.Off, skew: skew, late: late(fix.Off, time.Since(c.attempt.began), skew)}
	if e.late {
		fix.Kind = fault.Lag
	}
	return e
}

func (r *Run) retry(c *Command, fix *fault.Remedy) {
	switch {
	case fix.Kind == fault.Script:
		c.attempt.node.MarkUnloaded()
	case fix.Kind == fault.Moved && fix.Addr != "":
		r.dispatcher.top.Redirect(c.Partition, c.attempt.node, fix.Addr)
	case fix.Kind == fault.Ask && fix.Addr != "":
		c.attempt.asking = true
		f := r.front(r.dispatcher.top.Named(c.attempt.node, fix.Addr))
		f.ready = append(f.ready, c)
		return
	case fix.Kind == fault.TryAgain && r.split(c):
		return
	}
	if fix.Now && c.tries <= 2 {
		r.repeat(c)
		return
	}
	c.due = time.Now().Add(min(firstPause<<min(c.tries, 10), longPause))
	r.waiting = append(r.waiting, c)
}

// The method "split" replaces the command c by bare commands (commands that use the key of one bucket each), one for
// each bucket of users. Before the bare commands (commands for one bucket each), "split" sends the commands of the
// operations from BeforeBare. If the command c has no users, or already uses the key of only one bucket, "split"
// returns false.
func (r *Run) split(c *Command) bool {
	if len(c.Items) == 0 || c.Bare {
		return false
	}
	c.free()
	var before []Operation
	if r.BeforeBare != nil {
		before = r.BeforeBare(c)
	}
	left := len(before)
	if left == 0 {
		r.divide(c)
	}
	for _, op := range before {
		r.enqueue(&Command{op: op, Partition: c.Partition, durable: r.durable, aside: true, then: func() {
			if left--; left == 0 {
				r.divide(c)
			}
		}})
	}
	return true
}

// The method "divide" creates bare commands (one for each bucket of users), which replace the command c.
func (r *Run) divide(c *Command) {
	if r.AllowBare != nil && !r.AllowBare(c) {
		r.finish(c)
		return
	}
	k := r.dispatcher.config.Keyspace
	for rest := c.Items; len(rest) > 0; {
		n := 1
		for n < len(rest) && k.BucketOf(rest[n]) == k.BucketOf(rest[0]) {
			n++
		}
		part := r.command(c.Partition, rest[:n])
		part.Bare = true
		part.op.Encode(part)
		part.since, part.tries, part.serverTries = c.since, c.tries, c.serverTries
		r.repeat(part)
		rest = rest[n:]
	}
}

// The method "apply" passes the reply of a successful attempt to the command's operation, which interprets the reply.
func (r *Run) apply(c *Command) {
	n, err := c.op.Apply(c)
	if err == nil && n == 0 && len(c.Items) > 0 {
		err = script.ErrReply
	}
	if err != nil {
		r.giveUp(c, fault.Server, err)
		return
	}
	if n < len(c.Items) {
		r.open -= n
		c.Items = c.Items[n:]
		c.op.Encode(c)
		r.repeat(c)
		return
	}
	r.finish(c)
	if c.Items != nil {
		r.unused = append(r.unused, c)
	}
}

// The method "finish" subtracts a settled command from the run's counts of open work.
func (r *Run) finish(c *Command) {
	c.free()
	r.open -= c.weight()
	if c.awaited {
		r.awaited--
	}
	if c.then != nil {
		c.then()
	}
}

// giveUp ends a command without a result. The users of the command then stay undecided, and Faults records the error.
func (r *Run) giveUp(c *Command, kind fault.Kind, err error) {
	r.finish(c)
	r.Faults.AddUndecided(kind, c.weight(), err)
}

// The method "abandon" ends a run whose time is up: "abandon" counts the users and commands without a result as
// undecided.
func (r *Run) abandon(ctx context.Context) {
	r.over.Store(true)
	trace.Event(r.span, "time is up", trace.Int("capper.users", r.open))
	r.Faults.AddUndecided(fault.Deadline, r.open, context.Cause(ctx))
}

// The method "leave" ends the sending of commands, because the caller has left: a late command could undo changes from
// the time after the answer to a repeated call. After the call of "leave", the run only waits for replies to the
// commands that it has already sent.
func (r *Run) leave() {
	r.left, r.waiting = true, r.waiting[:0]
	r.over.Store(true)
	trace.Event(r.span, "the caller has left", trace.Int("capper.users", r.open))
}
