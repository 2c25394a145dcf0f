package topology

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// A lack is the reason why the store cannot decide about a master's users now. A lack also holds the time since which
// the store cannot decide about these users. During a failover, a shard lacks a replica or a master for a short time,
// and calls wait. If the missing server does not come back within the duration "patience", calls fail immediately. When
// the shard is complete again, a refresh notices the change within a second.
type lack struct {
	what     string
	kind     fault.Kind
	of       lackOf
	since    time.Time
	patience time.Duration
}

// A lackOf is the kind of a lack (reason why the store cannot decide about a master's users): missing replicas, missing
// confirmations, no connection, or no reply to the check.
type lackOf int

const (
	ofReplicas     lackOf = iota // the cluster flagged the replicas as failed, or the master has none
	ofConfirmation               // replicas do not confirm writes and are not flagged as failed
	ofMaster                     // the master refuses connections
	ofAnswer                     // the check failed for another reason; the next call may succeed
)

// missingPatience is the time for which calls wait for missing replicas, which may come back within moments.
// silentPatience is the time for which calls wait for a silent replica or for a master without a connection. The
// cluster reacts to a silent server only after the node time-out, which is 15 s by default.
const (
	missingPatience = time.Second
	silentPatience  = 30 * time.Second
	silentLag       = 3 // seconds without a confirmation; a live replica confirms every second
)

// Error returns a text about the thing that the master lacks, such as a replica.
func (l *lack) Error() string { return l.what }

// The method Remedy tells the caller not to retry, so that the users of the command stay without a decision. A refresh
// of the topology on request is not necessary, because a refresh runs every second anyway.
func (l *lack) Remedy() fault.Remedy { return fault.Remedy{Kind: l.kind, Final: true} }

// noteLack stores the reason why the store cannot decide about the master's users, and the time at which this state
// began. The argument "found" of noteLack is nil if the store can decide about the users.
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

// lastsLong reports whether calls should fail immediately, because the lack has lasted longer than the duration
// "patience".
func (l *lack) lastsLong() bool { return l.of != ofAnswer && time.Since(l.since) >= l.patience }

// The method "degraded" reports whether the store could not decide about the master's users at the last check.
func (n *Node) degraded() bool {
	l := n.lacks.Load()
	return l != nil && (l.of != ofConfirmation || l.lastsLong())
}

// The method Lack returns the reason why the store should send no command to the node, or nil. If Lack returns a
// reason, the node would not reply to a command, or the store could not accept the reply. The argument "durable" of
// Lack is true if replicas must confirm the writes of the command.
func (n *Node) Lack(durable bool) error {
	l := n.lacks.Load()
	if l == nil || !durable && l.of != ofMaster || !l.lastsLong() {
		return nil
	}
	return l
}

// The function "unanswered" returns the lack (reason why the store cannot decide about a master's users) for the error
// of a failed check of the master.
func unanswered(err error) *lack {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
		return &lack{what: err.Error(), kind: fault.Dial, of: ofMaster, patience: silentPatience}
	}
	return &lack{what: err.Error(), of: ofAnswer}
}

// The method "shortage" returns a lack if too few replicas can store a send, and otherwise nil.
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
