package pacing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// plan is the sequence of steps in which a call asks the store for permits. A plan has up to three steps if the call
// belongs to a share (reserved part) of a pacer. A plan has two steps if the call must leave slots free for calls with
// shorter waits. Other plans have one step.
type plan struct {
	answer *Answer
	base   *Ask          // a target for each pacer of the call, with the longest wait of the call
	shares []int         // by pacer: the index of the call's share, or -1
	wait   time.Duration // the longest wait of the call and its pacers
	// leaves says that the call leaves slots free for calls with shorter waits, if such calls arrive.
	leaves bool
	rooms  []leaving // by pacer; nil: the call leaves no slots free
	steps  []step
}

// A step is one request to the store for those permits of a call that earlier steps did not get.
type step struct {
	own  bool // ask for the call's own part, at the pacers where it has one
	far  bool // ask also for the far log, at the pacers where the call leaves slots free
	wait time.Duration
}

// setSteps sets the steps of a call; the field base.MaxWait says how long the call may wait. A call of a share asks
// first for near slots of the share's part, and then for slots that other calls leave. In its last step, a call of a
// share (reserved part of a pacer) asks for all slots of the share's part within the wait.
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

// ask returns the request that the store gets for one step of the plan. For each target of the request, the method ask
// also returns the index of the target's pacer.
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

// all returns a request for permits with the targets in whose logs the call may have slots, at most MaxPacers. A return
// with this request removes the slots from these logs. For a pacer without a rate, the method "all" leaves out the logs
// of shares, because it is unknown which step granted a slot, and another log of the pacer may have slots of other
// calls at the same instant. With many pacers, all also leaves out logs that only divide the slots between calls: logs
// of the call's own share, and logs of calls with long waits.
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

// most returns the largest number of targets (logs with limits) that one step of the plan may name.
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

// following is the slot (start time) that one more permit would get, and the limit that prevents an earlier slot.
type following struct {
	at            Time
	target, limit int
}

// strip removes the targets that the caller did not name, such as the logs of shares, from the grant of a step.
func (p *plan) strip(grant *Grant, pacers []int) {
	if grant.Target >= len(p.base.Targets) {
		grant.Target, grant.Limit = pacers[grant.Target], ByShare
		if p.answer.Pacers[grant.Target].reached() {
			grant.Limit = ByQueue
		}
	}
	grant.States = grant.States[:len(p.base.Targets)]
}

// inOrder sorts the granted permits by slot, because the permits of several steps may not be in order.
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
