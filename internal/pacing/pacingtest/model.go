package pacingtest

import (
	"fmt"
	"slices"
	"time"

	"capper/internal/pacing"
)

// model computes the slots of permits one by one, by the rules of package pacing. The model predicts each
// grant of a store and must see all calls.
type model struct {
	logs     map[string][]pacing.Time
	requests map[pacing.Request][]pacing.Time
	latest   pacing.Time // the latest time that a store returned
}

func newModel() *model {
	return &model{logs: map[string][]pacing.Time{}, requests: map[pacing.Request][]pacing.Time{}}
}

// remembered returns the slots that an earlier call with the same request received. A store may forget a
// request some time after the latest slot.
func (m *model) remembered(ask *pacing.Ask, grant *pacing.Grant) ([]pacing.Time, bool) {
	m.latest = max(m.latest, grant.At)
	slots, known := m.requests[ask.Request]
	if known && !grant.Replayed && slots[len(slots)-1].Add(pacing.RememberFor) <= m.latest {
		return nil, false
	}
	return slots, known
}

// opens returns the first slot at which the limit allows one more permit.
func opens(log []pacing.Time, limit pacing.Limit) (at pacing.Time) {
	if len(log) >= limit.Max {
		at = log[len(log)-limit.Max].Add(limit.Window)
	}
	return at
}

// next returns the slot of the next permit of the targets.
func (m *model) next(now pacing.Time, targets ...pacing.Target) pacing.Time {
	at := now
	for i := range targets {
		log := m.logs[nameOf(&targets[i])]
		if len(log) > 0 {
			at = max(at, log[len(log)-1])
		}
		for _, limit := range targets[i].Limits {
			at = max(at, opens(log, limit))
		}
	}
	return at
}

// place adds at most most permits to the logs and returns their slots.
func (m *model) place(now pacing.Time, ask *pacing.Ask, most int) (slots []pacing.Time) {
	for len(slots) < most {
		at := m.next(now, ask.Targets...)
		if at > now.Add(ask.MaxWait) {
			break
		}
		slots = append(slots, at)
		for i := range ask.Targets {
			name := nameOf(&ask.Targets[i])
			m.logs[name] = append(m.logs[name], at)
		}
	}
	return slots
}

// compare returns how the grant differs from the model's prediction, or "" for an equal grant.
func (m *model) compare(ask *pacing.Ask, grant *pacing.Grant) string {
	now, got := grant.At, slotsOf(grant)
	want, replayed := m.remembered(ask, grant)
	switch {
	case replayed != grant.Replayed:
		return fmt.Sprintf("replayed %t", grant.Replayed)
	case !replayed:
		most := ask.Permits
		if grant.More { // the part of the ask that one step grants
			most = min(most, grant.Granted)
		}
		want = m.place(now, ask, most)
	}
	if !slices.Equal(want, got) {
		return fmt.Sprintf("slots %v, not %v", got, want)
	}
	if ask.Request != (pacing.Request{}) && len(want) > 0 {
		m.requests[ask.Request] = want
	}
	next := m.next(now, ask.Targets...)
	if grant.More && !replayed && (len(got) == ask.Permits || next > now.Add(ask.MaxWait)) {
		return "more is not to be had"
	}
	if grant.Next != next.Sub(now) {
		return fmt.Sprintf("the next slot in %v, not %v", grant.Next, next.Sub(now))
	}
	if !m.because(now, next, ask, grant) {
		return fmt.Sprintf("the next slot in %v is not for the limit %d of target %d", grant.Next, grant.Limit,
			grant.Target)
	}
	return m.compareStates(ask, grant)
}

// because reports whether the grant's reason for the next slot is correct.
func (m *model) because(now, next pacing.Time, ask *pacing.Ask, grant *pacing.Grant) bool {
	if next == now || grant.Target < 0 || grant.Target >= len(ask.Targets) {
		return next == now && grant.Target == -1
	}
	target := &ask.Targets[grant.Target]
	log := m.logs[nameOf(target)]
	if grant.Limit == pacing.ByQueue {
		return log[len(log)-1] == next
	}
	return opens(log, target.Limits[grant.Limit]) == next
}

func (m *model) compareStates(ask *pacing.Ask, grant *pacing.Grant) string {
	if len(grant.States) != len(ask.Targets) {
		return fmt.Sprintf("%d states", len(grant.States))
	}
	for i, target := range ask.Targets {
		state, log := &grant.States[i], m.logs[nameOf(&target)]
		want := pacing.State{Next: m.next(grant.At, target).Sub(grant.At)}
		if len(log) > 0 {
			want.Queue = max(0, log[len(log)-1].Sub(grant.At))
		}
		for _, limit := range target.Limits {
			want.Used = append(want.Used, used(log, limit, grant.At))
		}
		if state.Next != want.Next || state.Queue != want.Queue || !slices.Equal(state.Used, want.Used) {
			return fmt.Sprintf("target %d is %+v, not %+v", i, *state, want)
		}
	}
	return ""
}

// used returns how many of the newest Max slots are less than a window old.
func used(log []pacing.Time, limit pacing.Limit, now pacing.Time) (n int) {
	for n < min(limit.Max, len(log)) && log[len(log)-1-n].Add(limit.Window) > now {
		n++
	}
	return n
}

func (m *model) forget(pacer string) { forgetPacer(m.logs, pacer) }

// slotsOf returns every slot of the grant.
func slotsOf(grant *pacing.Grant) (slots []pacing.Time) {
	for _, run := range grant.Runs {
		for i := range run.Permits {
			at := grant.At.Add(run.Wait)
			if run.Every > 0 {
				at = at.Add(time.Duration(i/run.Burst) * run.Every)
			}
			slots = append(slots, at)
		}
	}
	return slots
}
