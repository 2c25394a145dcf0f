package pacingtest

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"capper/internal/pacing"
)

// The type "single" is one log of the model: a plain list of slots. The model applies the rules in the documentation of
// package pacing to the list of slots.
type single struct {
	slots []pacing.Time
	split pacing.Log // its Ahead has the slots before which later permits may get slots
	// The field "loose" is true if the log has had many reserved slots with free slots between them. In such a log, a
	// store may have ended a search for free slots at pacing.MostLooks. The slots of the store and of the model may
	// then differ.
	loose bool
}

// exactAhead is a small number of slots in Log.Ahead: with so few slots, a search for a free slot never reaches
// pacing.MostLooks.
const exactAhead = pacing.MostLooks / 10

// The method "newest" returns the newest slot before which no later permit may get a slot. If later permits may get
// slots before all slots of the log, the result is 0.
func (n *single) newest() pacing.Time {
	if n.split.Total == 0 {
		return 0
	}
	return n.slots[n.split.Total-1]
}

// The method "allows" returns "at" if every window that contains the instant "at" has fewer than Max slots. If a window
// has Max slots, the method "allows" returns a later instant to try.
func (n *single) allows(at pacing.Time, limit pacing.Limit) pacing.Time {
	i := sort.Search(len(n.slots), func(i int) bool { return n.slots[i] > at })
	for j := max(0, i-limit.Max); j <= i && j+limit.Max <= len(n.slots); j++ {
		switch last := j + limit.Max; {
		case last == i && n.slots[j].Add(limit.Window) > at:
			return n.slots[j].Add(limit.Window)
		case last > i && n.slots[last-1] >= at.Add(limit.Window): // later windows do not contain both slots either
			return at
		case last > i && j < i && n.slots[j].Add(limit.Window) > n.slots[last-1],
			last > i && j == i && at.Add(limit.Window) > n.slots[last-1]:
			return n.slots[last-1]
		}
	}
	return at
}

// firstOf returns the first slot, at or after "from", at which the limits of all targets allow one more permit.
func firstOf(from pacing.Time, logs []*single, targets []pacing.Target) pacing.Time {
	at := from
	for _, log := range logs {
		at = max(at, log.newest())
	}
	for again := true; again; {
		again = false
		for i, log := range logs {
			for _, limit := range targets[i].Limits {
				if next := log.allows(at, limit); next > at {
					at, again = next, true
				}
			}
		}
	}
	return at
}

func loosen(logs []*single) {
	for _, log := range logs {
		log.loose = true
	}
}

// The type "planned" holds the slot that, by the model, the targets grant next.
type planned struct {
	at, raw pacing.Time   // with and without the delay to a whole number of intervals
	own     []pacing.Time // by target: its own next slot if this is earlier, else 0
}

// planOf returns the slot that, by the model, the targets grant next: the first allowed slot at or after "from".
func planOf(now, from pacing.Time, logs []*single, targets []pacing.Target) (p planned) {
	p.raw, p.own = firstOf(from, logs, targets), make([]pacing.Time, len(logs))
	p.at = p.raw
	for i := range logs {
		own := firstOf(now, logs[i:i+1], targets[i:i+1])
		if own < p.raw && !slices.ContainsFunc(targets[i].Limits, func(l pacing.Limit) bool {
			return l.Max == 1 && own.Add(l.Window) > p.raw
		}) {
			p.own[i] = own
		}
	}
	for i, log := range logs {
		for _, limit := range targets[i].Limits {
			before := sort.Search(len(log.slots), func(k int) bool { return log.slots[k] > p.at })
			if limit.Max > 1 || p.own[i] == 0 || before == 0 {
				continue
			}
			past := p.at.Sub(log.slots[before-1]) % limit.Window
			up := p.at.Add(limit.Window - past)
			if past > 0 && firstOf(up, logs, targets) == up && p.affords(up, logs, targets) {
				p.at = up
				return p
			}
		}
	}
	return p
}

// The method "affords" reports whether the model may delay the permit until the time "up". The delay must cost only a
// small part of the rate of each target that makes the permit wait.
func (p *planned) affords(up pacing.Time, logs []*single, targets []pacing.Target) bool {
	for i, log := range logs {
		for _, limit := range targets[i].Limits {
			if p.own[i] > 0 || limit.Window >= 20*up.Sub(p.at) {
				continue
			}
			back := sort.Search(len(log.slots), func(k int) bool { return log.slots[k] > p.at }) - 19
			if limit.Max > 1 || back >= int(log.split.Total) || back >= 0 && up.Sub(log.slots[back]) > 20*limit.Window {
				return false
			}
		}
	}
	return true
}

// The method "put" adds a permit with the planned slot to the model's log of each target.
func (p *planned) put(logs []*single) {
	for i, log := range logs {
		at := sort.Search(len(log.slots), func(k int) bool { return log.slots[k] > p.at })
		log.slots = slices.Insert(log.slots, at, p.at)
		if p.own[i] > 0 {
			log.split.Absorb(p.own[i])
			log.split.Stand(p.at, 1)
			log.loose = log.loose || len(log.slots)-int(log.split.Total) > exactAhead
			continue
		}
		log.split.Absorb(p.at)
		log.split.Append(p.at, 0, 1, 1)
	}
}

// The type "model" computes the slots of permits one by one, by the rules in the documentation of package pacing. Tests
// compare the model's prediction with each grant of a store, so the model must see all calls.
type model struct {
	logs     map[string]*single
	requests map[pacing.Request]held
	latest   pacing.Time // the latest time in a reply of the store
	// The field "forgotten" holds the names of pacers whose logs ForgetPacer removed. A store may remove no returned
	// permits from the new logs of these pacers.
	forgotten map[string]bool
}

// The type "held" describes a permit request that the store under test must remember, and the slots of the request.
type held struct {
	slots []pacing.Time
	until pacing.Time // the store remembers the request at least until then
	logs  []*single   // the logs that have the slots
}

func newModel() *model {
	return &model{logs: map[string]*single{}, requests: map[pacing.Request]held{}, forgotten: map[string]bool{}}
}

// If the store did not repeat an earlier grant, the method "hold" records the slots of the permit request in the model.
func (m *model) hold(ask *pacing.Ask, slots []pacing.Time, replayed bool) {
	if ask.Request != (pacing.Request{}) && len(slots) > 0 && !replayed {
		m.requests[ask.Request] = held{slots, slots[len(slots)-1].Add(pacing.RememberFor), m.logsOf(ask.Targets)}
	}
}

// The method "remembered" returns the slots of an earlier permit request with the same request id. A store may forget a
// request some time after the latest slot of the grant.
func (m *model) remembered(ask *pacing.Ask, grant *pacing.Grant) ([]pacing.Time, bool) {
	m.latest = max(m.latest, grant.At)
	held, known := m.requests[ask.Request]
	if known && !grant.Replayed && held.until <= m.latest {
		return nil, false
	}
	return held.slots, known
}

// logsOf returns the model's logs of the targets, and creates an empty log for each target that has none.
func (m *model) logsOf(targets []pacing.Target) (logs []*single) {
	for i := range targets {
		name := nameOf(&targets[i])
		if m.logs[name] == nil {
			m.logs[name] = &single{}
		}
		logs = append(logs, m.logs[name])
	}
	return logs
}

// The method "place" adds at most "most" permits of the request to the model's logs, and returns the slots of these
// permits.
func (m *model) place(now pacing.Time, ask *pacing.Ask, most int) (slots []pacing.Time) {
	logs := m.logsOf(ask.Targets)
	for _, log := range logs {
		log.split.Absorb(now)
	}
	for len(slots) < most {
		p := planOf(now, now, logs, ask.Targets)
		if len(slots) > 0 && p.at < slots[len(slots)-1] {
			p = planOf(now, slots[len(slots)-1], logs, ask.Targets)
		}
		if p.at > now.Add(ask.MaxWait) {
			break
		}
		slots = append(slots, p.at)
		p.put(logs)
	}
	return slots
}

// The method "compare" describes the difference between the store's grant and the model's prediction, or returns "" if
// both are equal. If the field "loose" of a target's log is true, "compare" accepts every difference, and only the
// Oracle judges the grants.
func (m *model) compare(ask *pacing.Ask, grant *pacing.Grant) string {
	differs, logs := m.compareAll(ask, grant), m.logsOf(ask.Targets)
	if differs == "" || !slices.ContainsFunc(logs, func(log *single) bool { return log.loose }) {
		return differs
	}
	loosen(logs)
	m.hold(ask, slotsOf(grant), grant.Replayed)
	return ""
}

func (m *model) compareAll(ask *pacing.Ask, grant *pacing.Grant) string {
	now, got := grant.At, slotsOf(grant)
	want, replayed := m.remembered(ask, grant)
	switch {
	case replayed != grant.Replayed:
		return fmt.Sprintf("replayed %t", grant.Replayed)
	case !replayed:
		most := ask.Permits
		if grant.More { // the grant has only the permits of one step
			most = min(most, grant.Granted)
		}
		want = m.place(now, ask, most)
	}
	if !slices.Equal(want, got) {
		return fmt.Sprintf("slots %v, not %v", got, want)
	}
	m.hold(ask, want, replayed)
	logs := m.logsOf(ask.Targets)
	for _, log := range logs {
		log.split.Absorb(now)
	}
	plan := planOf(now, now, logs, ask.Targets)
	next := plan.at
	if grant.More && !replayed && (len(got) == ask.Permits || next > now.Add(ask.MaxWait)) {
		return "more is not to be had"
	}
	if grant.Next != next.Sub(now) {
		return fmt.Sprintf("the next slot in %v, not %v", grant.Next, next.Sub(now))
	}
	if !m.because(now, plan, ask, grant) {
		return fmt.Sprintf("the next slot in %v is not for the limit %d of target %d", grant.Next, grant.Limit,
			grant.Target)
	}
	return m.compareStates(ask, grant)
}

// The method "because" checks the reason in the grant: the named target and limit must really prevent an earlier next
// slot.
func (m *model) because(now pacing.Time, plan planned, ask *pacing.Ask, grant *pacing.Grant) bool {
	if plan.at == now || grant.Target < 0 || grant.Target >= len(ask.Targets) {
		return plan.at == now && grant.Target == -1
	}
	target := &ask.Targets[grant.Target]
	log := m.logs[nameOf(target)]
	if grant.Limit == pacing.ByQueue {
		return log.newest() == plan.raw
	}
	return log.allows(plan.raw-1, target.Limits[grant.Limit]) >= plan.raw
}

func (m *model) compareStates(ask *pacing.Ask, grant *pacing.Grant) string {
	if len(grant.States) != len(ask.Targets) {
		return fmt.Sprintf("%d states", len(grant.States))
	}
	for i, target := range ask.Targets {
		state, log := &grant.States[i], m.logs[nameOf(&target)]
		next := firstOf(grant.At, []*single{log}, ask.Targets[i:i+1])
		want := pacing.State{Next: next.Sub(grant.At)}
		if len(log.slots) > 0 {
			want.Queue = max(0, log.slots[len(log.slots)-1].Sub(grant.At))
		}
		for _, limit := range target.Limits {
			want.Used = append(want.Used, used(log.slots, limit, grant.At))
		}
		if state.Next != want.Next || state.Queue != want.Queue || !slices.Equal(state.Used, want.Used) {
			return fmt.Sprintf("target %d is %+v, not %+v", i, *state, want)
		}
	}
	return ""
}

// The function "used" returns the number of slots less than one window old, but at most Max.
func used(log []pacing.Time, limit pacing.Limit, now pacing.Time) (n int) {
	for n < min(limit.Max, len(log)) && log[len(log)-1-n].Add(limit.Window) > now {
		n++
	}
	return n
}

func (m *model) forget(pacer string) {
	forgetPacer(m.logs, pacer)
	m.forgotten[pacer] = true
}

// slotsOf returns a list with the slot of every permit of the grant.
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
