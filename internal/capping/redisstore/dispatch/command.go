package dispatch

import (
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
)

// Command is what is asked of one partition. The run that made it owns it; while
// an attempt is under way, a lane reads what is not the run's own.
type Command struct {
	Partition int
	Items     []uint64 // of a script over users (see script.Plan); nil of other commands
	Args      script.Args

	// Bare: the slot's keys are on two nodes, so that the command may name the users'
	// key only. It is encoded anew when it comes to be.
	Bare bool

	// The reply, when it holds. Null: there is none. List: of one that is an array of
	// texts, nil of any other.
	Reply string
	Null  bool
	List  []string

	run     *Run
	op      Operation
	durable bool   // its reply holds only when enough replicas have it
	aside   bool   // stored beside the logs: it decides no user
	awaited bool   // although it is aside; it is not sent twice where it may have been executed
	then    func() // follows when the command is settled, whatever became of it; nil: nothing

	attempt attempt // the latest one

	// Of the run alone:
	front       *front          // that counts it; nil: none yet
	since       capping.Instant // first attempt whose outcome is unknown; Never: none
	tries       int             // attempts that failed
	serverTries int             // of these, attempts answered by an error that we have no remedy for
	due         time.Time       // when to try again
}

// Repeated reports whether an earlier attempt may have been executed.
func (c *Command) Repeated() bool { return c.since != capping.Never }

// weight is how much of the run the command settles: its users, 1 for a command
// that is the whole run, 0 for one aside.
func (c *Command) weight() int {
	if c.aside {
		return 0
	}
	return max(1, len(c.Items))
}

// hold counts the command to a front until it is settled.
func (c *Command) hold(f *front) {
	c.free()
	c.front, c.attempt.node = f, f.node
	f.held++
}

// free takes the command off its front.
func (c *Command) free() {
	if c.front != nil {
		c.front.held--
		c.front = nil
	}
}

// Operation is what a run does for each command: it encodes parts of a batch and
// takes their replies.
type Operation interface {
	// Encode sets the arguments of c.
	Encode(c *Command)
	// Stamp writes the time of an attempt into the arguments. It runs just
	// before they are sent, on another goroutine.
	Stamp(c *Command, s Stamp)
	// Apply takes a reply that holds. It returns how many of c's items the
	// reply answers: the rest is asked again.
	Apply(c *Command) (int, error)
}

// Stamp is the time of an attempt.
type Stamp struct {
	Now   capping.Instant
	Since capping.Instant // of the first attempt whose outcome is unknown; Never: none
}
