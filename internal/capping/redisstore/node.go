package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
)

const (
	// lanes is how many pipelines a node is sent at once.
	lanes = 2
	// pipelineCalls and pipelineUsers bound one pipeline, so that its replies
	// come well within an attempt and other clients get their turn.
	pipelineCalls = 64
	pipelineUsers = 2048
)

// node is one Redis server: its client, and a queue of calls that lanes turn
// into pipelines. Calls of different runs share pipelines.
type node struct {
	addr    string
	client  *redis.Client
	top     *topology
	trips   roundTrips
	scripts atomic.Bool            // whether the scripts were loaded, as far as we know
	id      atomic.Pointer[string] // in the cluster; nil: not known yet
	told    atomic.Pointer[gossip] // nil: it was not asked yet
	vetted  atomic.Int64           // when this master's settings were examined, in ms; 0: not since it is one

	// Of the refresher, and of Open before it:
	breach string   // which promises the settings break; "": none
	warned []string // what else they are known for

	// acks is how many replicas have to hold a send; unknownAcks until the
	// node was asked.
	acks  atomic.Int32
	alive atomic.Int32 // replicas that work, for Health

	mu      sync.Mutex
	queue   []*call
	running int
}

const unknownAcks = -1

// beside is addr as the node means it: without a host it knows, it is the node's own.
// Redirections hold IPv6 addresses without brackets.
func (n *node) beside(addr string) string {
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return addr
	}
	host, port := strings.Trim(addr[:colon], "[]"), addr[colon+1:]
	if host == "" || host == unknownHost {
		host, _, _ = net.SplitHostPort(n.addr)
	}
	return net.JoinHostPort(host, port)
}

// submit queues calls, which lanes send soon. It does not keep the slice.
func (n *node) submit(calls []*call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, calls...)
	for wanted := (len(n.queue) + pipelineCalls - 1) / pipelineCalls; wanted > 0 && n.running < lanes; wanted-- {
		n.running++
		n.top.wait.Add(1)
		go n.work()
	}
}

// work sends pipelines until the queue is empty.
func (n *node) work() {
	defer n.top.wait.Done()
	runtime.Gosched() // callers that are about to submit share the pipeline
	for {
		calls := n.take()
		if calls == nil {
			return
		}
		n.send(calls)
		deliver(calls)
	}
}

// take is the calls of the next pipeline: all of them durable or none, as a
// pipeline waits for replicas as a whole. Calls whose run has ended are
// dropped.
func (n *node) take() []*call {
	n.mu.Lock()
	defer n.mu.Unlock()
	var calls []*call
	users, next := 0, 0
	for ; next < len(n.queue) && len(calls) < pipelineCalls && users < pipelineUsers; next++ {
		c := n.queue[next]
		if c.run.over.Load() {
			continue
		}
		if len(calls) > 0 && c.durable != calls[0].durable {
			break
		}
		calls = append(calls, c)
		users += c.weight()
	}
	rest := copy(n.queue, n.queue[next:])
	clear(n.queue[rest:])
	n.queue = n.queue[:rest]
	if calls == nil {
		n.running--
	}
	return calls
}

// attempt bounds one pipeline: what has no reply by then is unknown.
func (n *node) attempt() time.Duration {
	return n.trips.patience(n.top.config.AttemptTimeout, n.top.config.AttemptTimeout)
}

// deliver hands calls back to their runs.
func deliver(calls []*call) {
	for start := 0; start < len(calls); {
		end := start + 1
		for end < len(calls) && calls[end].run == calls[start].run {
			end++
		}
		calls[start].run.inbox.put(calls[start:end])
		start = end
	}
}

// send runs one pipeline: scripts first where the node lacks them, WAIT last
// where a call is durable. It sets reply, null and err of every call.
func (n *node) send(calls []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), n.attempt())
	defer cancel()
	pipe, want := n.client.Pipeline(), 0
	if calls[0].durable {
		var err error
		if want, err = n.wantedAcks(ctx); err != nil {
			fail(calls, err)
			return
		}
	}
	var loads []*redis.StringCmd
	if !n.scripts.Load() {
		loads = n.load(ctx, pipe)
	}
	commands := make([]*redis.Cmd, len(calls))
	now, began := capping.InstantOf(n.top.config.Clock()), time.Now()
	for i, c := range calls {
		c.now, c.began = now, began
		c.job.stamp(c)
		if c.asking {
			_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
		}
		commands[i] = redis.NewCmd(ctx, c.args.Values()...)
		_ = pipe.Process(ctx, commands[i])
	}
	sign := n.watch(ctx, pipe, calls)
	var wait *redis.Cmd
	if want > 0 {
		wait = redis.NewCmd(ctx, "wait", want, n.top.config.waitMillis())
		_ = pipe.Process(ctx, wait)
	}
	if err := execute(ctx, pipe); err != nil {
		fail(calls, &errUnsent{err})
		return
	}
	if loads != nil {
		n.scripts.Store(loaded(loads))
	}
	if n.emptied(sign, calls) {
		fail(calls, barGone)
		return
	}
	if err := unreadable(sign); err != nil {
		fail(calls, err)
		return
	}
	lacking := shortOf(wait, want)
	for i, c := range calls {
		c.take(commands[i], lacking)
	}
}

func (n *node) load(ctx context.Context, pipe redis.Pipeliner) []*redis.StringCmd {
	var loads []*redis.StringCmd
	for _, s := range n.top.scripts.all() {
		loads = append(loads, pipe.ScriptLoad(ctx, s.Source))
	}
	return loads
}

func loaded(loads []*redis.StringCmd) bool {
	for _, cmd := range loads {
		if cmd.Err() != nil {
			return false
		}
	}
	return true
}

// take sets the outcome of the call from its command. lacking is why what it
// wrote is not held by enough replicas, or nil.
func (c *call) take(cmd *redis.Cmd, lacking error) {
	c.reply, c.null, c.err = "", false, nil
	value, err := cmd.Result()
	switch {
	case errors.Is(err, redis.Nil):
		c.null = true
	case err != nil:
		c.err = err
		return
	default:
		c.reply, _ = value.(string)
	}
	if c.durable {
		c.err = lacking
	}
}

func fail(calls []*call, err error) {
	for _, c := range calls {
		c.reply, c.null, c.err = "", false, err
	}
}

// errAcks is that too few replicas confirmed in time.
type errAcks struct{ got, want int }

func (e *errAcks) Error() string {
	return fmt.Sprintf("%d of %d replicas confirmed in time", e.got, e.want)
}

// shortOf is why the pipeline that ended with wait is not held by enough
// replicas.
func shortOf(wait *redis.Cmd, want int) error {
	if wait == nil {
		return nil
	}
	got, err := wait.Int()
	if err != nil {
		return fmt.Errorf("wait for replicas: %w", err)
	}
	if got < want {
		return &errAcks{got, want}
	}
	return nil
}

// wantedAcks is how many replicas have to confirm, asked of the node itself
// when it is not known yet.
func (n *node) wantedAcks(ctx context.Context) (int, error) {
	acks := n.top.config.ReplicaAcks
	if acks != Healthy {
		return acks.fixed(), nil
	}
	if known := n.acks.Load(); known != unknownAcks {
		return int(known), nil
	}
	if err := n.countReplicas(ctx); err != nil {
		return 0, &errUnsent{fmt.Errorf("ask for its replicas: %w", err)}
	}
	return int(n.acks.Load()), nil
}

// errUnsent is an error before anything was sent.
type errUnsent struct{ err error }

func (e *errUnsent) Error() string { return e.err.Error() }
func (e *errUnsent) Unwrap() error { return e.err }
