package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/trace"
)

const (
	// MostUsers is the maximum number of users in one command.
	MostUsers = 512

	asideGrace = 20 * time.Millisecond // extra time for side commands after all users are settled
	leftGrace  = time.Second           // time for replies to sent commands after the caller has left
)

// A Run executes one operation on the users of a batch, or a few single commands that have no users. A run makes
// commands from the batch, and limits the number of its commands in flight to each node. A run retries failed commands
// until all commands are settled or the context ends. A run belongs to the goroutine of its caller. The workers of
// senders (command queues of nodes) use the commands of a run, but no other part of the run.
type Run struct {
	// Faults counts the errors of the run's attempts and its undecided users. Callers may add faults after Do has
	// returned.
	Faults Faults
	// BeforeBare returns operations to run before bare commands (of one bucket each) replace the command c. The run
	// executes these operations in the partition of c, and sends the bare commands when each operation is settled. Each
	// operation from BeforeBare must be idempotent. A nil BeforeBare means no operations.
	BeforeBare func(c *Command) []Operation
	// AllowBare reports whether bare commands may replace the command c. The run calls AllowBare when each operation
	// from BeforeBare is settled, successful or not. If AllowBare returns false, the run sends no more commands for the
	// users of c, and counts no fault. Before AllowBare returns false, AllowBare sets the results of the users of c. If
	// AllowBare is nil, bare commands may replace every command.
	AllowBare func(c *Command) bool

	ctx        context.Context // context of Do, for log lines and spans
	span       trace.Span      // span of ctx; before Do not recorded
	dispatcher *Dispatcher
	op         Operation
	durable    bool
	most       int         // maximum number of users in a command
	over       atomic.Bool // workers drop the unsent commands of the run
	inbox      inbox

	plan     script.Plan
	fronts   []*front
	waiting  []*Command // commands that wait for the time of their retry
	inFlight int
	strayed  bool     // a part has moved to another front
	left     bool     // the caller has left, so the run sends nothing more
	open     int      // number of unsettled users, plus unsettled commands without users
	awaited  int      // number of side commands for which the run waits
	failed   failures // settled attempts that the span does not show yet
	arrived  []*Command
	ready    []*Command
	unused   []*Command // settled commands whose buffers can be reused
}

// The method "reset" prepares a finished run for another operation. The settled commands of the run keep their buffers
// for later commands.
func (r *Run) reset() {
	r.op, r.open, r.awaited, r.Faults = nil, 0, 0, Faults{}
	r.BeforeBare, r.AllowBare = nil, nil
	r.ctx, r.span = nil, nil
	for _, f := range r.fronts {
		f.parts, f.ready = f.parts[:0], f.ready[:0]
	}
	if len(r.fronts) > 64 { // nodes join and leave
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

// AddUsers adds the users of a batch to the run. Each command of the run gets at most "most" users.
func (r *Run) AddUsers(users []capping.UserID, most int) {
	r.most = min(most, MostUsers)
	r.plan.Arrange(r.dispatcher.config.Keyspace, users)
	r.open += len(users)
	for _, part := range r.plan.Parts {
		f := r.front(r.dispatcher.top.Route(part.Partition))
		f.parts = append(f.parts, part)
	}
}

// The method Add adds one command without users to the run.
func (r *Run) Add(op Operation, partition int) {
	r.enqueue(&Command{op: op, Partition: partition, durable: r.durable})
}

// AddAside adds a side command to the run. A side command writes data beside the users' logs, such as counts. If a side
// command fails, no user stays undecided. When all other commands are settled, the run soon stops waiting for side
// commands. A side command from AddAside must be idempotent.
func (r *Run) AddAside(op Operation, partition int) {
	r.enqueue(&Command{op: op, Partition: partition, durable: r.durable, aside: true})
}

// AddOnce adds a side command, which writes data beside the users' logs. The run waits for a side command from AddOnce,
// at most until the run's deadline. The side command does not wait until replicas have confirmed its writes. If Redis
// may have executed an attempt of a side command from AddOnce, the run does not retry the command.
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

// The method "command" returns a command of the run's operation for some users of one partition. The argument "items"
// stands for the command's users.
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

// The method Do executes the commands of the run until all commands are settled or the time is up. The method Do
// records the errors of the commands in the field Faults. When Do has returned, the operation of the run receives no
// more replies.
func (r *Run) Do(ctx context.Context) {
	ctx, cancel := r.dispatcher.bounded(ctx)
	defer cancel()
	r.ctx, r.span = ctx, trace.Of(ctx)
	if ctx.Err() != nil {
		r.abandon(ctx)
		return
	}
	if capping.CheckCaller(ctx) != nil {
		r.leave()
	}
	r.loop(ctx)
	if r.left {
		r.Faults.AddUndecided(fault.Gone, r.open, capping.ErrCallerGone)
	}
}

func (r *Run) loop(ctx context.Context) {
	var due, grace <-chan time.Time
	gone := capping.CallerOf(ctx).Gone
	for {
		if !r.left {
			r.fill()
		}
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
			if !r.left {
				r.abandon(ctx)
			}
			return
		case <-gone:
			gone, grace = nil, time.After(leftGrace)
			r.leave()
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

// The method "wake" makes waiting commands ready if the time of their retry has come.
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

// The method "hasten" retries all waiting commands immediately. The run calls "hasten" when only side commands are
// left. The servers of these commands have just replied to other commands.
func (r *Run) hasten() {
	for _, c := range r.waiting {
		r.repeat(c)
	}
	r.waiting = r.waiting[:0]
	r.fill()
}

// The method "repeat" schedules another attempt of the command, at the node that now holds the hash slot.
func (r *Run) repeat(c *Command) {
	c.attempt.asking = false
	f := r.front(r.dispatcher.top.Route(c.Partition))
	f.ready = append(f.ready, c)
}

// An inbox is a queue into which workers put the commands of a run after each attempt. A worker never waits for space
// in an inbox.
type inbox struct {
	mu       sync.Mutex
	commands []*Command
	signal   chan struct{} // capacity 1: filled when the inbox holds commands
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

// The method "drain" removes the commands from the inbox and appends them to the slice "into".
func (b *inbox) drain(into []*Command) []*Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	into = append(into, b.commands...)
	clear(b.commands)
	b.commands = b.commands[:0]
	return into
}
