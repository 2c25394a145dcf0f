package pacing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The type "plan" is the sequence of steps in which a call asks the store for permits. A plan has up to three steps if
// the call belongs to a share (reserved part) of a pacer. A plan has two steps if the call must leave slots free for
// calls with shorter waits. A plan for any other call has one step.
type plan struct {
	answer *Answer
	base   *Ask          // a request with one target for each pacer of the call, and the longest wait of the call
	shares []int         // by pacer: the index of the call's share, or -1
	wait   time.Duration // the longest wait of the call and its pacers
	// If the field "leaves" is true, the call must leave slots free for calls with shorter waits as long as such calls
	// arrive.
	leaves bool
	rooms  []leaving // by pacer; nil: the call leaves no slots free
	steps  []step
}

// A step is one request to the store for the permits of a call that earlier steps did not get.
type step struct {
	own  bool // ask for the part of the call's own share, at pacers with this share
	far  bool // ask also for the far log, at pacers where the call leaves slots free
	wait time.Duration
}

// setSteps sets the steps of a call from the call's longest wait (base.MaxWait). A call of a share (reserved part of a
// pacer) asks first for near slots of the share's part, and then for slots that other calls leave. In the last step, a
// call of a share asks for all slots of the share's part within the wait.
func (p *plan) setSteps() {
	wait, rest, own := p.base.MaxWait, MaxWait, time.Duration(0)
	for i, share := range p.shares {
		pacer := &p.answer.Pacers[i]
		switch {
		case len(pacer.Shares) == 0:
		case share < 0:
			wait = min(wait, pacer.restAhead())
		default:
			rest, own = min(rest, pacer.restAhead()), max(own, pacer.ownAhead())
		}
	}
	p.base.MaxWait = wait
	if own == 0 {
		p.steps = []step{{wait: wait}}
		p.leaveRoom()
		return
	}
	p.steps = []step{{own: true, wait: min(wait, own)}, {wait: min(wait, rest)}}
	if wait > own {
		p.steps = append(p.steps, step{own: true, wait: wait})
	}
}

// leaveRoom gives a call with a long wait two steps, so that calls with shorter waits also get slots. A call with a
// long wait asks first for the near free slots, and then for at most three quarters of the later slots.
func (p *plan) leaveRoom() {
	far, near, some := p.base.MaxWait, p.base.MaxWait, false
	for _, left := range p.rooms {
		if left.some {
			far, near, some = min(far, left.far), min(near, left.near()), true
		}
	}
	if some {
		p.steps = []step{{wait: near}, {far: true, wait: far}}
	}
}

// The method "ask" returns the request to the store for one step of the plan. For each target of this request, the
// method "ask" also returns the index of the target's pacer.
func (p *plan) ask(s step, asked func(pacer, share string) bool) (ask *Ask, pacers []int) {
	ask = &Ask{Targets: slices.Clone(p.base.Targets), Permits: p.base.Permits, MaxWait: s.wait, Lasts: p.base.MaxWait,
		Content: p.base.Content}
	for i := range ask.Targets {
		pacers = append(pacers, i)
	}
	for i, share := range p.shares {
		pacer := &p.answer.Pacers[i]
		if len(pacer.Shares) == 0 {
			continue
		}
		target, limited := Target{}, true
		if s.own && share >= 0 {
			target = pacer.own(share)
		} else {
			target, limited = pacer.rest(func(i int) bool { return asked(pacer.Name, pacer.Shares[i].Name) })
		}
		if limited {
			ask.Targets, pacers = append(ask.Targets, target), append(pacers, i)
		}
	}
	for i, left := range p.rooms {
		if s.far && left.some && len(ask.Targets) < MaxPacers {
			ask.Targets, pacers = append(ask.Targets, p.answer.Pacers[i].far(left.reach)), append(pacers, i)
		}
	}
	return ask, pacers
}

// The method "all" returns a request with at most MaxPacers targets, in whose logs the call may have slots. A return of
// permits uses the request to remove the slots from the logs of the targets. If the call belongs to a share, "all"
// leaves out the logs of shares at pacers without a rate. At a pacer without a rate, the step that granted a slot is
// unknown, and another log may have slots of other calls at the same instant. With many pacers, "all" also leaves out
// logs that only divide the slots between calls: the logs of the call's own share, and the logs of calls with long
// waits.
func (p *plan) all() *Ask {
	ask := &Ask{Targets: slices.Clone(p.base.Targets), Permits: p.base.Permits, Content: p.base.Content}
	asked := func(int) bool { return true }
	var dividing []Target
	for i, share := range p.shares {
		pacer := &p.answer.Pacers[i]
		if p.leaves && pacer.reached() && pacer.Rate.Permits > 0 {
			dividing = append(dividing, pacer.far(mostReach))
		}
		if len(pacer.Shares) == 0 || share >= 0 && pacer.Rate.Permits == 0 {
			continue
		}
		if rest, limited := pacer.rest(asked); limited {
			ask.Targets = append(ask.Targets, rest)
		}
		if share >= 0 {
			dividing = append(dividing, pacer.own(share))
		}
	}
	ask.Targets = append(ask.Targets, dividing[:min(len(dividing), MaxPacers-len(ask.Targets))]...)
	return ask
}

// The method "most" returns the largest number of targets (logs with limits) that one step of the plan may name.
func (p *plan) most() (targets int) {
	for i := range p.answer.Pacers {
		if targets++; len(p.answer.Pacers[i].Shares) > 0 {
			targets++
		}
	}
	return targets
}

// checkTargets returns a *FieldError if a step of the plan names more targets (logs with limits) than a store accepts.
func (p *plan) checkTargets() error {
	if n := p.most(); n > MaxPacers && n > len(p.answer.Pacers) {
		return &FieldError{"pacers", fmt.Sprintf("must be at most %d, and a pacer with shares counts as 2: got %d",
			MaxPacers, n)}
	}
	return nil
}

// The type "following" holds the slot (start time) of one more permit, and the limit that prevents an earlier slot.
type following struct {
	at            Time
	target, limit int
}

// The method "strip" removes the targets that the caller did not name, such as the logs of shares, from the grant of a
// step.
func (p *plan) strip(grant *Grant, pacers []int) {
	if grant.Target >= len(p.base.Targets) {
		grant.Target, grant.Limit = pacers[grant.Target], ByShare
		if p.answer.Pacers[grant.Target].reached() {
			grant.Limit = ByQueue
		}
	}
	grant.States = grant.States[:len(p.base.Targets)]
}

// inOrder sorts the granted permits by slot, because permits from different steps may overlap in time.
func (a *Answer) inOrder() {
	if slices.IsSortedFunc(a.Runs, func(later, r WaitRun) int {
		return cmp.Compare(later.Wait, r.WaitOf(r.Permits-1))
	}) {
		return
	}
	var slots []Time
	for i := range a.Runs {
		for k := range a.Runs[i].Permits {
			slots = append(slots, a.At.Add(a.Runs[i].WaitOf(k)))
		}
	}
	slices.Sort(slots)
	var log Log
	for _, at := range slots {
		log.Append(at, 0, 1, 1)
	}
	a.Runs = log.WaitRuns(a.At)
}
