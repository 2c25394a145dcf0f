package topology

import (
	"fmt"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// Bar is why the users of a partition are unavailable though a node serves it:
// what it holds is not all that was recorded. It is an error.
type Bar struct {
	Reason string // Gone, Ahead or Torn
	what   string // happened
	way    string // back for its users
}

// Reasons of bars, as metrics label them.
const (
	Gone  = "gone"   // the server was emptied
	Ahead = "clock"  // the server's clock was ahead
	Torn  = "parted" // a failover in the middle of a slot's move
)

// Error is what happened, and the way back.
func (b *Bar) Error() string { return b.what + ": " + b.way }

// What is what happened, without the way back.
func (b *Bar) What() string { return b.what }

// Remedy is to leave the users undecided.
func (b *Bar) Remedy() fault.Remedy { return fault.Remedy{Kind: fault.Barred, Final: true} }

var barGone = &Bar{Gone, "the server was emptied, what was recorded there is lost",
	"the users are unavailable until " + restart}

// restart is the way back where history is lost for good.
const restart = "capper is restarted to begin anew with what is left (store.redis.create: true)"

func barAhead(by time.Duration) *Bar {
	return &Bar{Ahead, fmt.Sprintf("the server's clock was ahead by %v, so that logs may have expired before their time", by.Round(time.Second)),
		"the users are unavailable until it is that late again, or " + restart}
}

// Bar is why nobody of the partition is decided, or nil.
func (t *Topology) Bar(partition int) *Bar {
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
