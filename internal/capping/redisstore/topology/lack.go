package topology

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// lack says why a master cannot decide its users now, and since when refreshes have found this reason. During a
// failover, a shard lacks a replica or a master for a moment. Calls wait while a replica or a master is missing for a
// moment. If the missing server is not back after the duration "patience", calls fail at once. A refresh detects within
// a second when the shard is complete again.
type lack struct {
	what     string
	kind     fault.Kind
	of       lackOf
	since    time.Time
	patience time.Duration
}

// lackOf says what prevents a master from deciding users: missing replicas, missing confirmations, no connection, or no
// reply to the check.
type lackOf int

const (
	ofReplicas     lackOf = iota // the cluster flagged the replicas as failed, or the master has none
	ofConfirmation               // replicas do not confirm writes and are not flagged as failed
	ofMaster                     // the master refuses connections
	ofAnswer                     // the check failed for another reason, which predicts nothing for the next call
)

// missingPatience and silentPatience limit how long calls wait for a missing or silent replica or master. A replica
// that the cluster flagged as failed may return within moments. The cluster flags a silent replica, and replaces a
// master, only after its node time-out, which is 15 s by default.
const (
	missingPatience = time.Second
	silentPatience  = 30 * time.Second
	silentLag       = 3 // seconds without a confirmation; a live replica confirms every second
)

// Error returns a description of what the master lacks, such as a replica.
func (l *lack) Error() string { return l.what }

// Remedy returns a remedy without a retry and without a refresh. The users of the command stay undecided. A refresh
// runs every second anyway.
func (l *lack) Remedy() fault.Remedy { return fault.Remedy{Kind: l.kind, Final: true} }

// noteLack stores why the master cannot decide its users, and since when. If the argument "found" is nil, the master
// lacks nothing.
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

// lastsLong reports whether calls should fail at once and no longer wait for the missing replica or master.
func (l *lack) lastsLong() bool { return l.of != ofAnswer && time.Since(l.since) >= l.patience }

// degraded reports whether the last check found that the master cannot decide its users.
func (n *Node) degraded() bool {
	l := n.lacks.Load()
	return l != nil && (l.of != ofConfirmation || l.lastsLong())
}

// Lack returns the reason why the store should send no command to the node, or nil if it may send commands. If Lack
// returns a reason, the node would not reply to a command, or the store could not count the reply. The argument
// "durable" says that the command needs confirmations by replicas.
func (n *Node) Lack(durable bool) error {
	l := n.lacks.Load()
	if l == nil || !durable && l.of != ofMaster || !l.lastsLong() {
		return nil
	}
	return l
}

// unanswered returns the lack (why the master cannot decide its users) for an error of the check of the master's
// replicas.
func unanswered(err error) *lack {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
		return &lack{what: err.Error(), kind: fault.Dial, of: ofMaster, patience: silentPatience}
	}
	return &lack{what: err.Error(), of: ofAnswer}
}

// shortage returns the lack (why the master cannot decide its users) if too few replicas can store a send, or nil.
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
