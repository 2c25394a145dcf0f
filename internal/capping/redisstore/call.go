package redisstore

import (
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// call is one command for one partition, and what became of it. The run that
// made it owns it, except between submission and delivery, when the lane does.
type call struct {
	run       *run
	job       job
	partition int
	items     []uint64 // of a script over users; nil of other commands
	durable   bool     // its reply holds only when enough replicas have it
	side      bool     // stored beside the logs: it decides no user

	args script.Args

	node   *topology.Node // that it was or will be sent to; nil: none serves the slot
	front  *front         // that counts it; nil: none yet
	asking bool           // the slot is being imported by the node
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
