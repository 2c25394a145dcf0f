package dispatch

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
)

const (
	// Lanes is the maximum number of concurrent pipelines to one Redis node. Each lane is the goroutine of one worker.
	Lanes = 2
	// pipelineCommands and pipelineUsers are the maximum numbers of commands and of users in one pipeline. With these
	// maxima, the replies to a pipeline arrive long before the time limit of an attempt, and the server can serve other
	// clients between two pipelines.
	pipelineCommands = 64
	pipelineUsers    = 2048
)

// A sender is the command queue of one node. The workers of the sender combine queued commands into pipelines. Commands
// of different runs share pipelines.
type sender struct {
	node   *topology.Node
	top    *topology.Topology
	config *Config
	lanes  *sync.WaitGroup

	mu      sync.Mutex
	queue   []*Command
	running int
}

// The method "submit" adds commands to the queue of the node, and starts workers if necessary. The method "submit" does
// not keep the slice "commands".
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

// The method "work" sends pipelines until the queue of the node is empty.
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

// The method "take" removes the commands of the next pipeline from the queue. A pipeline waits for replicas as a whole,
// so take never mixes commands that need confirmations by replicas with other commands. The method "take" drops
// commands whose run has ended.
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

// The function "deliver" puts each command, with the result of its attempt, into the inbox of its run.
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

// The method "send" sends one pipeline with the given commands to the node. For each command, the pipeline is one
// attempt. If the node does not have the Lua scripts, the pipeline first loads the scripts. If the commands must be
// durable, the pipeline ends with a command that checks whether replicas have confirmed the writes. The method "send"
// returns the number of Redis commands in the pipeline.
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
	if commands = wanted(commands); len(commands) == 0 {
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

// The function "wanted" returns the commands whose run has not ended while the worker prepared the pipeline. The
// attempts of the other commands fail, because a late command could undo changes from the time after the answer to a
// repeated call.
func wanted(commands []*Command) []*Command {
	ended := func(c *Command) bool { return c.run.over.Load() }
	if !slices.ContainsFunc(commands, ended) {
		return commands
	}
	var rest []*Command
	for i, c := range commands {
		if ended(c) {
			fail(commands[i:i+1], &errUnsent{capping.ErrCallerGone})
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// The function "owned" returns the partitions of the commands that go to the node because the node owns the hash slot.
// The function "owned" leaves out commands that go to the node only because the node is importing the hash slot.
func owned(commands []*Command) []int {
	partitions := make([]int, 0, pipelineCommands)
	for _, c := range commands {
		if !c.attempt.asking {
			partitions = append(partitions, c.Partition)
		}
	}
	return partitions
}

// The method "witness" chooses one partition of a pipeline. A command at the end of the pipeline reads the sentinel key
// (marker key that reveals lost data) of the chosen partition. The method "witness" takes the last partition whose hash
// slot is not moving, because the sentinel key of a moving slot may be on another node. If the cluster is moving all
// hash slots of the pipeline, "witness" returns the last partition.
func (s *sender) witness(commands []*Command) int {
	for i := len(commands) - 1; i >= 0; i-- {
		if c := commands[i]; !c.attempt.asking && !s.top.Moving(c.Partition) {
			return c.Partition
		}
	}
	return commands[len(commands)-1].Partition
}

// If the partition of a queued command is now in quarantine (no decisions until an operator accepts the loss), the
// method "distrust" makes the attempt of the command fail. If a partition is in quarantine (no decisions until an
// operator accepts the loss), the script may have read incomplete logs for the command.
func (s *sender) distrust(c *Command) {
	if bar := s.top.Bar(c.Partition); bar != nil && c.attempt.err == nil {
		c.attempt.err = bar
	}
}
