package pacing

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// HeldFor is the longest time for which the service delays the response to a call whose MaxWait is 0. heldAlone is the
// longest delay for a call that names only one pacer. The section "Calls without a wait" of the package documentation
// explains HeldFor and heldAlone.
const (
	HeldFor   = 50 * time.Millisecond
	heldAlone = 5 * time.Millisecond
)

// leastRetry is the shortest retry delay in the response to a refused call for permits.
const leastRetry = time.Millisecond

// takeNow takes permits for a call whose MaxWait is 0. If no slot is free now but the next slot is near, takeNow takes
// that slot. If permits were refused, the response gives the delay after which a retry would get the next slot.
func (t *taking) takeNow(ctx context.Context) error {
	longest := t.heldFor()
	if t.base.Permits == 1 { // one step finds a slot now, or a near slot
		t.waitFor(longest)
	}
	if err := t.take(ctx); err != nil {
		return err
	}
	if next := t.answer.Next; t.base.Permits > 1 && t.answer.Granted == 0 && !t.answer.Replayed && next <= longest {
		t.waitFor(next) // take the permits of one slot, because all of them start when the response comes
		if err := t.take(ctx); err != nil {
			return err
		}
	}
	if err := t.answer.hold(ctx, longest); err != nil {
		return err
	}
	if t.answer.Refused > 0 {
		next := t.answer.Next
		t.answer.Next = max(min(next, leastRetry), next-longest)
	}
	return nil
}

// heldFor returns the longest time for which the service may delay the response to this call.
func (t *taking) heldFor() time.Duration {
	var slowest, all time.Duration
	bound := HeldFor
	pacers := t.answer.Pacers
	for i := range pacers {
		interval := pacers[i].interval()
		slowest, all, bound = max(slowest, interval), all+interval, min(bound, pacers[i].LongestWait())
	}
	switch {
	case len(pacers) > 1:
		return min(all-slowest+heldAlone, bound)
	case pacers[0].Rate.Permits > 0:
		return min(slowest, heldAlone, bound)
	}
	return 0
}

// The method "interval" returns the time between two permits at the rate of the pacer. For a pacer without a rate,
// "interval" returns the shortest window divided by its Max.
func (p *Pacer) interval() time.Duration {
	if p.Rate.Permits > 0 {
		return p.Rate.Interval()
	}
	shortest := slices.MinFunc(p.Limits, func(a, b Limit) int { return cmp.Compare(a.Window, b.Window) })
	return shortest.Window / time.Duration(shortest.Max)
}

// waitFor sets the longest wait of a call for permits: later steps of the call ask only for slots within this wait.
func (t *taking) waitFor(wait time.Duration) {
	t.base.MaxWait = wait
	t.setSteps()
}

// The method "hold" sleeps until the last granted slot (start time) of the answer. If the wait until the last slot is
// longer than the argument "longest", the method "hold" does not sleep.
func (a *Answer) hold(ctx context.Context, longest time.Duration) error {
	if len(a.Runs) == 0 {
		return nil
	}
	last := &a.Runs[len(a.Runs)-1]
	wait := last.WaitOf(last.Permits - 1)
	if wait <= 0 || wait > longest { // a repeated call with a longer wait returns the waits instead
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	a.later(wait)
	return nil
}

// The method "later" subtracts the duration in the argument "passed" from the waits in the answer. The service has
// already waited for this duration.
func (a *Answer) later(passed time.Duration) {
	a.At = a.At.Add(passed)
	for i := range a.Runs {
		a.Runs[i].Wait -= passed
	}
	a.Next = max(0, a.Next-passed)
	for i := range a.States {
		s := &a.States[i]
		s.Queue, s.Next = max(0, s.Queue-passed), max(0, s.Next-passed)
	}
}
