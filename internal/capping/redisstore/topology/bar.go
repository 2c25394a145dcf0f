package topology

import (
	"fmt"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// Bar is the quarantine of a partition: a node serves the partition, but some of its records were
// lost or may have been lost. Bar is an error that names the cause.
type Bar struct {
	Reason string // gone, Dropped, Older, ahead, Torn or broken
	what   string // the event
	way    string // the way to end the quarantine
	node   string // address of the node that the event already names; "": none
}

// The causes of a quarantine are the values of a metric's label.
const (
	gone    = "gone"    // the server was emptied
	Dropped = "dropped" // the server dropped records while it loaded its append-only file
	Older   = "older"   // the server came back with an older state
	ahead   = "clock"   // the server's clock was ahead earlier
	Torn    = "parted"  // a failover during the move of a slot
	broken  = "broken"  // a server evicted keys or lacks the append-only file, and no operator has accepted the risk
)

// Error returns the event and the way to end the quarantine.
func (b *Bar) Error() string { return b.what + ": " + b.way }

// What returns the event without the way to end the quarantine.
func (b *Bar) What() string { return b.what }

// Group returns the key by which several quarantines are reported together: the cause, and for a
// broken promise also the server.
func (b *Bar) Group() string {
	if b.Reason == broken {
		return broken + ": " + b.what
	}
	return b.Reason
}

// Names reports whether the error text already names the node.
func (b *Bar) Names(addr string) bool { return b.node == addr }

// Remedy returns a remedy without a retry: the users stay undecided.
func (b *Bar) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Barred, Final: true} }

var barGone = &Bar{Reason: gone, what: "the server was emptied, and its recorded sends are lost",
	way: "the users are unavailable until " + restart}

var barDropped = &Bar{Reason: Dropped, what: "the server dropped records while it loaded its append-only file, " +
	"because its user default lacks permissions", way: rightsFirst}

// barUnmarked is the quarantine of a partition whose sentinel key exists without the mark.
var barUnmarked = &Bar{Reason: Dropped,
	what: "the server dropped records while it loaded its append-only file, or evicted them", way: rightsFirst}

const rightsFirst = "the users are unavailable until the user default has all permissions (\"user default off ~* &* " +
	"+@all\", see docs/redis.md) and " + restart

func barOlder(by time.Duration) *Bar {
	return &Bar{Reason: Older, what: fmt.Sprintf("the server returned with older data, and its last %v or more are "+
		"lost",
		max(by, time.Second).Round(time.Second)),
		way: "the users are unavailable until the server has its newest data again, or " + restart}
}

// Reasons returns all causes of a quarantine.
func Reasons() []string { return []string{gone, Dropped, Older, ahead, Torn, broken} }

// restart is the way to end a quarantine after an irreversible loss.
const restart = "capper is restarted to create the store again from the remaining data (store.redis.create: true)"

func barAhead(by time.Duration) *Bar {
	return &Bar{Reason: ahead, what: fmt.Sprintf("the clock of the server was ahead by %v, so logs may have expired "+
		"too early", by.Round(time.Second)),
		way: "the users are unavailable until that time has come, or " + restart}
}

// Bar returns the partition's quarantine, or nil.
func (t *Topology) Bar(partition int) *Bar {
	if b := t.broken[partition].Load(); b != nil { // evictions come first: they may remove sentinel keys too
		return b
	}
	if b := t.bars[partition].Load(); b != nil {
		return b
	}
	return t.tornBar(partition)
}

// Lost returns the quarantined partitions whose sentinel keys show a loss of records.
func (t *Topology) Lost() map[int]*Bar {
	lost := map[int]*Bar{}
	for p := range t.bars {
		if b := t.bars[p].Load(); b != nil {
			lost[p] = b
		}
	}
	return lost
}

// markEmptied quarantines the partition after its sentinel key was missing on the node.
func (t *Topology) markEmptied(n *Node, partition int) {
	if t.bars[partition].CompareAndSwap(nil, barGone) {
		t.config.Logger.Error("Redis store", "error", fmt.Errorf("node %s: %w", n.addr, barGone))
	}
	t.DoubtSigns()
}
