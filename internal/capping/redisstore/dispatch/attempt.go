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

// An attempt is one transmission of a command to a Redis node. The run (execution of one call of the store) to which a
// command belongs sets the destination of each attempt. The worker of the node's sender (command queue) sets the other
// fields of an attempt. From the submission of a command until its delivery to the run, only the worker may use the
// command.
type attempt struct {
	node   *topology.Node // nil: no node serves the hash slot
	asking bool           // the node is importing the hash slot

	now   capping.Instant // timestamp of the command
	began time.Time
	err   error // nil: the command has a reply
}

// The method "stamp" begins an attempt to send the command. The method "stamp" sets the time in the command and the
// local start time of the attempt.
func (c *Command) stamp(now capping.Instant, began time.Time) {
	c.attempt.now, c.attempt.began = now, began
	c.op.Stamp(c, Stamp{Now: now, Since: c.since})
}

// The method "send" adds the command to a pipeline, which the worker sends afterwards.
func (c *Command) send(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	if c.attempt.asking {
		_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
	}
	sent := redis.NewCmd(ctx, c.Args.Values()...)
	_ = pipe.Process(ctx, sent)
	return sent
}

// The method "take" ends an attempt to send the command, and stores the reply or the error in the command. If too few
// replicas have stored the writes of the command, the argument "lacking" of the method "take" is an error with the
// reason. Otherwise, "lacking" is nil.
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

// The function "texts" converts an array in a Redis reply to a slice of strings. If the array has a value that is not a
// string, "texts" returns nil.
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

// The function "fail" ends the present attempts of several commands, all with the same error.
func fail(commands []*Command, err error) {
	for _, c := range commands {
		c.Reply, c.Null, c.List, c.attempt.err = "", false, nil, err
	}
}

// An errUnsent is an error before a command was sent, so that the command had no effect.
type errUnsent struct{ err error }

func (e *errUnsent) Error() string { return e.err.Error() }
func (e *errUnsent) Unwrap() error { return e.err }

// Remedy returns the remedy (next action of the caller) for the wrapped error. The field Unknown of this remedy is
// false, because the command had no effect.
func (e *errUnsent) Remedy() fault.Remedy {
	r := fault.Of(e.err)
	r.Unknown, r.Refresh = false, true
	return r
}

// A clockError reports that the time in a command and the clock of the node differ too much.
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

// The function "late" reports whether a slow transmission of the command may be the only cause of the clock difference
// in the argument "off". If the function "late" returns true, the node's clock may be right. The argument "took" of the
// function "late" is the time until the reply came, and the argument "skew" is the tolerated clock difference.
func late(off, took, skew time.Duration) bool { return off > skew && off-took <= skew }
