package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology"
)

// attempt is one sending of a command. The run fills in where to; the lane, from
// submission to delivery, the rest.
type attempt struct {
	node   *topology.Node // nil: none serves the slot
	asking bool           // the slot is being imported by the node

	now   capping.Instant // that the command was stamped with
	began time.Time
	err   error // nil: the command has its reply
}

// stamp begins the attempt of the command.
func (c *Command) stamp(now capping.Instant, began time.Time) {
	c.attempt.now, c.attempt.began = now, began
	c.op.Stamp(c, Stamp{Now: now, Since: c.since})
}

// send adds the command to the pipeline.
func (c *Command) send(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	if c.attempt.asking {
		_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
	}
	sent := redis.NewCmd(ctx, c.Args.Values()...)
	_ = pipe.Process(ctx, sent)
	return sent
}

// take ends the attempt with what came back. lacking is why what the command
// wrote is not held by enough replicas, or nil.
func (c *Command) take(cmd *redis.Cmd, lacking error) {
	c.Reply, c.Null, c.List, c.attempt.err = "", false, nil, nil
	value, err := cmd.Result()
	switch {
	case errors.Is(err, redis.Nil):
		c.Null = true
	case err != nil:
		c.attempt.err = err
		return
	default:
		c.Reply, _ = value.(string)
		if list, ok := value.([]any); ok {
			c.List = texts(list)
		}
	}
	if c.durable {
		c.attempt.err = lacking
	}
}

// texts are the texts of an array of them; nil: it holds something else.
func texts(list []any) []string {
	texts := make([]string, len(list))
	for i, one := range list {
		text, ok := one.(string)
		if !ok {
			return nil
		}
		texts[i] = text
	}
	return texts
}

// fail ends the attempts of all commands.
func fail(commands []*Command, err error) {
	for _, c := range commands {
		c.Reply, c.Null, c.List, c.attempt.err = "", false, nil, err
	}
}

// errUnsent is an error before anything was sent.
type errUnsent struct{ err error }

func (e *errUnsent) Error() string { return e.err.Error() }
func (e *errUnsent) Unwrap() error { return e.err }

// Remedy is that of the error, which cannot have had an effect.
func (e *errUnsent) Remedy() fault.Remedy {
	r := fault.Of(e.err)
	r.Unknown, r.Refresh = false, true
	return r
}

// clockError is what a node says of a stamp that is off its clock.
type clockError struct {
	off, skew time.Duration
	late      bool
}

func (e *clockError) Error() string {
	if e.late {
		return fmt.Sprintf("the call arrived %v after its timestamp, which exceeds clock_skew %v: the network is "+
			"slow, or clock_skew is too short for the distance", e.off, e.skew)
	}
	return fmt.Sprintf("its clock differs from this machine's by %v, more than clock_skew %v", e.off, e.skew)
}

// late is whether a command that came off after its stamp, and whose answer took
// so long, may have been late rather than the node's clock wrong.
func late(off, took, skew time.Duration) bool { return off > skew && off-took <= skew }
