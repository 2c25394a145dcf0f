package dispatch

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
)

const (
	// Lanes is the maximum number of concurrent pipelines to one node. Each lane is one worker
	// goroutine.
	Lanes = 2
	// pipelineCommands and pipelineUsers limit the size of one pipeline. Its replies then arrive
	// well within the time of an attempt, and other clients get their turn.
	pipelineCommands = 64
	pipelineUsers    = 2048
)

// sender is the command queue of one node, with workers that combine queued commands into
// pipelines. Commands of different runs share pipelines.
type sender struct {
	node   *topology.Node
	top    *topology.Topology
	config *Config
	lanes  *sync.WaitGroup

	mu      sync.Mutex
	queue   []*Command
	running int
}

// submit adds commands to the queue, and workers send them soon. submit does not keep the slice.
func (s *sender) submit(commands []*Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, commands...)
	for wanted := (len(s.queue) + pipelineCommands - 1) / pipelineCommands; wanted > 0 && s.running < Lanes; wanted-- {
		s.running++
		s.lanes.Add(1)
		go s.work()
	}
}

// work sends pipelines until the queue is empty.
func (s *sender) work() {
	defer s.lanes.Done()
	runtime.Gosched() // lets other callers add commands to the same pipeline
	for {
		commands := s.take()
		if commands == nil {
			return
		}
		began := time.Now()
		size := s.send(commands)
		s.tell(commands, size, began)
		deliver(commands)
	}
}

// take removes the commands of the next pipeline from the queue. Either all of them are durable or
// none, because a pipeline waits for replicas as a whole. take drops the commands of ended runs.
func (s *sender) take() []*Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var commands []*Command
	users, next := 0, 0
	for ; next < len(s.queue) && len(commands) < pipelineCommands && users < pipelineUsers; next++ {
		c := s.queue[next]
		if c.run.over.Load() {
			continue
		}
		if len(commands) > 0 && c.durable != commands[0].durable {
			break
		}
		commands = append(commands, c)
		users += c.weight()
	}
	rest := copy(s.queue, s.queue[next:])
	clear(s.queue[rest:])
	s.queue = s.queue[:rest]
	if commands == nil {
		s.running--
	}
	return commands
}

// deliver returns commands to their runs.
func deliver(commands []*Command) {
	for start := 0; start < len(commands); {
		end := start + 1
		for end < len(commands) && commands[end].run == commands[start].run {
			end++
		}
		commands[start].run.inbox.put(commands[start:end])
		start = end
	}
}

// send runs one pipeline and ends the attempt of each of its commands. send loads the scripts first if the node lacks
// them. send asks for confirmation by replicas at the end if a command is durable. send returns the total number of
// commands in the pipeline.
func (s *sender) send(commands []*Command) (size int) {
	ctx, cancel := context.WithTimeout(context.Background(), s.node.AttemptTime())
	defer cancel()
	belief, err := s.node.Believe(owned(commands))
	if err != nil {
		fail(commands, &errUnsent{err})
		return 0
	}
	pipe := s.node.Client().Pipeline()
	var replicas *topology.Count // nil: the pipeline waits for no replica
	if commands[0].durable {
		if replicas, err = s.node.Replicas(ctx); err != nil {
			fail(commands, &errUnsent{err})
			return 0
		}
	}
	if err := s.node.Examined(ctx); err != nil {
		fail(commands, &errUnsent{err})
		return 0
	}
	loads := s.node.LoadScripts(ctx, pipe)
	sent := make([]*redis.Cmd, len(commands))
	now, began := capping.InstantOf(s.config.Clock()), time.Now()
	users := 0
	for i, c := range commands {
		c.stamp(now, began)
		sent[i] = c.send(ctx, pipe)
		users += len(c.Items)
	}
	evicted := s.node.AskEvicted(ctx, pipe, users)
	last := s.witness(commands)
	sign := s.node.AskSign(ctx, pipe, last, replicas != nil)
	confirmation := s.node.AskReplicas(ctx, pipe, replicas, s.config.WaitForAcks)
	size = pipe.Len()
	if err := topology.Exec(ctx, pipe); err != nil {
		fail(commands, &errUnsent{err})
		return size
	}
	s.node.MarkLoaded(loads)
	if err := cmp.Or(belief.Judge(), s.node.JudgeEvicted(evicted), s.node.JudgeSign(sign, last)); err != nil {
		fail(commands, err)
		return size
	}
	lacking := confirmation.Judge()
	for i, c := range commands {
		c.take(sent[i], lacking)
		s.distrust(c)
	}
	return size
}

// owned returns the partitions of commands that go to the node as the owner of the slot.
func owned(commands []*Command) []int {
	partitions := make([]int, 0, pipelineCommands)
	for _, c := range commands {
		if !c.attempt.asking {
			partitions = append(partitions, c.Partition)
		}
	}
	return partitions
}

// witness returns the partition whose sentinel key is read at the end of the pipeline. It is the
// last partition with a slot that is not moving, because the sentinel key of a moving slot may be
// on another node. If all slots are moving, it is the last partition.
func (s *sender) witness(commands []*Command) int {
	for i := len(commands) - 1; i >= 0; i-- {
		if c := commands[i]; !c.attempt.asking && !s.top.Moving(c.Partition) {
			return c.Partition
		}
	}
	return commands[len(commands)-1].Partition
}

// distrust fails a command whose partition entered quarantine while the command was queued, because
// the records behind its reply are incomplete.
func (s *sender) distrust(c *Command) {
	if bar := s.top.Bar(c.Partition); bar != nil && c.attempt.err == nil {
		c.attempt.err = bar
	}
}
