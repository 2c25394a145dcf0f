package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// Config of a Dispatcher. Everything is required.
type Config struct {
	Topology *topology.Topology
	Keyspace script.Keyspace

	Replicated  bool          // durable commands wait for replicas
	WaitForAcks time.Duration // for which a node waits for its replicas
	ClockSkew   time.Duration // by which the clocks of nodes may differ; 0: no guard
	Timeout     time.Duration // of runs whose context has no deadline
	Clock       func() time.Time
	Logger      *slog.Logger // nil: pipelines are not told
}

// Dispatcher makes runs. It is safe for concurrent use.
type Dispatcher struct {
	config  Config
	top     *topology.Topology
	lanes   sync.WaitGroup
	senders sync.Map // *topology.Node -> *sender
	runs    sync.Pool
}

// New is a Dispatcher over the topology.
func New(config Config) *Dispatcher {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Dispatcher{config: config, top: config.Topology}
}

// Wait waits for the lanes, which end soon after the topology was closed.
func (d *Dispatcher) Wait() { d.lanes.Wait() }

// NewRun is a run of the operation; nil, where each command has its own. Its
// replies of durable commands hold when enough replicas have what was written.
func (d *Dispatcher) NewRun(op Operation, durable bool) *Run {
	r, _ := d.runs.Get().(*Run)
	if r == nil {
		r = &Run{dispatcher: d, inbox: inbox{signal: make(chan struct{}, 1)}}
	}
	r.op, r.most, r.durable = op, MostUsers, durable && d.config.Replicated
	return r
}

// Recycle keeps the buffers of a run of which no lane holds a command any more.
// The run must not be used after it.
func (d *Dispatcher) Recycle(r *Run) {
	if r.inFlight == 0 && len(r.waiting) == 0 && !r.over.Load() && len(r.plan.Items) <= recycledUsers {
		r.reset()
		d.runs.Put(r)
	}
}

// recycledUsers bounds what a recycled run keeps.
const recycledUsers = 1 << 17

// sender is that of the node; nil for nil.
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

// forgetSenders drops those of nodes that the topology has forgotten. A run that
// still has one goes on using it.
func (d *Dispatcher) forgetSenders() {
	d.senders.Range(func(node, _ any) bool {
		if !d.top.Knows(node.(*topology.Node)) {
			d.senders.Delete(node)
		}
		return true
	})
}

// bounded is ctx with the usual deadline where it has none.
func (d *Dispatcher) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.config.Timeout)
}
