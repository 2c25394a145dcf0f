package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
)

// A sum holds the numbers of users whom one call allowed and denied under one policy, by segment and limit.
type sum struct {
	Counts
	unavailable, erased, judged int64

	segments []segmentSum
	byCode   []Counts // counts by segment code, in addition to segments
	limits   []limitSum
	shadow   map[string]int64
}

type segmentSum struct {
	name string
	Counts
}

type limitSum struct {
	name string
	n    int64
}

func (s *sum) reset() {
	if s.shadow == nil {
		s.shadow = map[string]int64{}
	}
	clear(s.shadow)
	s.Counts, s.unavailable, s.erased, s.judged = Counts{}, 0, 0, 0
	s.segments, s.byCode, s.limits = s.segments[:0], s.byCode[:0], s.limits[:0]
}

func (s *sum) copy(from *sum) {
	s.Counts = from.Counts
	s.segments, s.limits = append(s.segments, from.segments...), append(s.limits, from.limits...)
	maps.Copy(s.shadow, from.shadow)
}

// The method "resent" moves one user from the count of repeated sends to the count of first sends.
func (s *sum) resent() { s.Sends, s.Replayed = s.Sends+1, s.Replayed-1 }

// The method segment appends a segment with the given name to the sum. The method segment returns the counts of the new
// segment, which are all 0.
func (s *sum) segment(name string) *Counts {
	s.segments = append(s.segments, segmentSum{name: name})
	return &s.segments[len(s.segments)-1].Counts
}

// The method "denied" adds n to the count of denials by a limit. The counts of a call contain few limits, so a linear
// search is cheaper than a map.
func (s *sum) denied(limit string, n int64) {
	for i := range s.limits {
		if s.limits[i].name == limit {
			s.limits[i].n += n
			return
		}
	}
	s.limits = append(s.limits, limitSum{limit, n})
}

type campaignKey struct {
	capping.Message
	channel capping.Channel
}

// A pair holds the value of a number before and after the change of limits.
type pair[T any] struct{ before, after T }

// The type "tallies" holds the counts of decisions over all replayed calls.
type tallies struct {
	first, last    capping.Instant // times of the first and the last replayed record
	any            bool
	calls, decided int64
	unavailable    int64
	erased, judged int64
	sequences      audit.Sequences
	total          pair[Counts]
	days           map[string]*pair[Counts]
	segments       map[string]*pair[Counts]
	channels       map[capping.Channel]*pair[Counts]
	campaigns      map[campaignKey]*pair[Counts]
	limits, shadow map[string]*pair[int64]
	configs        []string
	faults         map[string]bool // reasons why users could not be judged
}

func newTallies() *tallies {
	return &tallies{
		days: map[string]*pair[Counts]{}, segments: map[string]*pair[Counts]{},
		channels:  map[capping.Channel]*pair[Counts]{},
		campaigns: map[campaignKey]*pair[Counts]{}, limits: map[string]*pair[int64]{},
		shadow: map[string]*pair[int64]{},
		faults: map[string]bool{},
	}
}

func (t *tallies) began(r *audit.Record) {
	if !t.any {
		t.first, t.any = r.At, true
	}
	t.last = r.At
}

// The method note stores the reason (an error) why the replay could not judge users.
func (t *tallies) note(err error) {
	if err != nil {
		t.faults[err.Error()] = true
	}
}

// maxCampaigns is the maximum number of campaigns (messages) that the replay counts separately. Without a maximum
// number of campaigns, a caller with a separate message id for each user would exhaust the memory.
const maxCampaigns = 100_000

// The constant "others" is the name of the row for all campaigns beyond maxCampaigns.
const others = "(others)"

func at[K comparable, T any](m map[K]*pair[T], key K) *pair[T] {
	found := m[key]
	if found == nil {
		found = new(pair[T])
		m[key] = found
	}
	return found
}

func addTo(to *pair[Counts], before, after *Counts) {
	to.before.add(*before)
	to.after.add(*after)
}

// The method end adds the counts of one replayed call to the counts of all calls.
func (t *tallies) end(c *call) {
	before, after := &c.before, &c.after
	t.decided += before.Sends + before.Replayed + before.Denied
	if !c.counted {
		return
	}
	t.calls++
	t.unavailable += before.unavailable
	t.erased += before.erased
	t.judged += after.judged
	addTo(&t.total, &before.Counts, &after.Counts)
	addTo(at(t.days, c.r.At.Time().Format(time.DateOnly)), &before.Counts, &after.Counts)
	if c.r.Kind == audit.Release && c.r.Channel == 0 {
		for channel, released := range c.released {
			t.endOn(c, channel, &released.before, &released.after)
		}
		return
	}
	t.endOn(c, c.r.Channel, &before.Counts, &after.Counts)
	t.endNamed(c)
}

// endOn adds the counts of one replayed call on one channel to the counts of all calls. If a release is on all
// channels, the caller calls endOn once for each channel.
func (t *tallies) endOn(c *call, channel capping.Channel, before, after *Counts) {
	addTo(at(t.channels, channel), before, after)
	key := campaignKey{c.r.Message, channel}
	if t.campaigns[key] == nil && len(t.campaigns) >= maxCampaigns {
		key = campaignKey{Message: capping.Message{ID: others}}
	}
	addTo(at(t.campaigns, key), before, after)
}

func (t *tallies) endNamed(c *call) {
	before, after := &c.before, &c.after
	for _, s := range before.segments {
		at(t.segments, s.name).before.add(s.Counts)
	}
	for _, s := range after.segments {
		at(t.segments, s.name).after.add(s.Counts)
	}
	for code := range before.byCode {
		if before.byCode[code] == (Counts{}) && after.byCode[code] == (Counts{}) {
			continue
		}
		name := ""
		if code > 0 {
			name = c.names[code-1]
		}
		addTo(at(t.segments, name), &before.byCode[code], &after.byCode[code])
	}
	for _, l := range before.limits {
		at(t.limits, l.name).before += l.n
	}
	for _, l := range after.limits {
		at(t.limits, l.name).after += l.n
	}
	for name, n := range before.shadow {
		at(t.shadow, name).before += n
	}
	for name, n := range after.shadow {
		at(t.shadow, name).after += n
	}
}

// The method result returns the counts as a Result.
func (t *tallies) result(e *engine) *Result {
	r := &Result{
		Configs: t.configs, Notes: []string{}, Calls: t.calls, Judged: t.judged, Decided: t.decided,
		Unavailable: t.unavailable, Erased: t.erased, Gaps: t.sequences.Gaps(),
		Total: newRow("total", &t.total),
		Days:  []api.WhatIfRow{}, Segments: []api.WhatIfRow{},
		Channels: []api.WhatIfRow{}, Campaigns: []api.WhatIfRow{},
		Limits: changes(t.limits), Shadow: changes(t.shadow),
	}
	r.Asked = t.total.before.Sends + t.total.before.Replayed + t.total.before.Denied
	if t.any {
		r.Begins, r.Since, r.Until = t.first.Time(), max(e.cfg.Since, t.first).Time(), t.last.Time()
	}
	for _, day := range slices.Sorted(maps.Keys(t.days)) {
		r.Days = append(r.Days, newRow(day, t.days[day]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.segments)) {
		s := t.segments[name]
		if s.before == (Counts{}) && s.after == (Counts{}) {
			continue
		}
		r.Segments = append(r.Segments, newRow(cmp.Or(name, defaultName), s))
	}
	for _, channel := range slices.Sorted(maps.Keys(t.channels)) {
		r.Channels = append(r.Channels, newRow(cmp.Or(e.channelName(channel), "none"), t.channels[channel]))
	}
	for key, s := range t.campaigns {
		row := newRow(key.ID, s)
		row.Namespace, row.Channel = key.Namespace, e.channelName(key.channel)
		r.Campaigns = append(r.Campaigns, row)
	}
	slices.SortFunc(r.Campaigns, byChange)
	for _, fault := range slices.Sorted(maps.Keys(t.faults)) {
		r.Notes = append(r.Notes, "not judged: "+fault)
	}
	t.users(e.histories, r)
	return r
}

// defaultName is the name that the result shows for users in no segment.
const defaultName = "default"

// byChange orders campaigns by the number of sends that change, and then by the number of sends.
func byChange(a, b api.WhatIfRow) int {
	change := func(r *api.WhatIfRow) int64 { return max(r.After.Sends-r.Before.Sends, r.Before.Sends-r.After.Sends) }
	return cmp.Or(cmp.Compare(change(&b), change(&a)), cmp.Compare(b.Before.Sends, a.Before.Sends),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Channel, b.Channel))
}

func changes(m map[string]*pair[int64]) []api.WhatIfChange {
	list := []api.WhatIfChange{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if c := m[name]; c.before != 0 || c.after != 0 {
			list = append(list, api.WhatIfChange{Name: name, Before: c.before, After: c.after})
		}
	}
	return list
}

// channelName returns the name of a channel in the alternative policy, or else in the latest policy of the audit that
// names the channel.
func (e *engine) channelName(c capping.Channel) string {
	if c == 0 {
		return ""
	}
	named := func(p *capping.Policy) string {
		for name, number := range p.Channels {
			if number == c {
				return name
			}
		}
		return ""
	}
	if e.cfg.Policy != nil && named(e.cfg.Policy) != "" {
		return named(e.cfg.Policy)
	}
	for _, version := range slices.Backward(e.tallies.configs) {
		if name := named(e.policies[version].Policy); name != "" {
			return name
		}
	}
	return fmt.Sprint(int(c))
}

// The method "users" counts the users by the difference between their sends under the alternative policy and their
// recorded sends.
func (t *tallies) users(h *histories, r *Result) {
	steps := map[int]int64{}
	known := int64(0)
	for _, p := range h.pages {
		if p == nil {
			continue
		}
		known += p.known()
		if p.asked != nil {
			r.Users.Asked += int64(p.asked.Count())
		}
		if p.changed == nil {
			continue
		}
		for i, word := range p.changed {
			for ; word != 0; word &= word - 1 {
				steps[int(p.deltas[i*64+bits.TrailingZeros64(word)])]++
			}
		}
	}
	changed := int64(0)
	r.Users.By = []api.WhatIfStep{}
	for _, more := range slices.Sorted(maps.Keys(steps)) {
		n := steps[more]
		changed += n
		switch {
		case more == 0:
			r.Users.Moved = n
			continue
		case more > 0:
			r.Users.More += n
		default:
			r.Users.Less += n
		}
		r.Users.By = append(r.Users.By, api.WhatIfStep{More: more, Users: n})
	}
	r.Users.Unchanged = r.Users.Asked - changed
	r.Memory = memory{Bytes: h.bytes + h.pendingBytes() + h.numbers.Bytes(), Users: known}
	if known > 0 {
		r.Memory.BytesPerUser = float64(r.Memory.Bytes) / float64(known)
	}
}

// The method "known" returns the number of users of the page who have sends or were in a counted call.
func (p *page) known() (n int64) {
	if p.asked != nil {
		return int64(p.asked.Count())
	}
	for low := range pageIDs {
		n += int64(one(p.place(uint16(low)) != 0))
	}
	return n
}
