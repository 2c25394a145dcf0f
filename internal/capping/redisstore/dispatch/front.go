package dispatch

import (
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

const (
	inFlightLimit = 64  // limit of commands in flight from one run to one node
	heldLimit     = 256 // limit of commands from one run to one node that are in flight or wait for a retry
)

// A front is the unsent work of one run for one Redis node.
type front struct {
	node     *topology.Node // nil: no node serves the slots
	sender   *sender        // nil if node is nil
	parts    []script.Part  // parts of the batch with items that are not in a command yet
	ready    []*Command
	inFlight int // number of commands that the sender has
	held     int // number of unsettled commands
}

// The method "front" returns the unsent work of the run for one node.
func (r *Run) front(n *topology.Node) *front {
	for _, f := range r.fronts {
		if f.node == n {
			return f
		}
	}
	f := &front{node: n, sender: r.dispatcher.sender(n)}
	r.fronts = append(r.fronts, f)
	return f
}

// The method "fill" passes commands for every node to the sender (command queue) of the node, up to the limit of
// commands in flight. If a partition has moved to another node, its users move to the front (unsent work) of the other
// node. The method "fill" then visits all fronts again.
func (r *Run) fill() {
	for r.strayed = true; r.strayed; {
		r.strayed = false
		for i := 0; i < len(r.fronts); i++ { // the loop may append fronts
			r.fillFront(r.fronts[i])
		}
	}
}

func (r *Run) fillFront(f *front) {
	r.ready = r.ready[:0]
	for f.inFlight < inFlightLimit {
		c := r.next(f)
		if c == nil {
			break
		}
		c.hold(f)
		if err := r.refusal(c); err != nil {
			c.attempt.err = err
			r.settle(c)
			continue
		}
		f.inFlight++
		r.ready = append(r.ready, c)
	}
	if len(r.ready) > 0 {
		r.inFlight += len(r.ready)
		f.sender.submit(r.ready)
	}
}

// If the run must not send the command to the node, the method "refusal" returns an error with the reason, and
// otherwise nil.
func (r *Run) refusal(c *Command) error {
	if c.attempt.node == nil {
		return fault.ErrNoRoute
	}
	if b := r.dispatcher.top.Bar(c.Partition); b != nil {
		return b
	}
	return c.attempt.node.Lack(c.durable)
}

// The method "next" returns the next command for the node of the front (unsent work for one node), or nil if there is
// none.
func (r *Run) next(f *front) *Command {
	if len(f.ready) > 0 {
		c := f.ready[0]
		f.ready = f.ready[1:]
		return c
	}
	for len(f.parts) > 0 && f.held < heldLimit {
		part := f.parts[0]
		f.parts = f.parts[1:]
		if now := r.dispatcher.top.Route(part.Partition); now != f.node {
			other := r.front(now)
			other.parts = append(other.parts, part)
			r.strayed = true
			continue
		}
		c := r.command(part.Partition, r.plan.Items[part.Start:min(part.Start+r.most, part.End)])
		if part.Start += len(c.Items); part.Start < part.End {
			f.parts = append(f.parts, part)
		}
		return c
	}
	return nil
}
