package dispatch

import (
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
)

// Command is a Redis command for one partition. A command belongs to the run that created the command. During an
// attempt, a sender's worker reads the command's fields, except for the fields that only the run uses.
type Command struct {
	Partition int
	Items     []uint64 // users of a script call (see script.Plan); nil for other commands
	Args      script.Args

	// Bare says that the command uses only the key of one bucket of users, because the hash slot's keys are on two
	// nodes. When Bare becomes true, the operation encodes the command again.
	Bare bool

	// Reply, Null and List hold the reply of a successful attempt. Null means that the reply was null. List holds the
	// strings of an array reply, and is nil for any other reply.
	Reply string
	Null  bool
	List  []string

	run     *Run
	op      Operation
	durable bool   // a reply counts only if enough replicas have stored the writes
	aside   bool   // the command writes data beside the logs, and decides no user
	awaited bool   // the run waits for a command with aside; the command is not repeated if it may have been executed
	then    func() // called when the command is settled, successful or not; may be nil

	attempt attempt // the latest attempt

	// Only the run uses the following fields.
	front       *front          // the front that counts the command; nil: none yet
	since       capping.Instant // timestamp of the first attempt with unknown outcome; Never: none
	tries       int             // number of failed attempts
	serverTries int             // number of attempts that failed with a server error that has no special remedy
	due         time.Time       // time of the next attempt
}

// Repeated reports whether an earlier attempt of the command may have been executed.
func (c *Command) Repeated() bool { return c.since != capping.Never }

// Since returns the timestamp of the command's first attempt that may have been executed without a reply, or Never.
func (c *Command) Since() capping.Instant { return c.since }

// weight returns how many open items of the run the command settles. The weight is the command's number of users, 1 for
// a command without users, or 0 for a command with aside.
func (c *Command) weight() int {
	if c.aside {
		return 0
	}
	return max(1, len(c.Items))
}

// hold adds the command to the front's count of unsettled commands, until the command is settled.
func (c *Command) hold(f *front) {
	c.free()
	c.front, c.attempt.node = f, f.node
	f.held++
}

// free removes the command from the count of its front.
func (c *Command) free() {
	if c.front != nil {
		c.front.held--
		c.front = nil
	}
}

// Operation encodes the commands of a run and processes their replies.
type Operation interface {
	// Encode sets the arguments of c.
	Encode(c *Command)
	// Stamp writes the time of an attempt into the arguments of c. Stamp runs on a sender's goroutine, just before the
	// arguments are sent.
	Stamp(c *Command, s Stamp)
	// Apply processes the reply of a successful attempt. Apply returns the number of items of c that the reply decides.
	// The run sends the remaining items again.
	Apply(c *Command) (int, error)
}

// Stamp holds the time of an attempt.
type Stamp struct {
	Now   capping.Instant
	Since capping.Instant // timestamp of the first attempt with unknown outcome; Never: none
}
