package dispatch

import (
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
)

// Command is a Redis command for one partition. It belongs to the run that created it. During an
// attempt, a sender's worker reads the fields that the run does not reserve for itself.
type Command struct {
	Partition int
	Items     []uint64 // users of a script (see script.Plan); nil for other commands
	Args      script.Args

	// Bare limits the command to the users' key, because the slot's keys are on two nodes. The
	// operation encodes the command again when Bare becomes true.
	Bare bool

	// Reply, Null and List hold a valid reply. Null means that the reply was null. List holds the
	// texts of an array reply, and is nil for any other reply.
	Reply string
	Null  bool
	List  []string

	run     *Run
	op      Operation
	durable bool   // the reply counts only when enough replicas have stored the writes
	aside   bool   // writes data beside the logs, and decides no user
	awaited bool   // the run waits for a command with aside; the command is not repeated if it may have been executed
	then    func() // called once the command is settled, successful or not; nil: nothing

	attempt attempt // the latest attempt

	// Only the run uses these fields.
	front       *front          // the front that counts the command; nil: none yet
	since       capping.Instant // timestamp of the first attempt with unknown outcome; Never: none
	tries       int             // number of failed attempts
	serverTries int             // number of attempts with a server error that no remedy covers
	due         time.Time       // time of the next attempt
}

// Repeated reports whether an earlier attempt of the command may have been executed.
func (c *Command) Repeated() bool { return c.since != capping.Never }

// Since returns the instant of the first attempt that may have been executed without a reply, or Never.
func (c *Command) Since() capping.Instant { return c.since }

// weight returns how many open items of the run the command settles: its number of users, 1 for a
// single command, or 0 for a command with aside.
func (c *Command) weight() int {
	if c.aside {
		return 0
	}
	return max(1, len(c.Items))
}

// hold adds the command to the count of a front until the command is settled.
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
	// Stamp writes the time of an attempt into the arguments of c. It runs on another goroutine,
	// just before the arguments are sent.
	Stamp(c *Command, s Stamp)
	// Apply processes a valid reply. It returns how many items of c the reply answers; the run asks
	// for the remaining items again.
	Apply(c *Command) (int, error)
}

// Stamp is the time of an attempt.
type Stamp struct {
	Now   capping.Instant
	Since capping.Instant // timestamp of the first attempt with unknown outcome; Never: none
}
