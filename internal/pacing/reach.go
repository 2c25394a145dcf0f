package pacing

import (
	"context"
	"maps"
	"time"
)

// The constants from LeastReach to leastRowSlots determine how a pacer's slots are divided between calls with shorter
// and longer waits. The section "Waits of different length" of the package documentation explains these constants.
const (
	// LeastReach is the shortest protected wait above 0. A protected wait is a wait class with slots that calls with
	// longer waits leave free.
	LeastReach = 500 * time.Millisecond
	mostReach  = 2 * time.Minute
	// In each period of a rate, calls with longer waits get a row of slots (one strand in the log). A log has at most
	// farRows such rows, because a log has at most MostAhead strands (series of slots).
	farRows = 64
	// Calls without a wait lose up to one interval of each period. With long periods, this loss of slots is small.
	leastRow, leastRowSlots = 100 * time.Millisecond, 48
)

// The function "reaches" returns the protected waits (wait classes with slots kept free) in ascending order. A store
// reads the marks of all protected waits in one step, so the number of protected waits is at most MaxPacers. The
// protected wait 0 belongs to calls that do not wait.
func reaches() []time.Duration {
	return []time.Duration{0, LeastReach, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, mostReach}
}

// reachOf returns the longest protected wait (wait class with slots kept free) that does not exceed the given wait.
func reachOf(wait time.Duration) (reach time.Duration) {
	for _, r := range reaches() {
		if r <= wait {
			reach = r
		}
	}
	return reach
}

// The method "reached" reports whether calls with long waits must leave some slots of this pacer free for calls with
// shorter waits. At a pacer with shares (reserved parts), calls need not leave slots free, because calls without a
// share get only near slots. A pacer with several logs would need too many marks (logs by which instances tell each
// other of calls): one mark for each log and protected wait.
func (p *Pacer) reached() bool { return len(p.Shares) == 0 && p.Per == PerPacer }

// The method "far" returns the target of the far log. The far log is a log with lower limits, for the slots that calls
// with long waits get later than a protected wait (wait class with slots kept free). The limits of the far log (log of
// late slots) are three quarters of the pacer's limits. For the far log (log of late slots), the pacer's rate becomes a
// limit on the permits in several intervals.
func (p *Pacer) far(reach time.Duration) Target {
	var limits []Limit
	for _, limit := range p.Limits {
		limits = append(limits, Limit{threeQuarters(limit.Max), limit.Window})
	}
	if p.Rate.Permits > 0 {
		n := p.rowIntervals(reach)
		limits = append(limits, Limit{threeQuarters(n), time.Duration(n) * p.Rate.Interval()})
	}
	return p.partTarget("far", "", limits)
}

func threeQuarters(n int) int { return max(1, n*3/4) }

// rowIntervals returns the length of a period, as a number of intervals of the pacer's rate. Calls with longer waits
// get three quarters of each period. A period is at most as long as MaxWindow, and has at most MaxMax permits.
func (p *Pacer) rowIntervals(reach time.Duration) int {
	interval := p.Rate.Interval()
	n := max(2, int(reach/2/interval))
	if reach == 0 {
		n = max(leastRowSlots, int(leastRow/interval))
	}
	return min(n, int(MaxWindow/interval), MaxMax)
}

// farReach returns the longest wait for a slot that the pacer grants to a call with a long wait. A call with a long
// wait must leave slots free for calls with a shorter, protected wait.
func (p *Pacer) farReach(reach time.Duration) time.Duration {
	period := MaxWait
	for _, limit := range p.far(reach).Limits {
		period = min(period, limit.Window)
	}
	return max(reach, min(period*farRows, MaxWait))
}

// reachMark returns the target of a mark. A mark is a log for signals between instances: a permit in the log says that
// calls use a protected wait (wait class with slots kept free).
func (p *Pacer) reachMark(reach, window time.Duration) Target {
	return p.partTarget("reach", reach.String(), []Limit{{1, window}})
}

// The type "leaving" describes the slots of a pacer that a call leaves free for calls with shorter waits.
type leaving struct {
	some  bool          // the call leaves slots free
	reach time.Duration // the shortest protected wait of those calls
	far   time.Duration // the longest wait for a slot of the call
}

// The method "near" returns the wait within which a call with a long wait may take every free slot. Beyond this wait,
// the call must leave some slots free for other calls.
func (r *leaving) near() time.Duration { return min(r.reach/2, LeastReach) }

// learnReach reads from the store the protected waits (wait classes with slots kept free) in use at the pacers of the
// call. The method learnReach skips a pacer if the newest slot that this instance has seen at the pacer is near.
func (p *Pacers) learnReach(ctx context.Context, plan *plan) error {
	if plan.wait < LeastReach || plan.base.Permits == 0 || !plan.leaves {
		return nil
	}
	now := p.clock()
	for i := range plan.answer.Pacers {
		pacer := &plan.answer.Pacers[i]
		if pacer.reached() && p.reach.queued(pacer.Name, now) && p.reach.due(pacer.Name, now) {
			if err := p.readReaches(ctx, pacer, now); err != nil {
				return err
			}
		}
		plan.rooms = append(plan.rooms, p.reach.room(pacer, reachOf(plan.wait), now))
	}
	plan.setSteps()
	return nil
}

// The method "room" describes the slots of a pacer that a call must leave free for calls with shorter waits. The
// argument "own" of the method "room" is the protected wait (wait class with slots kept free) of the call itself. If
// several shorter protected waits are in use, the call leaves slots free for the shortest, and takes no slot later than
// the second shortest.
func (r *reaching) room(pacer *Pacer, own time.Duration, now time.Time) (left leaving) {
	for _, reach := range reaches() {
		switch {
		case reach >= own || !pacer.reached() || !r.is(pacer.Name, reach.String(), now):
		case !left.some:
			left = leaving{true, reach, pacer.farReach(reach)}
		default:
			left.far = min(left.far, reach)
			return left
		}
	}
	return left
}

// readReaches reads from the store the protected waits (wait classes with slots kept free) of recent calls at the
// pacer.
func (p *Pacers) readReaches(ctx context.Context, pacer *Pacer, now time.Time) error {
	look := &Ask{}
	for _, reach := range reaches() {
		look.Targets = append(look.Targets, pacer.reachMark(reach, KeptFor))
	}
	grant, err := p.store.TakePermits(ctx, look)
	if err != nil {
		return err
	}
	for i, reach := range reaches() {
		p.reach.see(pacer.Name, reach.String(), now.Add(grant.States[i].Next))
	}
	return nil
}

// tellReach remembers the newest slot of each pacer of the call. If that slot is later than the call may wait,
// tellReach also stores a mark. The mark tells other instances that calls use the protected wait (wait class with slots
// kept free) of this call. The method tellReach stores no mark for a call without a wait that got all its permits. If
// the store refuses the mark, a later call stores the mark, because the response of the present call is already
// complete.
func (p *Pacers) tellReach(ctx context.Context, plan *plan) {
	now, reach := p.clock(), reachOf(plan.wait)
	for i := range plan.answer.Pacers {
		pacer, queue := &plan.answer.Pacers[i], plan.answer.States[i].Queue
		if !pacer.reached() {
			continue
		}
		p.reach.note(pacer.Name, now.Add(queue))
		if queue <= max(plan.wait, LeastReach/2) || plan.base.Permits == 0 || plan.answer.Replayed ||
			reach == 0 && plan.answer.Refused == 0 || !p.reach.ask(pacer.Name, reach.String(), now) {
			continue
		}
		mark := &Ask{Permits: 1, Targets: []Target{pacer.reachMark(reach, markEvery)}}
		if _, err := p.store.TakePermits(ctx, mark); err != nil {
			p.reach.unmark(pacer.Name, reach.String())
		}
	}
}

// reaching remembers, for each pacer, the newest slot and the protected waits (wait classes with slots kept free) in
// use.
type reaching struct {
	*demands
	newest map[string]time.Time // by pacer: the newest slot that this instance has seen
}

func newReaching() *reaching { return &reaching{newDemands(), map[string]time.Time{}} }

// The method "forget" removes the data about pacers that the policy does not contain.
func (r *reaching) forget(policy *Policy) {
	r.demands.forget(func(pacer, _ string) bool {
		in, known := policy.Pacer(pacer)
		return known && in.reached()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.newest, func(pacer string, _ time.Time) bool {
		_, known := policy.Pacer(pacer)
		return !known
	})
}

// The method "queued" reports whether the newest granted slot of the pacer is further than LeastReach in the future. If
// the newest granted slot of the pacer is not known, "queued" returns true.
func (r *reaching) queued(pacer string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest, seen := r.newest[pacer]
	return !seen || newest.Sub(now) > LeastReach
}

// The method "note" records the newest slot of the pacer.
func (r *reaching) note(pacer string, newest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest[pacer] = newest
}

// If this instance could not store a mark (a signal to other instances), the method "unmark" records this, so that a
// later call tries again.
func (r *reaching) unmark(pacer, reach string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.marked, demand{pacer, reach})
}
