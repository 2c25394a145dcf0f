package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/trace"
)

const (
	// MostUsers is how many users a command has at most.
	MostUsers = 512

	asideGrace = 20 * time.Millisecond // for what is stored beside the logs, when all users are settled
)

// Run does one operation: it cuts the batch into commands, keeps a number of
// them in flight on every node, and tries again what failed, until all is
// answered or the context ends. It belongs to one goroutine; lanes only ever see
// commands.
type Run struct {
	// Faults are what went wrong; Operations may add to them when Do is over.
	Faults Faults
	// BeforeBare returns what has to be stored in the partition before bare commands take the place of the command: by
	// then each of its operations was answered, or given up. Twice has to be as good as once. Nil: nothing.
	BeforeBare func(c *Command) []Operation

	ctx        context.Context // of Do: whom log lines and spans are of
	span       *trace.Span     // nil: it is not traced
	dispatcher *Dispatcher
	op         Operation
	durable    bool
	most       int         // users of a command
	over       atomic.Bool // lanes drop what they have not sent yet
	inbox      inbox

	plan     script.Plan
	fronts   []*front
	waiting  []*Command // for their time to be tried again
	inFlight int
	strayed  bool     // a part moved to another front
	open     int      // users and single commands that are not settled
	awaited  int      // commands aside that are waited for
	failed   failures // attempts that were settled, and are not told yet
	arrived  []*Command
	ready    []*Command
	unused   []*Command // settled: their buffers serve again
}

// reset readies the run for another operation. Settled commands keep their
// buffers.
func (r *Run) reset() {
	r.op, r.open, r.awaited, r.Faults, r.BeforeBare = nil, 0, 0, Faults{}, nil
	r.ctx, r.span = nil, nil
	for _, f := range r.fronts {
		f.parts, f.ready = f.parts[:0], f.ready[:0]
	}
	if len(r.fronts) > 64 { // nodes come and go
		r.fronts = nil
	}
	for _, c := range r.unused {
		c.op, c.Items, c.attempt.node = nil, nil, nil
	}
	r.unused = r.unused[:min(len(r.unused), 64)]
	select {
	case <-r.inbox.signal:
	default:
	}
}

// AddUsers arranges the users of a batch for the run, in commands of at most so
// many.
func (r *Run) AddUsers(users []capping.UserID, most int) {
	r.most = min(most, MostUsers)
	r.plan.Arrange(r.dispatcher.config.Keyspace, users)
	r.open += len(users)
	for _, part := range r.plan.Parts {
		f := r.front(r.dispatcher.top.Route(part.Partition))
		f.parts = append(f.parts, part)
	}
}

// Add puts a single command of the operation into the run.
func (r *Run) Add(op Operation, partition int) {
	r.enqueue(&Command{op: op, Partition: partition, durable: r.durable})
}

// AddAside puts a single command into the run that is not waited for longer than
// for the others, and whose failure leaves no user undecided. Twice has to be as good as once.
func (r *Run) AddAside(op Operation, partition int) {
	r.enqueue(&Command{op: op, Partition: partition, durable: r.durable, aside: true})
}

// AddOnce is AddAside for what is waited for, as long as the run has time, but not for replicas.
// It is tried again unless it may have been executed.
func (r *Run) AddOnce(op Operation, partition int) {
	r.awaited++
	r.enqueue(&Command{op: op, Partition: partition, aside: true, awaited: true})
}

func (r *Run) enqueue(c *Command) {
	c.run, c.since = r, capping.Never
	c.op.Encode(c)
	r.open += c.weight()
	f := r.front(r.dispatcher.top.Route(c.Partition))
	f.ready = append(f.ready, c)
}

// command is a command of the run's operation for items of a partition.
func (r *Run) command(partition int, items []uint64) *Command {
	c := &Command{}
	if n := len(r.unused); n > 0 {
		c = r.unused[n-1]
		r.unused = r.unused[:n-1]
		c.tries, c.serverTries, c.attempt.asking, c.Bare = 0, 0, false, false
	}
	c.run, c.op, c.Partition, c.Items, c.durable, c.since = r, r.op, partition, items, r.durable, capping.Never
	c.op.Encode(c)
	return c
}

// Do runs until everything is settled or time is up. What went wrong is in
// Faults; nothing that is learnt later is given to the operation.
func (r *Run) Do(ctx context.Context) {
	ctx, cancel := r.dispatcher.bounded(ctx)
	defer cancel()
	r.ctx, r.span = ctx, trace.Of(ctx)
	if ctx.Err() != nil {
		r.abandon(ctx)
		return
	}
	r.loop(ctx)
}

func (r *Run) loop(ctx context.Context) {
	var due, grace <-chan time.Time
	for {
		r.fill()
		r.failed.tell(r.span)
		if r.inFlight == 0 && len(r.waiting) == 0 {
			return
		}
		if r.open == 0 && r.awaited == 0 && grace == nil {
			grace = time.After(asideGrace)
			r.hasten()
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
			r.settleArrived()
		}
	}
}

func (r *Run) settleArrived() {
	r.arrived = r.inbox.drain(r.arrived[:0])
	for _, c := range r.arrived {
		r.inFlight--
		c.front.inFlight--
		r.settle(c)
	}
}

func (r *Run) nextDue() (due time.Time, ok bool) {
	for _, c := range r.waiting {
		if !ok || c.due.Before(due) {
			due, ok = c.due, true
		}
	}
	return due, ok
}

// wake makes the commands ready whose time has come.
func (r *Run) wake() {
	now, kept := time.Now(), r.waiting[:0]
	for _, c := range r.waiting {
		if c.due.After(now) {
			kept = append(kept, c)
			continue
		}
		r.repeat(c)
	}
	r.waiting = kept
}

// hasten tries what is left at once: it is aside, and the servers that held it up have just answered.
func (r *Run) hasten() {
	for _, c := range r.waiting {
		r.repeat(c)
	}
	r.waiting = r.waiting[:0]
	r.fill()
}

// repeat makes the command ready for the node that holds its slot now.
func (r *Run) repeat(c *Command) {
	c.attempt.asking = false
	f := r.front(r.dispatcher.top.Route(c.Partition))
	f.ready = append(f.ready, c)
}

// inbox takes commands from lanes without ever making them wait.
type inbox struct {
	mu       sync.Mutex
	commands []*Command
	signal   chan struct{} // of capacity 1: there are commands
}

func (b *inbox) put(commands []*Command) {
	b.mu.Lock()
	b.commands = append(b.commands, commands...)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// drain moves what is there to into.
func (b *inbox) drain(into []*Command) []*Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	into = append(into, b.commands...)
	clear(b.commands)
	b.commands = b.commands[:0]
	return into
}
