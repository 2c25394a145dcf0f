package pacing

import (
	"context"
	"maps"
	"time"
)

// LeastReach to leastRowSlots say how a pacer is divided between calls with shorter and longer waits. The package
// documentation explains these constants under "Waits of different length".
const (
	// LeastReach is the shortest protected wait above 0: calls with longer waits leave slots free for calls with a
	// protected wait.
	LeastReach = 500 * time.Millisecond
	mostReach  = 2 * time.Minute
	// In each period of a rate, calls with longer waits get a row of slots. A log has at most farRows such rows,
	// because a log has at most MostAhead strands.
	farRows = 64
	// Calls without a wait lose up to one interval of each period. With long periods, this loss is small.
	leastRow, leastRowSlots = 100 * time.Millisecond, 48
)

// reaches returns the protected waits in ascending order: calls with longer waits leave some slots free for each of
// them. reaches returns at most MaxPacers waits, because a store reads the marks of all reaches in one step. The reach
// 0 means calls without a wait.
func reaches() []time.Duration {
	return []time.Duration{0, LeastReach, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, mostReach}
}

// reachOf returns the longest reach that does not exceed the wait.
func reachOf(wait time.Duration) (reach time.Duration) {
	for _, r := range reaches() {
		if r <= wait {
			reach = r
		}
	}
	return reach
}

// reached reports whether calls at the pacer leave slots free for calls with shorter waits. A pacer with shares leaves
// no slots free, because it grants only near slots to calls without a share. A pacer with several logs would need too
// many marks.
func (p *Pacer) reached() bool { return len(p.Shares) == 0 && p.Per == PerPacer }

// far returns the target of the far log, for slots later than a reach. The limits of the far log are three quarters of
// the pacer's limits. In the far log, a rate becomes a limit over several intervals.
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

// threeQuarters returns three quarters of n, rounded down, but at least 1.
func threeQuarters(n int) int { return max(1, n*3/4) }

// rowIntervals returns the length of a period of a rate, as a number of intervals. Calls with longer waits get three
// quarters of each period.
func (p *Pacer) rowIntervals(reach time.Duration) int {
	interval := p.Rate.Interval()
	if reach == 0 {
		return max(leastRowSlots, int(leastRow/interval))
	}
	return max(2, int(reach/2/interval))
}

// farReach returns how far into the future the pacer grants slots that are later than the reach.
func (p *Pacer) farReach(reach time.Duration) time.Duration {
	period := MaxWait
	for _, limit := range p.far(reach).Limits {
		period = min(period, limit.Window)
	}
	return max(reach, min(period*farRows, MaxWait))
}

// reachMark returns the target of a log in which instances mark that a reach is in demand.
func (p *Pacer) reachMark(reach, window time.Duration) Target {
	return p.partTarget("reach", reach.String(), []Limit{{1, window}})
}

// leaving says which slots a call leaves free at a pacer for calls with shorter waits.
type leaving struct {
	some  bool          // the call leaves slots free
	reach time.Duration // the shortest wait of those calls
	far   time.Duration // how far ahead the call gets slots later than the reach
}

// near returns how far into the future calls with longer waits may take every free slot.
func (r *leaving) near() time.Duration { return min(r.reach/2, LeastReach) }

// learnReach reads which reaches are in demand at the pacers of the call, and makes the call leave slots free for them.
// learnReach skips pacers that had a short queue after the latest call of this instance.
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

// room returns which slots a call with the reach own leaves free at a pacer. If several shorter reaches are in demand,
// the call leaves slots free for the shortest one, and takes no slot later than the second shortest one.
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

// readReaches reads which reaches are in demand at the pacer.
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

// tellReach records the queues of the call's pacers. tellReach also marks the reach of the call at each pacer whose
// queue is longer than the wait of the call. A call without a wait that got all its permits marks no reach. If the
// store fails to mark the reach, a later call marks it, because the answer of this call is already complete.
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

// reaching remembers which reaches are in demand, and the newest slot of each pacer.
type reaching struct {
	*demands
	newest map[string]time.Time // by pacer: the newest slot that this instance has seen
}

func newReaching() *reaching { return &reaching{newDemands(), map[string]time.Time{}} }

// forget removes the pacers that the policy does not contain.
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

// queued reports whether the newest slot of the pacer is later than LeastReach from now. If the newest slot is not
// known, queued returns true.
func (r *reaching) queued(pacer string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest, seen := r.newest[pacer]
	return !seen || newest.Sub(now) > LeastReach
}

// note records the newest slot of the pacer.
func (r *reaching) note(pacer string, newest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest[pacer] = newest
}

// unmark records that this instance failed to mark a reach, so that a later call tries again.
func (r *reaching) unmark(pacer, reach string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.marked, demand{pacer, reach})
}
