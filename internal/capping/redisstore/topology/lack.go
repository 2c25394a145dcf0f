package topology

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// lack is the reason why a master cannot decide its users, and the time since which refreshes have
// found it. During a failover a shard lacks a replica or a master for a moment, and calls wait.
// After the patience has passed, calls fail at once. The refresh detects within a second when the
// shard is complete again.
type lack struct {
	what     string
	kind     fault.Kind
	of       lackOf
	since    time.Time
	patience time.Duration
}

// lackOf is the kind of part that a master lacks: replicas, confirmations, the master itself or an
// answer.
type lackOf int

const (
	ofReplicas     lackOf = iota // the cluster flagged the replicas as failed, or there are none
	ofConfirmation               // replicas are silent and not flagged as failed
	ofMaster                     // the master refuses connections
	ofAnswer                     // the check failed for another reason, which predicts nothing for the next call
)

// missingPatience and the other durations limit how long calls wait for a missing part. A
// replica that the cluster flagged as failed may return within moments. A silent replica is flagged, and a master is
// replaced, after the cluster's node time-out, which is 15 s by default.
const (
	missingPatience = time.Second
	silentPatience  = 30 * time.Second
	silentLag       = 3 // seconds without a confirmation; a live replica confirms every second
)

// Error returns a description of the missing part, such as a replica.
func (l *lack) Error() string { return l.what }

// Remedy returns a remedy without a retry or a refresh: the users stay undecided, and a refresh
// runs every second anyway.
func (l *lack) Remedy() fault.Remedy { return fault.Remedy{Kind: l.kind, Final: true} }

// noteLack records the missing part and since when it has been missing. Nil means that nothing is
// missing.
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

// lastsLong reports whether calls should fail at once instead of waiting for the missing part.
func (l *lack) lastsLong() bool { return l.of != ofAnswer && time.Since(l.since) >= l.patience }

// degraded reports whether the last check found that the node cannot decide its users.
func (n *Node) degraded() bool {
	l := n.lacks.Load()
	return l != nil && (l.of != ofConfirmation || l.lastsLong())
}

// Lack returns the reason to send the node no command, or nil. The reply would never come or would
// not count. durable says that the command needs confirmations by replicas.
func (n *Node) Lack(durable bool) error {
	l := n.lacks.Load()
	if l == nil || !durable && l.of != ofMaster || !l.lastsLong() {
		return nil
	}
	return l
}

// unanswered returns the missing part for an error of the check itself.
func unanswered(err error) *lack {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
		return &lack{what: err.Error(), kind: fault.Dial, of: ofMaster, patience: silentPatience}
	}
	return &lack{what: err.Error(), of: ofAnswer}
}

// shortage returns the missing part when too few replicas can store a send, or nil.
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
