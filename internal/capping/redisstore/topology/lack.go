package topology

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"capper/internal/capping/redisstore/fault"
)

// A lack says why a master cannot decide its users now, and since when the refreshes have found this reason. During a
// failover, a shard lacks a replica or a master for a short time. If a replica or a master is missing for only a short
// time, calls wait for it. If the missing server does not come back within the duration "patience", calls fail at once.
// When the shard is complete again, a refresh notices this within a second.
type lack struct {
	what     string
	kind     fault.Kind
	of       lackOf
	since    time.Time
	patience time.Duration
}

// A lackOf is what prevents a master from deciding users: missing replicas, missing confirmations, no connection, or no
// reply to the check.
type lackOf int

const (
	ofReplicas     lackOf = iota // the cluster flagged the replicas as failed, or the master has none
	ofConfirmation               // replicas do not confirm writes and are not flagged as failed
	ofMaster                     // the master refuses connections
	ofAnswer                     // the check failed for another reason, which predicts nothing for the next call
)

// missingPatience is how long calls wait if a replica or master is missing. silentPatience is how long calls wait if a
// replica or master is silent. A replica that the cluster has flagged as failed may come back within moments. If a
// replica or a master is silent, the cluster reacts only after its node time-out, which is 15 s by default.
const (
	missingPatience = time.Second
	silentPatience  = 30 * time.Second
	silentLag       = 3 // seconds without a confirmation; a live replica confirms every second
)

// Error says what the master lacks to decide its users, such as a replica.
func (l *lack) Error() string { return l.what }

// Remedy tells the caller not to retry, and not to cause a refresh of the topology. The users of the command stay
// undecided. A refresh runs every second anyway.
func (l *lack) Remedy() fault.Remedy { return fault.Remedy{Kind: l.kind, Final: true} }

// noteLack stores why the master cannot decide its users, and since when this is so. The argument "found" of noteLack
// is nil if the master can decide its users.
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

// lastsLong reports whether calls should fail at once, because the missing replica or master has been missing for long.
func (l *lack) lastsLong() bool { return l.of != ofAnswer && time.Since(l.since) >= l.patience }

// degraded reports whether the master could not decide its users at the last check.
func (n *Node) degraded() bool {
	l := n.lacks.Load()
	return l != nil && (l.of != ofConfirmation || l.lastsLong())
}

// Lack returns why the store should send no command to the node, or nil if it may send commands. If Lack returns a
// reason, the node would not reply to a command, or the store could not accept the reply. The argument "durable" of
// Lack says that replicas must confirm the writes of the command.
func (n *Node) Lack(durable bool) error {
	l := n.lacks.Load()
	if l == nil || !durable && l.of != ofMaster || !l.lastsLong() {
		return nil
	}
	return l
}

// unanswered is for a check of a master's replicas that failed: it returns, for the error, why the master cannot decide
// its users.
func unanswered(err error) *lack {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
		return &lack{what: err.Error(), kind: fault.Dial, of: ofMaster, patience: silentPatience}
	}
	return &lack{what: err.Error(), of: ofAnswer}
}

// shortage returns a lack if too few replicas can store a send, so that the master cannot decide its users. Otherwise,
// shortage returns nil.
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
