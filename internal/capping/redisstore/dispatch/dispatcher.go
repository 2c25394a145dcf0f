package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/trace"
)

// Config is the configuration of a Dispatcher. Every field of the Config is required, except for Logger.
type Config struct {
	Topology *topology.Topology
	Keyspace script.Keyspace

	Replicated  bool          // a durable command waits for replicas
	WaitForAcks time.Duration // time limit for replicas to confirm a write
	ClockSkew   time.Duration // tolerated clock difference between nodes; 0: clocks are not checked
	Timeout     time.Duration // time limit of a run whose context has no deadline
	Clock       func() time.Time
	Logger      *slog.Logger // nil: pipelines are not logged
}

// A Dispatcher creates runs. A run executes the Redis commands of one call of the store. A Dispatcher is safe for
// concurrent use.
type Dispatcher struct {
	config  Config
	top     *topology.Topology
	lanes   sync.WaitGroup
	senders sync.Map // *topology.Node -> *sender
	runs    sync.Pool
}

// New returns a Dispatcher. The topology in the configuration determines the node to which each command goes.
func New(config Config) *Dispatcher {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Dispatcher{config: config, top: config.Topology}
}

// The method Wait waits until the workers of all senders (command queues of nodes) have ended. The workers end soon
// after the topology is closed.
func (d *Dispatcher) Wait() { d.lanes.Wait() }

// NewRun returns a run for the operation op, which encodes the commands and processes the replies. If each command of
// the run has its own operation, the argument "op" is nil. If the argument "durable" is true, the run accepts a reply
// only after enough replicas have stored the writes of the command.
func (d *Dispatcher) NewRun(op Operation, durable bool) *Run {
	r, _ := d.runs.Get().(*Run)
	if r == nil {
		r = &Run{dispatcher: d, inbox: inbox{signal: make(chan struct{}, 1)}}
	}
	r.op, r.most, r.durable = op, MostUsers, durable && d.config.Replicated
	r.span = trace.Of(context.Background()) // no span until Do
	return r
}

// The method Recycle keeps the buffers of a finished run for another run, if no worker uses a command of the run any
// more. The caller of Recycle must not use the run after Recycle.
func (d *Dispatcher) Recycle(r *Run) {
	if r.inFlight == 0 && len(r.waiting) == 0 && !r.over.Load() && len(r.plan.Items) <= recycledUsers {
		r.reset()
		d.runs.Put(r)
	}
}

// recycledUsers is the maximum number of users of a run whose buffers Recycle keeps.
const recycledUsers = 1 << 17

// The method "sender" returns the sender of a node, that is, the node's command queue. If the node is nil, "sender"
// returns nil.
func (d *Dispatcher) sender(n *topology.Node) *sender {
	if n == nil {
		return nil
	}
	if known, ok := d.senders.Load(n); ok {
		return known.(*sender)
	}
	d.forgetSenders()
	known, _ := d.senders.LoadOrStore(n, &sender{node: n, top: d.top, config: &d.config, lanes: &d.lanes})
	return known.(*sender)
}

// forgetSenders removes the senders (command queues) of nodes that the topology no longer lists. A run that already
// uses a removed sender (command queue of a node) may continue to use this sender.
func (d *Dispatcher) forgetSenders() {
	d.senders.Range(func(node, _ any) bool {
		if !d.top.Knows(node.(*topology.Node)) {
			d.senders.Delete(node)
		}
		return true
	})
}

// If ctx has no deadline, the method "bounded" returns a context with the default time limit of the dispatcher, and
// otherwise ctx.
func (d *Dispatcher) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.config.Timeout)
}
