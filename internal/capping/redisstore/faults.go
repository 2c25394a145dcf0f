package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology"
)

// errAcks is that too few replicas confirmed in time.
type errAcks struct{ got, want int }

func (e *errAcks) Error() string {
	return fmt.Sprintf("%d of %d replicas confirmed in time", e.got, e.want)
}

// Remedy is to ask again who the replicas are.
func (e *errAcks) Remedy() fault.Remedy {
	return fault.Remedy{Kind: fault.Acks, Unknown: true, Refresh: true}
}

// errUnsent is an error before anything was sent.
type errUnsent struct{ err error }

func (e *errUnsent) Error() string { return e.err.Error() }
func (e *errUnsent) Unwrap() error { return e.err }

// Remedy is that of the error, which cannot have had an effect.
func (e *errUnsent) Remedy() fault.Remedy {
	r := fault.Of(e.err)
	r.Unknown, r.Refresh = false, true
	return r
}

// late is whether a call that came off after its stamp, and whose answer took so
// long, may have been late rather than the node's clock wrong.
func late(off, took, skew time.Duration) bool { return off > skew && off-took <= skew }

// clockError is what a node says of a stamp that is off its clock.
type clockError struct {
	off, skew time.Duration
	late      bool
}

func (e *clockError) Error() string {
	if e.late {
		return fmt.Sprintf("the call came %v after it was stamped, which is more than clock_skew %v: "+
			"the way there is slow, or clock_skew too short for the distance", e.off, e.skew)
	}
	return fmt.Sprintf("its clock differs from this machine's by %v, more than clock_skew %v", e.off, e.skew)
}

// faults counts what went wrong in a run, by kind, each with one example.
type faults struct {
	users    map[fault.Kind]int // users left undecided
	attempts map[fault.Kind]int // failed attempts
	example  map[fault.Kind]error
}

func (f *faults) attempt(k fault.Kind, err error) {
	f.note(k, err)
	f.attempts[k]++
}

func (f *faults) undecided(k fault.Kind, users int, err error) {
	if users == 0 {
		return
	}
	f.note(k, err)
	f.users[k] += users
}

func (f *faults) note(k fault.Kind, err error) {
	if f.users == nil {
		f.users, f.attempts, f.example = map[fault.Kind]int{}, map[fault.Kind]int{}, map[fault.Kind]error{}
	}
	if f.example[k] == nil && err != nil {
		f.example[k] = err
	}
}

// hints are what operators can do, by kind.
var hints = map[fault.Kind]string{
	fault.Acks:   "replicas are lost or behind: /v1/status tells of which node",
	fault.Clock:  "set the clocks by NTP",
	fault.Memory: "the node is full: give it more memory, or move slots to another",
	fault.Auth:   "compare the user, the password and deploy/redis.acl with the node's",
	fault.Route:  topology.ClusterDown,
	fault.Down:   "the node starts, fails over or is out of service",
}

// err is a sentence for operators about the users left undecided, or nil.
func (f *faults) err() error {
	var kinds []fault.Kind
	for k, n := range f.users {
		if n > 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	slices.Sort(kinds)
	var parts []error
	for _, k := range kinds {
		err := fmt.Errorf("%d users undecided (%s)", f.users[k], k)
		if cause := f.cause(k); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		if hint := hints[k]; hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		parts = append(parts, err)
	}
	return errors.Join(parts...)
}

// cause is the example of the kind; of a deadline, that of what went wrong
// most often until then.
func (f *faults) cause(k fault.Kind) error {
	if k != fault.Deadline || len(f.attempts) == 0 {
		return f.example[k]
	}
	most := fault.None
	for other, n := range f.attempts {
		if n > f.attempts[most] || n == f.attempts[most] && other < most {
			most = other
		}
	}
	return f.example[most]
}
