package pacing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Store keeps the logs of pacers. A log holds the granted slots of a pacer. A Store is safe for concurrent use.
//
// Every method of Store returns at most 50 ms after the deadline of ctx.
type Store interface {
	// In one atomic step, TakePermits places the permits of the request "ask" in the logs of all its targets.
	// TakePermits returns when the result is durable. After an error of TakePermits the result is unknown: the store
	// may or may not have taken permits, and the caller must not send anything. If ask.Permits is 0, TakePermits takes
	// no permits and returns the states of the targets. If Ask.Check rejects the permit request, TakePermits returns an
	// error and does not change the store. If the store remembers the same request id with another Ask.Fingerprint
	// (hash of the content), TakePermits returns a *ReuseError.
	TakePermits(ctx context.Context, ask *Ask) (Grant, error)
	// ReturnPermits gives permits of the ask's request back to the pacers: all permits with future slots, except the
	// first "used" permits of the request. ReturnPermits changes the request and the logs of all targets in one atomic
	// step, and returns when the result is durable. The request keeps its other permits. A second call of ReturnPermits
	// with the same or a larger argument "used" therefore returns no permits. The argument "ask" of ReturnPermits must
	// have the Fingerprint of the request that took the permits, and a MaxWait that is at least as long. If ForgetPacer
	// removed the log of a pacer after the request, ReturnPermits does not change the new log of that pacer. Limits
	// still count a slot that ReturnPermits cannot remove from a log. If the store does not remember the request,
	// ReturnPermits returns no error. If another permit request has used the same request id, ReturnPermits returns a
	// *ReuseError. After any other error of ReturnPermits, the store may or may not have returned permits, and the
	// caller must not use any of them.
	ReturnPermits(ctx context.Context, ask *Ask, used int) (Returned, error)
	// HasRequest reports whether the store remembers the permit request for pacers of the group.
	HasRequest(ctx context.Context, group string, r Request) (bool, error)
	// ForgetPacer removes all logs of a pacer in the group, also the logs of single messages or keys. The group may be
	// AnyGroup. The next permits of a forgotten pacer go into empty logs. If the pacer has no log, ForgetPacer returns
	// nil. After ForgetPacer, the store still remembers the permit requests of the pacer.
	ForgetPacer(ctx context.Context, pacer, group string) error
	Leases
}

// Target identifies a log of a pacer (the list of its granted slots), together with the limits that apply to the log.
type Target struct {
	Pacer   string // the pacer's name, see capping.IsName
	Message string // a hash of the message or key that has this log, in hex digits; "": the pacer's only log
	Group   string // the pacer's group
	Limits  []Limit
}

// Ask is a request to a Store for permits that several targets must grant at the same slots.
type Ask struct {
	Targets []Target      // 1 to MaxPacers distinct targets of one group
	Permits int           // 0 to MaxPermits; 0 only returns the state
	MaxWait time.Duration // the longest wait for a slot, 0 to MaxWait; 0: only slots that may start now
	// Request identifies the request of a client. For the time RememberedFor, a repeated request gets the same slots
	// again. The zero Request means that the permit request has no request id.
	Request Request
	// Content is a hash of everything that the request asks for. With this hash, a store recognizes whether a request
	// is a repetition or a different permit request. If Content is zero, the store uses a hash of the targets and
	// permits instead.
	Content [8]byte
	// If the field Continues is true, the request continues an earlier request whose grant had Grant.More set. The
	// store remembers a continuing request even if the store grants no permits, so that a repetition gets no permits
	// either.
	Continues bool
	// If the field Ends is true, the permit request takes no permits. If the store does not know the request yet, the
	// store remembers the request without permits. Afterwards, a delayed request with the same request id gets no
	// permits.
	Ends bool
	// The store remembers the request for RememberFor plus the longer of Lasts and MaxWait. For a step of a call, Lasts
	// is the longest wait of the whole call. For the first of several steps, callLasts is added.
	Lasts time.Duration
}

// Request is a hash of a client and its request id, 16 bytes long. The zero Request means that the caller gave no
// request id.
type Request [16]byte

// RememberFor is the time for which a store remembers a permit request after the latest slot that the request could
// get.
const RememberFor = time.Minute

// RememberedFor returns the time for which a store remembers the request for permits.
func (a *Ask) RememberedFor() time.Duration { return max(a.MaxWait, a.Lasts) + RememberFor }

// The method Remembers reports whether a store must remember the request for permits after it has granted the given
// number of permits.
func (a *Ask) Remembers(granted int) bool {
	return a.Request != (Request{}) && (granted > 0 || a.Continues || a.Ends)
}

// Check returns an error if no store could accept the request for permits, and nil otherwise.
func (a *Ask) Check() error {
	switch {
	case len(a.Targets) == 0 || len(a.Targets) > MaxPacers:
		return fmt.Errorf("request for permits must name 1 to %d pacers, got %d", MaxPacers, len(a.Targets))
	case a.Permits < 0 || a.Permits > MaxPermits:
		return fmt.Errorf("request for permits: the number of permits must be from 0 to %d, got %d",
			MaxPermits, a.Permits)
	case a.MaxWait < 0 || a.MaxWait > MaxWait:
		return fmt.Errorf("request for permits: the maximum wait must be from 0 to %v, got %v", MaxWait, a.MaxWait)
	case a.Lasts < 0 || a.Lasts > MaxWait+callLasts:
		return fmt.Errorf("request for permits: the store must keep the request for a time from 0 to %v, got %v",
			MaxWait+callLasts, a.Lasts)
	}
	for i := range a.Targets {
		t := &a.Targets[i]
		if t.Pacer == "" {
			return errors.New("request for permits must name a pacer")
		}
		if slices.ContainsFunc(a.Targets[:i], func(u Target) bool {
			return u.Pacer == t.Pacer &&
				u.Message == t.Message
		}) {
			return fmt.Errorf("target %s %s is given twice", t.Pacer, t.Message)
		}
		if t.Group != a.Group() {
			return fmt.Errorf("request for permits: the pacers %s and %s must be in one pacer group, got %q and %q",
				a.Targets[0].Pacer, t.Pacer, a.Group(),
				t.Group)
		}
		if len(t.Limits) == 0 || len(t.Limits) > MaxLimits+1 {
			return fmt.Errorf("request for permits: pacer %s must have 1 to %d limits (a rate counts as one), got %d",
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

// Group returns the pacer group of the request's targets, or "" if the permit request has no targets.
func (a *Ask) Group() string {
	if len(a.Targets) == 0 {
		return ""
	}
	return a.Targets[0].Group
}

// Grant is the reply of a Store to an Ask: the granted permits with their slots.
type Grant struct {
	At       Time // the store's time of this reply; At plus a Wait of Runs is a slot
	Granted  int
	Runs     []WaitRun // the granted permits, in the order of their slots
	Replayed bool      // true if an earlier call with the same request received this grant
	More     bool      // the grant ended because of MostSteps: the next request can get more permits at once
	// Next is the wait until the slot that one more permit would get. The fields Target and Limit name the limit that
	// prevents an earlier slot for this permit: Target is the index of a target in the permit request, and Limit is the
	// index of one of this target's limits. The field Limit is ByQueue if only the newest slot in the target's log
	// prevents an earlier slot. The field Target is -1 if Next is 0.
	Next   time.Duration
	Target int
	Limit  int
	States []State // states of the targets after the grant
}

// ByQueue is the value of Grant.Limit if only the newest slot in the target's log, and no limit, prevents an earlier
// slot.
const ByQueue = -1

// ByShare is the value of Grant.Limit in an Answer if the division of a pacer into shares prevents an earlier slot. The
// value ByShare means that a part of the pacer is used up: the part of the call's share, or the rest for calls without
// a share.
const ByShare = -2

// WaitRun is a series of permits at equal distances. The first slot of a WaitRun comes after the duration Wait, the
// next slot after Wait + Every, and so on. Each slot of a WaitRun has as many permits as the field Burst says. The last
// burst of a WaitRun may have fewer permits. If Every is 0, all permits are at Wait.
type WaitRun struct {
	Wait    time.Duration // from Grant.At; negative for a slot in the past
	Every   time.Duration
	Burst   int
	Permits int
}

// The method Past returns the number of permits in the run whose slots (start times) are in the past.
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

// WaitOf returns the wait for permit k of the run. The first permit of a run has the number k = 0.
func (r *WaitRun) WaitOf(k int) time.Duration {
	if r.Every == 0 {
		return r.Wait
	}
	return r.Wait + time.Duration(k/r.Burst)*r.Every
}

// State is the state of the log of a target (log with its limits): the number of used slots, and the wait of a new
// permit.
type State struct {
	Queue time.Duration // the wait until the newest slot in the log; 0: this slot is in the past
	Next  time.Duration // the wait until the next slot under the target's own limits
	Used  []int         // by limit: the number of slots less than a window old, at most Max
}

// ReuseError is the error for a request id that a client has already used for a different request for permits.
type ReuseError struct{}

func (*ReuseError) Error() string { return "the request id was already used for different permits" }

// Fingerprint returns the Content of the request for permits. If Content is zero, Fingerprint returns a hash of the
// targets and permits of the request. Two different asks have different fingerprints.
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
