package topology

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// lack is why a master cannot decide its users, as the refreshes have found it since a time. A shard is
// without a replica, or a master, for a moment in each failover: calls wait for so long. After that they
// are answered at once, and the refresh, once a second, finds out when the shard is whole again.
type lack struct {
	what     string
	kind     fault.Kind
	of       lackOf
	since    time.Time
	patience time.Duration
}

// lackOf is what is lacking.
type lackOf int

const (
	ofReplicas     lackOf = iota // the cluster has given them up, or there are none
	ofConfirmation               // replicas are silent, and not given up
	ofMaster                     // it refuses connections
	ofAnswer                     // the look failed otherwise, which says nothing of the next call
)

// Patience with what is lacking. A replica that the cluster has given up may be back in a moment. A silent
// one is given up, and a master is replaced, after the cluster's node time-out, which is 15 s by default.
const (
	missingPatience = time.Second
	silentPatience  = 30 * time.Second
	silentLag       = 3 // seconds without a confirmation: a replica sends one each second
)

// Error is what is lacking.
func (l *lack) Error() string { return l.what }

// Remedy is to leave the users undecided, without another look: there is one each second.
func (l *lack) Remedy() fault.Remedy { return fault.Remedy{Kind: l.kind, Final: true} }

// noteLack keeps since when the same is lacking. Nil: nothing is.
func (n *Node) noteLack(found *lack) {
	before := n.lacks.Load()
	if found != nil {
		found.since = time.Now()
		if before != nil && before.of == found.of {
			found.since = before.since
		}
	}
	n.lacks.Store(found)
}

// lastsLong reports whether calls wait no more for what is lacking.
func (l *lack) lastsLong() bool { return l.of != ofAnswer && time.Since(l.since) >= l.patience }

// degraded reports whether the last look found the node unable to decide its users.
func (n *Node) degraded() bool {
	l := n.lacks.Load()
	return l != nil && (l.of != ofConfirmation || l.lastsLong())
}

// Lack is why a command for the node is not sent, or nil: its answer would not come, or not hold.
// durable: the command's reply needs replicas.
func (n *Node) Lack(durable bool) error {
	l := n.lacks.Load()
	if l == nil || !durable && l.of != ofMaster || !l.lastsLong() {
		return nil
	}
	return l
}

// unanswered is what is lacking where the look at the node failed.
func unanswered(err error) *lack {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
		return &lack{what: err.Error(), kind: fault.Dial, of: ofMaster, patience: silentPatience}
	}
	return &lack{what: err.Error(), of: ofAnswer}
}

// shortage is why sends cannot be held by as many replicas as asked for, or nil.
func (n *Node) shortage(f found) *lack {
	acks := n.top.config.ReplicaAcks
	if acks.None() {
		return nil
	}
	want := acks.NeededReplicas()
	short := &lack{kind: fault.Acks, of: ofReplicas, patience: missingPatience}
	if f.alive < want {
		short.what = fmt.Sprintf("%d of the %d replicas that replica_acks: %s requires", f.alive, want, acks)
		return short
	}
	if acks == Healthy {
		want = f.alive
	}
	if heard := talking(f.fed, silentLag); heard < want {
		short.what = fmt.Sprintf("%d of the %d replicas that replica_acks: %s requires have confirmed a write "+
			"within %ds", heard, want, acks, silentLag)
		short.of, short.patience = ofConfirmation, silentPatience
		return short
	}
	return nil
}
