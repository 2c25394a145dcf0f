package topology

import (
	"fmt"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// Bar is why the users of a partition are unavailable though a node serves it:
// what it holds is not all that was recorded. It is an error.
type Bar struct {
	Reason string // Gone, Dropped, Older, Ahead, Torn or Broken
	what   string // happened
	way    string // back for its users
	node   string // of which what speaks already; "": of none
}

// Reasons of bars, as metrics label them.
const (
	gone    = "gone"    // the server was emptied
	Dropped = "dropped" // the server dropped records while it loaded its append-only file
	Older   = "older"   // the server came back with an older state
	ahead   = "clock"   // the server's clock was ahead
	Torn    = "parted"  // a failover in the middle of a slot's move
	broken  = "broken"  // a server did what drops logs, and no operator has accepted it yet
)

// Error is what happened, and the way back.
func (b *Bar) Error() string { return b.what + ": " + b.way }

// What is what happened, without the way back.
func (b *Bar) What() string { return b.what }

// Group is what bars have in common that are told together: the reason, and of a broken promise the server.
func (b *Bar) Group() string {
	if b.Reason == broken {
		return broken + ": " + b.what
	}
	return b.Reason
}

// Names reports whether the error names the node itself.
func (b *Bar) Names(addr string) bool { return b.node == addr }

// Remedy is to leave the users undecided.
func (b *Bar) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Barred, Final: true} }

var barGone = &Bar{Reason: gone, what: "the server was emptied, and its recorded sends are lost",
	way: "the users are unavailable until " + restart}

var barDropped = &Bar{Reason: Dropped, what: "the server dropped records while it loaded its append-only file, " +
	"because its user default lacks permissions", way: rightsFirst}

// barUnmarked is that the mark is missing beside its sign.
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

// Reasons are those of bars.
func Reasons() []string { return []string{gone, Dropped, Older, ahead, Torn, broken} }

// restart is the way back where history is lost for good.
const restart = "capper is restarted to create the store again from the remaining data (store.redis.create: true)"

func barAhead(by time.Duration) *Bar {
	return &Bar{Reason: ahead, what: fmt.Sprintf("the clock of the server was ahead by %v, so logs may have expired "+
		"too early", by.Round(time.Second)),
		way: "the users are unavailable until that time has come, or " + restart}
}

// Bar is why nobody of the partition is decided, or nil.
func (t *Topology) Bar(partition int) *Bar {
	if b := t.broken[partition].Load(); b != nil { // first: what evicts logs evicts signs too
		return b
	}
	if b := t.bars[partition].Load(); b != nil {
		return b
	}
	return t.tornBar(partition)
}

// Lost are the partitions of which the signs say that records are lost.
func (t *Topology) Lost() map[int]*Bar {
	lost := map[int]*Bar{}
	for p := range t.bars {
		if b := t.bars[p].Load(); b != nil {
			lost[p] = b
		}
	}
	return lost
}

// markEmptied bars the partition: its sign was missing on the node.
func (t *Topology) markEmptied(n *Node, partition int) {
	if t.bars[partition].CompareAndSwap(nil, barGone) {
		t.config.Logger.Error("Redis store", "error", fmt.Errorf("node %s: %w", n.addr, barGone))
	}
	t.DoubtSigns()
}
