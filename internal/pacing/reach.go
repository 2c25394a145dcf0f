package pacing

import (
	"context"
	"maps"
	"time"
)

// These constants divide a pacer between calls with shorter and longer waits: see Waits of different length in the
// package documentation.
const (
	// LeastReach is the shortest wait above 0 for which calls with longer waits leave slots free.
	LeastReach = 500 * time.Millisecond
	mostReach  = 2 * time.Minute
	// Calls with longer waits get a row of slots in each period of a rate. There are at most farRows of them ahead,
	// because a log holds at most MostAhead strands.
	farRows = 64
	// A call without a wait fits into a period at any instant but for the last interval, so a period is long.
	leastRow, leastRowSlots = 100 * time.Millisecond, 48
)

// reaches returns the waits, in ascending order, that get slots of their own: calls with longer waits leave some slots
// free for them. A store reads the marks of all of them in one step, so there are at most MaxPacers. 0 means no wait.
func reaches() []time.Duration {
	return []time.Duration{0, LeastReach, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, mostReach}
}

// reachOf returns the longest reach within the wait.
func reachOf(wait time.Duration) (reach time.Duration) {
	for _, r := range reaches() {
		if r <= wait {
			reach = r
		}
	}
	return reach
}

// reached reports whether calls at the pacer leave room for those with shorter waits. A pacer with shares gives others
// no slot far ahead, and a pacer with several logs has too many marks.
func (p *Pacer) reached() bool { return len(p.Shares) == 0 && p.Per == PerPacer }

// far returns the target of the slots beyond a reach: three quarters of each limit. A rate becomes a limit of several
// intervals.
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

// threeQuarters returns three quarters of n, rounded down, and at least 1.
func threeQuarters(n int) int { return max(1, n*3/4) }

// rowIntervals returns the number of intervals of a rate of which calls with longer waits get a part.
func (p *Pacer) rowIntervals(reach time.Duration) int {
	interval := p.Rate.Interval()
	if reach == 0 {
		return max(leastRowSlots, int(leastRow/interval))
	}
	return max(2, int(reach/2/interval))
}

// farReach returns how far ahead the pacer gives out slots beyond the reach.
func (p *Pacer) farReach(reach time.Duration) time.Duration {
	period := MaxWait
	for _, limit := range p.far(reach).Limits {
		period = min(period, limit.Window)
	}
	return max(reach, min(period*farRows, MaxWait))
}

// reachMark returns the target of the mark of a reach.
func (p *Pacer) reachMark(reach, window time.Duration) Target {
	return p.partTarget("reach", reach.String(), []Limit{{1, window}})
}

// leaving is what a call leaves at a pacer to calls with shorter waits.
type leaving struct {
	some  bool          // it leaves room
	reach time.Duration // the shortest of their waits
	far   time.Duration // how far ahead the call gets slots beyond the reach
}

// near returns how far ahead longer calls may take slots that calls of this reach leave unused.
func (r *leaving) near() time.Duration { return min(r.reach/2, LeastReach) }

// learnReach reads which reaches are asked for at the pacers of the call, and makes the call leave room for them. A
// call does not read them at a pacer whose line was short after the latest call of this instance.
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

// room returns the room that a call of a reach leaves. With several shorter reaches, the call leaves room for the
// shortest one, and goes no further ahead than the next one.
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

// readReaches reads which reaches are asked for at the pacer.
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

// tellReach notes the lines of the call's pacers, and marks the reach of the call at each pacer that has slots beyond
// its wait. A call without a wait marks none when it got all its permits. The answer stands already, so a mark that the
// store did not take is taken after a later call.
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

// reaching knows which reaches are asked for, and the lines of pacers.
type reaching struct {
	*demands
	newest map[string]time.Time // by pacer: the newest slot as this instance has seen it
}

func newReaching() *reaching { return &reaching{newDemands(), map[string]time.Time{}} }

// forget drops what is known of pacers that are not in the policy.
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

// queued reports whether the pacer has, or may have, slots beyond LeastReach.
func (r *reaching) queued(pacer string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest, seen := r.newest[pacer]
	return !seen || newest.Sub(now) > LeastReach
}

// note notes the newest slot of the pacer.
func (r *reaching) note(pacer string, newest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest[pacer] = newest
}

// unmark notes that the mark of a reach was not taken.
func (r *reaching) unmark(pacer, reach string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.marked, demand{pacer, reach})
}
