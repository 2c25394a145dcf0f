package pacing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Store keeps the logs of pacers. It is safe for concurrent use.
//
// Every method ends within the deadline of ctx (give or take 50 ms).
type Store interface {
	// TakePermits places the permits of the ask in all of its targets, in one atomic step,
	// and answers when that is durable. An error is that nothing is known: some or
	// all may have been taken, and nothing may be sent. With Permits 0 it only looks.
	// What Ask.Check refuses is an error and leaves the store as it was. A request
	// that is remembered with another Ask.Fingerprint is a *ReuseError.
	TakePermits(ctx context.Context, ask *Ask) (Grant, error)
	// ForgetPacer removes the logs of a pacer, all of them where it has one for each
	// message: what follows is placed as if nothing had been. Absent is no error.
	// Requests stay remembered.
	ForgetPacer(ctx context.Context, pacer string) error
}

// Target is a log and the limits that it is judged by.
type Target struct {
	Pacer   string // its name, see capping.IsName
	Message string // of a pacer per message: what stands for the message, hex digits; "": the pacer's only log
	Limits  []Limit
}

// Ask is for permits of several targets.
type Ask struct {
	Targets []Target      // 1 to MaxPacers, distinct
	Permits int           // 0 to MaxPermits; 0: look, take nothing
	MaxWait time.Duration // the latest slot, from now; 0 to MaxWait; 0: what may start now
	// Request stands for the client's request: the same one again, within the longest
	// wait of the grant and RememberFor, gets the same slots. Zero: none.
	Request Request
	// Content stands for all that the request asks for, so that it is not remembered
	// for another. Zero: the targets and the permits do.
	Content [8]byte
	// Continues: the request goes on with one that is remembered with Grant.More. It is
	// remembered even when it is given nothing, so that its repetition is not either.
	Continues bool
}

// Request stands for a client's request id: 16 bytes of a hash of both. The zero
// value is none.
type Request [16]byte

// RememberFor is for how long a request is remembered beyond the latest slot that it
// could have been given.
const RememberFor = time.Minute

// Check is why no store can take the ask; nil: every one can.
func (a *Ask) Check() error {
	switch {
	case len(a.Targets) == 0 || len(a.Targets) > MaxPacers:
		return fmt.Errorf("request has %d targets and must have 1 to %d", len(a.Targets), MaxPacers)
	case a.Permits < 0 || a.Permits > MaxPermits:
		return fmt.Errorf("permits: must be from 0 to %d, got %d", MaxPermits, a.Permits)
	case a.MaxWait < 0 || a.MaxWait > MaxWait:
		return fmt.Errorf("wait: must be from 0 to %v, got %v", MaxWait, a.MaxWait)
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
		if len(t.Limits) == 0 || len(t.Limits) > MaxLimits+1 {
			return fmt.Errorf("request has %d limits for %s and must have 1 to %d",
				len(t.Limits), t.Pacer, MaxLimits+1)
		}
		for _, limit := range t.Limits {
			if err := limit.Check(); err != nil {
				return fmt.Errorf("limit of %s: %w", t.Pacer, err)
			}
		}
	}
	return nil
}

// Grant is what an ask was given.
type Grant struct {
	At       Time // the store's time of this answer: slots are At + Wait, the same ones in every answer to a request
	Granted  int
	Runs     []WaitRun // Granted permits in all, in the order of their slots
	Replayed bool      // the request had been granted this before
	More     bool      // it ended for MostSteps alone: there is more to be had at once
	// Next is the wait until the slot that a permit more would have, and Target and
	// Limit, indices into the ask, are why it is not earlier. Limit is ByQueue when
	// it is only that the target's newest slot is there; Target is -1 when Next is 0.
	Next   time.Duration
	Target int
	Limit  int
	States []State // of the targets, after the grant
}

// ByQueue stands in Grant.Limit for the newest slot of the target.
const ByQueue = -1

// WaitRun is permits whose slots come at regular waits: Burst at Wait, Burst at
// Wait + Every and so on, the last time maybe fewer. Every 0: all at Wait.
type WaitRun struct {
	Wait    time.Duration // from Grant.At; negative when that slot is past
	Every   time.Duration
	Burst   int
	Permits int
}

// Past is how many of the run's permits have slots that are past.
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

// WaitOf is the wait until the slot of the permit k of the run, from 0.
func (r *WaitRun) WaitOf(k int) time.Duration {
	if r.Every == 0 {
		return r.Wait
	}
	return r.Wait + time.Duration(k/r.Burst)*r.Every
}

// State is what a target has recorded.
type State struct {
	Queue time.Duration // wait until the newest slot; 0: it is past
	Next  time.Duration // wait until the next slot that the target alone would give
	Used  []int         // by limit: how many of the newest Max slots are less than a window old
}

// ReuseError is that a request is remembered for another ask.
type ReuseError struct{}

func (*ReuseError) Error() string { return "the request id was already used for different permits" }

// Fingerprint tells asks apart that a request must not be remembered for: it is
// Content, or made of targets and permits.
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
