package topology

import (
	"fmt"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// A Bar is the quarantine of one partition: no decisions until the cause is gone or an operator accepts the loss. A
// Redis node serves the partition, but records of the partition are lost or may be lost. A Bar is also an error, and
// the error text names the cause of the quarantine (no decisions until an operator accepts the loss).
type Bar struct {
	Reason string // gone, Dropped, Older, ahead, Torn or broken
	what   string // what happened
	way    string // how an operator ends the quarantine
	node   string // address of the node in the text of the field "what"; "": no node
}

// These constants are the causes of a partition's quarantine (no decisions until an operator accepts the loss). A label
// of a metric also has these constants as values.
const (
	gone    = "gone"    // the server was emptied
	Dropped = "dropped" // the server dropped records while it loaded its append-only file
	Older   = "older"   // the server came back with older data
	ahead   = "clock"   // the server's clock was ahead earlier
	Torn    = "parted"  // a failover during the move of a hash slot
	broken  = "broken"  // a server evicted keys or lacks the append-only file, and no operator has accepted the risk
)

// Error returns a text about the cause of the quarantine (no decisions until an operator accepts the loss), and about
// the action that ends the quarantine.
func (b *Bar) Error() string { return b.what + ": " + b.way }

// The method What returns a text about the cause of the quarantine (no decisions until an operator accepts the loss),
// without the action that ends the quarantine.
func (b *Bar) What() string { return b.what }

// The method Group returns a key for the cause of the quarantine. The store reports all quarantines with the same key
// together. The key contains the cause and, if a server broke a promise, the server.
func (b *Bar) Group() string {
	if b.Reason == broken {
		return broken + ": " + b.what
	}
	return b.Reason
}

// The method Names reports whether the text of the Bar (quarantine of a partition) already names the node with this
// address.
func (b *Bar) Names(addr string) bool { return b.node == addr }

// The method Remedy tells the caller not to retry, so that the users of the quarantined partition stay without a
// decision.
func (b *Bar) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Barred, Final: true} }

var barGone = &Bar{Reason: gone, what: "the server was emptied, and its recorded sends are lost",
	way: "the users are unavailable until " + restart}

var barDropped = &Bar{Reason: Dropped, what: "the server dropped records while it loaded its append-only file, " +
	"because its user default lacks permissions", way: rightsFirst}

// barUnmarked is the quarantine of a partition that has a sentinel key, but has lost its mark (a hash with the same
// time as the sentinel key).
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

// Reasons returns all causes of a quarantine (no decisions until an operator accepts the loss).
func Reasons() []string { return []string{gone, Dropped, Older, ahead, Torn, broken} }

// The constant "restart" is a text for operators. The text of "restart" names the action that ends a partition's
// quarantine (no decisions until an operator accepts the loss) after a permanent loss.
const restart = "capper is restarted to create the store again from the remaining data (store.redis.create: true)"

func barAhead(by time.Duration) *Bar {
	return &Bar{Reason: ahead, what: fmt.Sprintf("the clock of the server was ahead by %v, so logs may have expired "+
		"too early", by.Round(time.Second)),
		way: "the users are unavailable until that time has come, or " + restart}
}

// Bar returns the quarantine (no decisions until an operator accepts the loss) of the partition, or nil if the
// partition has none.
func (t *Topology) Bar(partition int) *Bar {
	if b := t.broken[partition].Load(); b != nil { // evictions come first, because they may also remove sentinel keys
		return b
	}
	if b := t.bars[partition].Load(); b != nil {
		return b
	}
	return t.tornBar(partition)
}

// The method Lost returns the partitions in quarantine whose sentinel keys (marker keys that reveal lost data) show a
// loss of records.
func (t *Topology) Lost() map[int]*Bar {
	lost := map[int]*Bar{}
	for p := range t.bars {
		if b := t.bars[p].Load(); b != nil {
			lost[p] = b
		}
	}
	return lost
}

// markEmptied puts the partition into quarantine (no decisions until an operator accepts the loss), because a check of
// the node found no sentinel key of the partition.
func (t *Topology) markEmptied(n *Node, partition int) {
	if t.bars[partition].CompareAndSwap(nil, barGone) {
		t.config.Logger.Error("Redis store", "error", fmt.Errorf("node %s: %w", n.addr, barGone))
	}
	t.DoubtSigns()
}
