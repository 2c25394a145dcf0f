package dispatch

import (
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
)

// A Command is a Redis command for one partition; most commands are script calls. A command belongs to the run
// (execution of one call of the store) that created it. During an attempt, a worker of the sender (command queue of a
// node) reads the fields of the command, except the fields that only the run uses.
type Command struct {
	Partition int
	Items     []uint64 // users of a script call (see script.Plan); nil for other commands
	Args      script.Args

	// If Bare is true, the command uses the key of only one bucket of users, because the hash slot's keys are on two
	// nodes. When Bare becomes true, the operation must encode the command again.
	Bare bool

	// Reply, Null and List hold the reply to a successful attempt. Null means that the reply was null. List holds the
	// strings of an array reply, and is nil for any other reply.
	Reply string
	Null  bool
	List  []string

	run     *Run
	op      Operation
	durable bool   // the run accepts a reply only if enough replicas have stored the writes
	aside   bool   // a side command, which writes data beside the logs and decides no user
	awaited bool   // a side command for which the run waits, not repeated if Redis may have executed it
	then    func() // called when the command is settled, successful or not; may be nil

	attempt attempt // the latest attempt

	// Only the run that owns the command uses the following fields.
	front       *front          // the front that counts the command; nil: none yet
	since       capping.Instant // timestamp of the first attempt with unknown outcome; Never: none
	tries       int             // number of failed attempts
	serverTries int             // number of attempts that failed with a server error that has no special remedy
	due         time.Time       // time of the next attempt
}

// The method Repeated reports whether Redis may already have executed an earlier attempt of the command.
func (c *Command) Repeated() bool { return c.since != capping.Never }

// Since returns the time of the first attempt that Redis may have executed although no reply arrived, or Never.
func (c *Command) Since() capping.Instant { return c.since }

// The method "weight" returns the number that the run subtracts from its count of open work when the command is
// settled. The weight of a command is its number of users. A command without users has the weight 1, and a side command
// (which writes data beside the logs) the weight 0.
func (c *Command) weight() int {
	if c.aside {
		return 0
	}
	return max(1, len(c.Items))
}

// The method "hold" counts the command as unsettled in the front (the run's work for one node), until the command has a
// final result.
func (c *Command) hold(f *front) {
	c.free()
	c.front, c.attempt.node = f, f.node
	f.held++
}

// The method "free" stops counting the command as unsettled in its front (the run's work for one node).
func (c *Command) free() {
	if c.front != nil {
		c.front.held--
		c.front = nil
	}
}

// An Operation encodes the commands of a run, and processes the replies to these commands.
type Operation interface {
	// Encode sets the arguments of c.
	Encode(c *Command)
	// Stamp writes the time of an attempt into the arguments of the command c. Stamp runs on a sender's goroutine, just
	// before the sender sends the arguments.
	Stamp(c *Command, s Stamp)
	// Apply processes the reply to a successful attempt of the command c. Apply returns the number of users (items) of
	// c that the reply decides. The run sends the remaining users of c again.
	Apply(c *Command) (int, error)
}

// A Stamp holds the times that an Operation writes into a command before each attempt.
type Stamp struct {
	Now   capping.Instant
	Since capping.Instant // timestamp of the first attempt with unknown outcome; Never: none
}
