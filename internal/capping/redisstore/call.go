package redisstore

import (
	"strconv"
	"time"

	"capper/internal/capping"
)

// blob is an argument. A pointer to it goes into an interface without an
// allocation, which a slice or string does not.
type blob []byte

// MarshalBinary is how go-redis reads the argument.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

// call is one command for one partition, and what became of it. The run that
// made it owns it, except between submission and delivery, when the lane does.
type call struct {
	run       *run
	job       job
	partition int
	items     []uint64 // of a script over users; nil of other commands
	durable   bool     // its reply holds only when enough replicas have it
	side      bool     // stored beside the logs: it decides no user

	// The command: argv points into args, args into buf.
	buf   []byte
	users []byte
	ends  []int
	args  []blob
	argv  []any
	head  [headerSize]byte
	rules []byte

	groups  int         // that the users of a filter call are in
	numbers [256]uint16 // of those groups within the call, from 1
	count   [8]byte

	node   *node  // that it was or will be sent to; nil: none serves the slot
	front  *front // that counts it; nil: none yet
	asking bool   // the slot is being imported by the node
	now    capping.Instant
	since  capping.Instant // first attempt whose outcome is unknown; Never: none
	tries  int             // attempts that failed
	due    time.Time       // when to try again
	began  time.Time       // of the latest attempt

	serverTries int // attempts answered by an error that we have no remedy for

	reply string
	null  bool
	err   error
}

// begin starts the command of a script; begin, endArg for each key, finish.
func (c *call) begin(s *script) {
	c.buf, c.ends, c.args, c.argv = c.buf[:0], c.ends[:0], c.args[:0], c.argv[:0]
	c.args = append(c.args, blob("evalsha"), blob(s.sha), nil)
}

// endArg ends a key that was appended to buf.
func (c *call) endArg() { c.ends = append(c.ends, len(c.buf)) }

func (c *call) finish(keys int, rest ...[]byte) {
	c.args[2] = strconv.AppendInt(c.count[:0], int64(keys), 10)
	start := 0
	for _, end := range c.ends {
		c.args = append(c.args, c.buf[start:end:end])
		start = end
	}
	for _, arg := range rest {
		c.args = append(c.args, arg)
	}
	c.point()
}

// command sets a command that is no script over users.
func (c *call) command(args ...string) {
	c.args, c.argv = c.args[:0], c.argv[:0]
	for _, arg := range args {
		c.args = append(c.args, blob(arg))
	}
	c.point()
}

func (c *call) point() {
	for i := range c.args {
		c.argv = append(c.argv, &c.args[i])
	}
}

// weight is how much of the run the call settles: its users, 1 for a command
// that is the whole run, 0 for one on the side.
func (c *call) weight() int {
	if c.side {
		return 0
	}
	return max(1, len(c.items))
}

// job is what a run does: it makes commands of parts of a batch and takes
// their replies.
type job interface {
	// encode sets the command of c.
	encode(c *call)
	// stamp writes the current time into the command. It runs just before the
	// command is sent, on another goroutine.
	stamp(c *call)
	// apply takes a reply that holds. It returns how many of c's items the
	// reply answers: the rest is asked again.
	apply(c *call) (int, error)
}
