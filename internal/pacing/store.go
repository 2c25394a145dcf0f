package pacing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Store keeps the logs of pacers. A Store is safe for concurrent use.
//
// Every method returns within the deadline of ctx, give or take 50 ms.
type Store interface {
	// TakePermits places the permits of the ask in all its targets in one atomic step, and returns when the
	// result is durable. After an error the result is unknown: permits may have been taken, and the caller must
	// send nothing. With Permits 0 it takes nothing and returns the state. An ask that Ask.Check rejects returns
	// an error and does not change the store. A request that is remembered with another Ask.Fingerprint returns
	// a *ReuseError.
	TakePermits(ctx context.Context, ask *Ask) (Grant, error)
	// ReturnPermits gives back the permits of the ask's request that have future slots, except the first used ones. It
	// does so in one atomic step at all targets, and returns when the result is durable. The request keeps the other
	// permits, so a second call with the same or a larger used gives back nothing. The ask is that of the request, and
	// its MaxWait is at least that of the request: if a pacer was forgotten since then, its log is not changed. A slot
	// that a log cannot remove stays used. An unknown request is not an error, but a request of another ask returns a
	// *ReuseError. After any other error the result is unknown, and the caller must use none of the permits.
	ReturnPermits(ctx context.Context, ask *Ask, used int) (Returned, error)
	// HasRequest reports whether the request for pacers of the group is remembered.
	HasRequest(ctx context.Context, group string, r Request) (bool, error)
	// ForgetPacer removes the logs of a pacer of the group, or of AnyGroup, including all logs of its messages or keys.
	// Later permits are placed into empty logs. A missing log is not an error. Requests stay remembered.
	ForgetPacer(ctx context.Context, pacer, group string) error
	Leases
}

// Target is a log with its limits.
type Target struct {
	Pacer   string // the pacer's name, see capping.IsName
	Message string // a hash of the message or key with this log, in hex digits; "": the pacer's only log
	Group   string // the pacer's group
	Limits  []Limit
}

// Ask requests permits of several targets.
type Ask struct {
	Targets []Target      // 1 to MaxPacers distinct targets of one group
	Permits int           // 0 to MaxPermits; 0 only returns the state
	MaxWait time.Duration // the longest wait for a slot, 0 to MaxWait; 0: only slots that may start now
	// Request identifies the client's request. A repeated request gets the same slots during RememberedFor. The zero
	// value means no request.
	Request Request
	// Content is a hash of all that the request asks for, so that a store does not treat a different ask as a
	// repetition. The zero value means a hash of the targets and permits.
	Content [8]byte
	// Continues says that the request continues an earlier one that is remembered with Grant.More. The store remembers
	// the request even without a grant, so that a repetition gets nothing either.
	Continues bool
	// Ends says that the ask takes no permits. If the store does not remember the request, it remembers the request
	// without a grant, so that an ask that arrives later gets nothing.
	Ends bool
	// Lasts is how long the request is remembered beyond RememberFor, at least MaxWait. It is the longest wait of a
	// call of several steps, so that the store remembers all of them for the same time.
	Lasts time.Duration
}

// Request is a hash of a client and its request id, 16 bytes. The zero value means no request.
type Request [16]byte

// RememberFor is how long a store remembers a request after the latest possible slot of its grant.
const RememberFor = time.Minute

// RememberedFor returns how long a store remembers the request of the ask.
func (a *Ask) RememberedFor() time.Duration { return max(a.MaxWait, a.Lasts) + RememberFor }

// Remembers reports whether a store remembers the request with so many permits.
func (a *Ask) Remembers(granted int) bool {
	return a.Request != (Request{}) && (granted > 0 || a.Continues || a.Ends)
}

// Check returns an error when the ask is invalid for every store, and nil otherwise.
func (a *Ask) Check() error {
	switch {
	case len(a.Targets) == 0 || len(a.Targets) > MaxPacers:
		return fmt.Errorf("request for permits must have 1 to %d targets, got %d", MaxPacers, len(a.Targets))
	case a.Permits < 0 || a.Permits > MaxPermits:
		return fmt.Errorf("permits: must be from 0 to %d, got %d", MaxPermits, a.Permits)
	case a.MaxWait < 0 || a.MaxWait > MaxWait:
		return fmt.Errorf("wait: must be from 0 to %v, got %v", MaxWait, a.MaxWait)
	case a.Lasts < 0 || a.Lasts > MaxWait+callLasts:
		return fmt.Errorf("memory: must be from 0 to %v, got %v", MaxWait+callLasts, a.Lasts)
	}
	for i := range a.Targets {
		t := &a.Targets[i]
		if t.Pacer == "" {
			return errors.New("target must name a pacer")
		}
		if slices.ContainsFunc(a.Targets[:i], func(u Target) bool {
			return u.Pacer == t.Pacer &&
				u.Message == t.Message
		}) {
			return fmt.Errorf("target %s %s is given twice", t.Pacer, t.Message)
		}
		if t.Group != a.Group() {
			return fmt.Errorf("targets %s and %s must belong to one group, got %q and %q",
				a.Targets[0].Pacer, t.Pacer, a.Group(),
				t.Group)
		}
		if len(t.Limits) == 0 || len(t.Limits) > MaxLimits+1 {
			return fmt.Errorf("request for permits from pacer %s must have 1 to %d limits, got %d",
				t.Pacer, MaxLimits+1, len(t.Limits))
		}
		for _, limit := range t.Limits {
			if err := limit.Check(); err != nil {
				return fmt.Errorf("limit of %s: %w", t.Pacer, err)
			}
		}
	}
	return nil
}

// Group returns the group of the targets; "" without targets.
func (a *Ask) Group() string {
	if len(a.Targets) == 0 {
		return ""
	}
	return a.Targets[0].Group
}

// Grant is the result of an ask.
type Grant struct {
	At       Time // the store's time of this reply; At + Wait is a slot, equal in every reply to a request
	Granted  int
	Runs     []WaitRun // Granted permits in the order of their slots
	Replayed bool      // an earlier call with the same request received this grant
	More     bool      // the grant ended only because of MostSteps; more permits are available at once
	// Next is the wait for the slot of one more permit. Target and Limit are indexes into the ask. They name the limit
	// that prevents an earlier slot. Limit is ByQueue if only the target's newest slot prevents it. Target is -1 when
	// Next is 0.
	Next   time.Duration
	Target int
	Limit  int
	States []State // states of the targets after the grant
}

// ByQueue is the value of Grant.Limit when the newest slot of the target prevents an earlier slot.
const ByQueue = -1

// ByShare is the value of Grant.Limit in an Answer if a part of the pacer prevents an earlier slot: the part of the
// call's share, or the part that other shares leave.
const ByShare = -2

// WaitRun is a sequence of permits with regular waits: Burst permits at Wait, Burst at Wait + Every and so
// on, with a smaller last burst. Every 0 means that all permits are at Wait.
type WaitRun struct {
	Wait    time.Duration // from Grant.At; negative for a slot in the past
	Every   time.Duration
	Burst   int
	Permits int
}

// Past returns how many of the run's permits have slots in the past.
func (r *WaitRun) Past() int {
	switch {
	case r.Wait >= 0:
		return 0
	case r.Every == 0:
		return r.Permits
	}
	slots := (-r.Wait + r.Every - 1) / r.Every
	return int(min(slots*time.Duration(r.Burst), time.Duration(r.Permits)))
}

// WaitOf returns the wait for permit k of the run; permits count from 0.
func (r *WaitRun) WaitOf(k int) time.Duration {
	if r.Every == 0 {
		return r.Wait
	}
	return r.Wait + time.Duration(k/r.Burst)*r.Every
}

// State is the state of a target's log.
type State struct {
	Queue time.Duration // the wait until the newest slot; 0: the slot is in the past
	Next  time.Duration // the wait until the next slot under the target's own limits
	Used  []int         // by limit: how many of the newest Max slots are less than a window old
}

// ReuseError is the error of a request id that is remembered for a different ask.
type ReuseError struct{}

func (*ReuseError) Error() string { return "the request id was already used for different permits" }

// Fingerprint returns Content, or else a hash of targets and permits. Different asks have different fingerprints.
func (a *Ask) Fingerprint() (sum [8]byte) {
	if a.Content != sum {
		return a.Content
	}
	h := sha256.New()
	for _, t := range a.Targets {
		fmt.Fprintf(h, "%s\n%s\n", t.Pacer, t.Message)
	}
	fmt.Fprintf(h, "%d", a.Permits)
	return [8]byte(h.Sum(nil)[:8])
}
