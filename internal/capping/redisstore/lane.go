package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/capping/redisstore/topology/connect"
)

const (
	// lanes is how many pipelines a node is sent at once.
	lanes = 2
	// pipelineCalls and pipelineUsers bound one pipeline, so that its replies
	// come well within an attempt and other clients get their turn.
	pipelineCalls = 64
	pipelineUsers = 2048
)

// sender is one node's queue of calls, which lanes turn into pipelines. Calls
// of different runs share pipelines.
type sender struct {
	node   *topology.Node
	config *Config
	wait   *sync.WaitGroup // lanes

	mu      sync.Mutex
	queue   []*call
	running int
}

// senders are those of all nodes.
type senders struct {
	config *Config
	wait   sync.WaitGroup // lanes
	byNode sync.Map       // *topology.Node -> *sender
}

// of is the sender of the node; nil for nil.
func (s *senders) of(n *topology.Node) *sender {
	if n == nil {
		return nil
	}
	if known, ok := s.byNode.Load(n); ok {
		return known.(*sender)
	}
	known, _ := s.byNode.LoadOrStore(n, &sender{node: n, config: s.config, wait: &s.wait})
	return known.(*sender)
}

// submit queues calls, which lanes send soon. It does not keep the slice.
func (n *sender) submit(calls []*call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, calls...)
	for wanted := (len(n.queue) + pipelineCalls - 1) / pipelineCalls; wanted > 0 && n.running < lanes; wanted-- {
		n.running++
		n.wait.Add(1)
		go n.work()
	}
}

// work sends pipelines until the queue is empty.
func (n *sender) work() {
	defer n.wait.Done()
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
func (n *sender) take() []*call {
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
func (n *sender) send(calls []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), n.node.AttemptTime())
	defer cancel()
	pipe, want := n.node.Client().Pipeline(), 0
	if calls[0].durable {
		var err error
		if want, err = n.node.WantedAcks(ctx); err != nil {
			fail(calls, &errUnsent{err})
			return
		}
	}
	loads := n.node.LoadScripts(ctx, pipe)
	commands := make([]*redis.Cmd, len(calls))
	now, began := capping.InstantOf(n.config.Clock()), time.Now()
	for i, c := range calls {
		c.now, c.began = now, began
		c.job.stamp(c)
		if c.asking {
			_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
		}
		commands[i] = redis.NewCmd(ctx, c.args.Values()...)
		_ = pipe.Process(ctx, commands[i])
	}
	last := calls[len(calls)-1].partition
	sign := n.node.AskSign(ctx, pipe, last)
	var wait *redis.Cmd
	if want > 0 {
		wait = redis.NewCmd(ctx, "wait", want, n.config.waitMillis())
		_ = pipe.Process(ctx, wait)
	}
	if err := connect.Exec(ctx, pipe); err != nil {
		fail(calls, &errUnsent{err})
		return
	}
	n.node.MarkLoaded(loads)
	if err := n.node.JudgeSign(sign, last); err != nil {
		fail(calls, err)
		return
	}
	lacking := shortOf(wait, want)
	for i, c := range calls {
		c.take(commands[i], lacking)
	}
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
