package whatif

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/testkit"
)

// history is a random demand, decided by a service whose limits and segments change, and by a
// second one under other limits.
type history struct {
	draw
	clock       *testkit.Clock
	users       []capping.UserID
	messages    []capping.Message
	policies    map[string]*capping.Policy
	generations map[string]*generation

	service, other *service
	standIn        *generation // of the other service; nil: that of the first
	steady         bool        // the first service keeps its limits

	records []*audit.Record
	counted capping.Instant
	want    *expected
}

// expected is what the other service decided, counted plainly.
type expected struct {
	calls     []map[capping.UserID]capping.Outcome
	rows      map[string]*pair[Counts] // of everything: "day 2026-…", "segment vip", "channel 1", "campaign …", "total"
	limits    map[string]*pair[int64]
	shadow    map[string]*pair[int64]
	net       map[capping.UserID]int // sends more under the other policy
	changed   map[capping.UserID]bool
	asked     map[capping.UserID]bool
	decisions int
}

// newHistory begins a history of dense ids or of images. calls: calls change a set.
func newHistory(t *testing.T, seed uint64, standIn, images, calls bool) *history {
	h := &history{
		draw:        draw{rand.New(rand.NewPCG(seed, 13)), t, seed%2 == 0 || calls, calls},
		policies:    map[string]*capping.Policy{},
		generations: map[string]*generation{},
		clock:       testkit.NewClockAt(time.Date(2026, 10, 20, 9, 0, 0, 0, time.UTC)),
		want: &expected{
			rows: map[string]*pair[Counts]{}, limits: map[string]*pair[int64]{}, shadow: map[string]*pair[int64]{},
			net: map[capping.UserID]int{}, changed: map[capping.UserID]bool{}, asked: map[capping.UserID]bool{},
		},
	}
	for _, base := range []capping.UserID{0, 65_530, 4_294_967_280} {
		for i := range capping.UserID(12) {
			if user := base + i; !images {
				h.users = append(h.users, user)
			} else {
				h.users = append(h.users, capping.UserID(h.Uint64()|1<<40))
			}
		}
	}
	for i := range 6 {
		h.messages = append(h.messages, capping.Message{ID: fmt.Sprint("promo-", i)})
	}
	h.messages = append(h.messages, capping.Message{Namespace: "growth", ID: "promo-0"})
	first := h.policy("p0")
	h.policies["p0"] = first
	var ids pebblestore.IDs
	if images {
		ids = pebblestore.IDs{Kind: "uuid", Check: "51b11a30"}
	}
	h.service = newService(t, h.clock, first, ids)
	h.newGeneration()
	if standIn {
		h.standIn = h.generation("g-other", h.users)
		for _, set := range []string{"opted-out", "bounced"} { // the record would show a set that is not there
			if h.standIn.sets[set] == nil {
				h.standIn.sets[set] = h.members(h.users)
			}
		}
		h.generations["g-other"] = h.standIn
	}
	h.other = newService(t, h.clock, h.changed(first, "q"), ids)
	h.counted = capping.InstantOf(h.clock.Now().Add(time.Duration(h.IntN(3)) * 3 * day))
	return h
}

func (h *history) newGeneration() {
	g := h.generation(fmt.Sprint("g", len(h.generations)), h.users)
	h.generations[g.name] = g
	h.service.segments = g
}

func (h *history) run() {
	for range 30 + h.IntN(60) {
		h.clock.Advance(pick(h.draw, 0, 0, time.Millisecond, time.Second, time.Minute, time.Hour, 5*time.Hour,
			13*time.Hour, day-time.Millisecond, day, 3*day))
		if h.calls && h.one(3) {
			h.changeSet()
		}
		switch h.IntN(16) {
		case 0:
			if h.long {
				h.release()
			}
		case 1:
			if h.one(2) {
				h.newGeneration()
			}
		case 2:
			if h.one(2) && !h.steady {
				p := h.changed(h.service.capper.Policy(), fmt.Sprint("p", len(h.policies)))
				h.policies[p.Version] = p
				h.service.capper.SetPolicy(p)
			}
		case 3:
			h.filter(false)
		default:
			h.filter(true)
		}
	}
}

// changeSet adds users to the set opted-out and removes others from it, as a call does: the published generation stays
// as it is.
func (h *history) changeSet() {
	changed := *h.service.segments
	changed.sets = maps.Clone(changed.sets)
	set := members{}
	maps.Copy(set, changed.sets["opted-out"])
	for _, user := range h.someUsers() {
		set[user] = h.one(2)
	}
	changed.sets["opted-out"] = set
	h.service.segments = &changed
}

func (h *history) someUsers() []capping.UserID {
	users := slices.Clone(h.users)
	h.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	return users[:1+h.IntN(len(users))]
}

// filter asks both services, the other one of those only whom the first decided.
func (h *history) filter(enforce bool) {
	h.other.segments = cmp.Or(h.standIn, h.service.segments)
	send := &capping.Send{
		Message: pick(h.draw, h.messages...), Channel: pick(h.draw, capping.Channel(0), 1, 2, 3), Users: h.someUsers(),
		Enforce: enforce, Record: true,
	}
	undecided := h.IntN(1 + h.IntN(3))
	asked, away := send.Users[undecided*len(send.Users)/4:], send.Users[:undecided*len(send.Users)/4]
	send.Users = asked
	if len(asked) == 0 {
		return
	}
	d := h.service.capper.Filter(context.Background(), send)
	now := capping.InstantOf(h.clock.Now())
	r := recordOf(send, now, d)
	h.leaveOut(r, away, d)
	r.Sequence = uint64(len(h.records) + 1)
	h.records = append(h.records, r)
	var demand capping.Send = *send
	demand.Users = nil
	decided := map[capping.UserID]int{}
	for i, user := range send.Users {
		if d.Verdicts[i].Outcome != capping.Unavailable {
			decided[user] = i
			demand.Users = append(demand.Users, user)
		}
	}
	if len(demand.Users) == 0 {
		h.want.calls = append(h.want.calls, nil)
		return
	}
	o := h.other.capper.Filter(context.Background(), &demand)
	h.expect(r, d, decided, o)
}

// leaveOut puts users into the record of whom nothing was decided.
func (h *history) leaveOut(r *audit.Record, users []capping.UserID, d *capping.Decisions) {
	if len(users) == 0 {
		return
	}
	at := slices.IndexFunc(r.Groups, func(g audit.Group) bool { return g.Outcome == audit.Unavailable })
	if at < 0 {
		at = len(r.Groups)
		r.Groups = append(r.Groups, audit.Group{Outcome: audit.Unavailable})
	}
	r.Groups[at] = group{Outcome: audit.Unavailable}.of(r.Groups[at].AppendUsers(slices.Clone(users)))
	for _, user := range users {
		name := h.service.segments.segmentOf(user)
		if name == defaultName {
			name = ""
		}
		k := slices.IndexFunc(r.Segments, func(s audit.SegmentCount) bool { return s.Name == name })
		if k < 0 {
			k = len(r.Segments)
			r.Segments = append(r.Segments, audit.SegmentCount{Name: name})
		}
		r.Segments[k].Requested++
		r.Segments[k].Unavailable++
	}
}

func countOf(outcome capping.Outcome) (c Counts) {
	switch outcome {
	case capping.Allowed:
		c.Sends = 1
	case capping.Replayed:
		c.Replayed = 1
	case capping.Denied:
		c.Denied = 1
	default:
		c.Unjudged = 1
	}
	return c
}

func (h *history) rowNames(r *audit.Record) []string {
	return []string{
		"total", "day " + r.At.Time().Format(time.DateOnly), fmt.Sprint("channel ", r.Channel),
		fmt.Sprint("campaign ", r.Message, r.Channel),
	}
}

// expect counts what both services decided.
func (h *history) expect(r *audit.Record, d *capping.Decisions, decided map[capping.UserID]int, o *capping.Decisions) {
	outcomes := map[capping.UserID]capping.Outcome{}
	h.want.calls = append(h.want.calls, outcomes)
	for k, user := range o.Users {
		outcomes[user] = o.Verdicts[k].Outcome
		if r.At < h.counted {
			continue
		}
		i := decided[user]
		h.want.decisions++
		h.want.asked[user] = true
		before, after := countOf(d.Verdicts[i].Outcome), countOf(o.Verdicts[k].Outcome)
		after.gained, after.lost = max(after.Sends-before.Sends, 0), max(before.Sends-after.Sends, 0)
		for _, name := range h.rowNames(r) {
			addTo(at(h.want.rows, name), &before, &after)
		}
		segment := h.service.segments.segmentOf(user)
		if h.standIn != nil {
			segment = h.standIn.segmentOf(user)
		}
		addTo(at(h.want.rows, "segment "+segment), &before, &after)
		if before.Denied > 0 {
			at(h.want.limits, d.DeniedBy(i)).before++
		}
		if after.Denied > 0 {
			at(h.want.limits, o.DeniedBy(k)).after++
		}
		for bit, limit := range d.ShadowLimits(i) {
			at(h.want.shadow, limit.Name).before += int64(d.Verdicts[i].Shadow >> bit & 1)
		}
		for bit, limit := range o.ShadowLimits(k) {
			at(h.want.shadow, limit.Name).after += int64(o.Verdicts[k].Shadow >> bit & 1)
		}
		h.want.net[user] += int(after.Sends - before.Sends)
		if after.Sends != before.Sends || (after.Sends+after.Replayed > 0) != (before.Sends+before.Replayed > 0) {
			h.want.changed[user] = true
		}
	}
}

func (h *history) release() {
	h.other.segments = cmp.Or(h.standIn, h.service.segments)
	message, channel, users := pick(h.draw, h.messages...), pick(h.draw, capping.Channel(0), 1, 2), h.someUsers()
	beforeOn, afterOn := h.channelsOf(h.service, message, users), h.channelsOf(h.other, message, users)
	released, err := h.service.capper.Release(context.Background(), message, channel, users)
	require.NoError(h.t, err)
	others, err := h.other.capper.Release(context.Background(), message, channel, users)
	require.NoError(h.t, err)
	r := recordOfRelease(message, channel, capping.InstantOf(h.clock.Now()), h.service, users, released)
	r.Sequence = uint64(len(h.records) + 1)
	h.records, h.want.calls = append(h.records, r), append(h.want.calls, nil)
	if r.At < h.counted {
		return
	}
	for i, user := range users {
		before, after := Counts{}, Counts{}
		if released[i] == capping.ReleaseDone {
			before.Released = 1
		}
		if others[i] == capping.ReleaseDone {
			after.Released = 1
		}
		for _, name := range h.rowNames(r) {
			if channel != 0 || name == "total" || strings.HasPrefix(name, "day ") {
				addTo(at(h.want.rows, name), &before, &after)
			}
		}
		for on := capping.Channel(0); channel == 0 && on <= 3; on++ {
			r := *r
			r.Channel = on
			before, after := before, after
			before.Released *= int64(one(slices.Contains(beforeOn[i], on)))
			after.Released *= int64(one(slices.Contains(afterOn[i], on)))
			for _, name := range h.rowNames(&r) {
				if name != "total" && !strings.HasPrefix(name, "day ") {
					addTo(at(h.want.rows, name), &before, &after)
				}
			}
		}
		if before != after {
			h.want.net[user] += int(before.Released - after.Released)
			h.want.changed[user] = true
		}
	}
}

// channelsOf are the channels on which a service knows a send of the message to each of the users.
func (h *history) channelsOf(s *service, message capping.Message, users []capping.UserID) [][]capping.Channel {
	found := make([][]capping.Channel, len(users))
	for i, user := range users {
		log, err := s.store.Log(context.Background(), user)
		require.NoError(h.t, err)
		for k := range log.Len() {
			if e := log.Entry(k); e.Token == message.Token() {
				found[i] = append(found[i], e.Channel)
			}
		}
	}
	return found
}

// config is the replay's.
func (h *history) config(policy *capping.Policy) Config {
	c := Config{
		Policy: policy, Since: h.counted,
		Policies: func(version string) (*capping.Policy, error) { return h.policies[version], nil },
		Generations: func(name string) (capping.Segments, error) {
			if g := h.generations[name]; g != nil {
				return g, nil
			}
			return nil, fmt.Errorf("generation %s is gone", name)
		},
	}
	if h.standIn != nil {
		c.Generation = h.standIn.name
	}
	return c
}

func all(records []*audit.Record) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// replay goes through the records with a look at every decision.
func (h *history) replay(cfg Config, observe func(*audit.Record, []capping.UserID, []capping.Verdict)) *Result {
	e, err := newEngine(cfg)
	require.NoError(h.t, err)
	e.observe = observe
	for _, r := range h.records {
		require.NoError(h.t, e.replay(r))
	}
	return e.result()
}

func eachHistory(t *testing.T, standIn, calls bool) {
	ofBothForms(t, func(t *testing.T, seed uint64, images bool) {
		h := newHistory(t, seed, standIn, images, calls)
		h.run()
		h.checkAgainstTheOther(t)
		h.checkInForce(t)
	})
}

// ofBothForms tries many seeds with dense ids, and with images those seeds whose policies forget nothing.
func ofBothForms(t *testing.T, try func(t *testing.T, seed uint64, images bool)) {
	for seed := range uint64(60) {
		for _, images := range []bool{false, true}[:2-seed%2] {
			t.Run(fmt.Sprint(seed, " images ", images), func(t *testing.T) {
				t.Parallel()
				try(t, seed, images)
			})
		}
	}
}

func TestWhatIfIsWhatASecondServiceDecides(t *testing.T) {
	t.Parallel()
	eachHistory(t, false, false)
}

// TestSetsThatCallsChange compares with a second service that knows every change by a call, as the first one does. The
// replay knows the generations as they were published.
func TestSetsThatCallsChange(t *testing.T) {
	t.Parallel()
	eachHistory(t, false, true)
}

func TestOtherSegmentsAreWhatASecondServiceDecides(t *testing.T) {
	t.Parallel()
	eachHistory(t, true, false)
}

// TestTheRecordReplaysToItself judges every recorded decision again, by the limits that were in force.
func TestTheRecordReplaysToItself(t *testing.T) {
	t.Parallel()
	ofBothForms(t, func(t *testing.T, seed uint64, images bool) {
		h := newHistory(t, seed, false, images, seed%4 < 2)
		h.steady = true
		h.run()
		h.checkEveryDecision(t)
	})
}

// checkAgainstTheOther: under other limits, it is what the other service decided.
func (h *history) checkAgainstTheOther(t *testing.T) {
	got := h.replay(h.config(h.other.capper.Policy()), h.compareCalls())
	h.compareRows(got)
	require.Equal(t, changes(h.want.limits), got.Limits)
	require.Equal(t, changes(h.want.shadow), got.Shadow)
	h.compareUsers(got)
	require.EqualValues(t, h.want.decisions, got.Asked)
}

// checkInForce: the limits in force change nobody.
func (h *history) checkInForce(t *testing.T) {
	h.standIn = nil
	got := h.replay(h.config(nil), nil)
	require.Equal(t, got.Total.Before, got.Total.After)
	require.Equal(t, got.Users.Asked, got.Users.Unchanged)
	require.Empty(t, got.Users.By)
	require.Zero(t, got.Judged)
	for _, change := range append(got.Limits, got.Shadow...) {
		require.Equal(t, change.Before, change.After)
	}
}

// checkEveryDecision replays the record under the limits in force, and judges every user again. To force that, each
// generation stands in for one with another name. Where calls change sets, the other policy names a set twice. Every
// verdict has to be the recorded one.
func (h *history) checkEveryDecision(t *testing.T) {
	outcomes := map[audit.Outcome]capping.Outcome{
		audit.Allowed: capping.Allowed, audit.Replayed: capping.Replayed, audit.Denied: capping.Denied,
	}
	recorded := map[uint64]map[capping.UserID]capping.Outcome{}
	for _, r := range h.records {
		of := map[capping.UserID]capping.Outcome{}
		for _, g := range r.Groups {
			for user := range g.All() {
				of[user] = outcomes[g.Outcome]
			}
		}
		recorded[r.Sequence] = of
	}
	judged := 0
	cfg := h.config(nil)
	if cfg.Since = 0; h.calls {
		again := *h.policies["p0"]
		again.Suppress = append(slices.Clone(again.Suppress), again.Suppress[0])
		cfg.Policy = &again
	} else {
		cfg.Generation = "stand-in"
	}
	e, err := newEngine(cfg)
	require.NoError(t, err)
	e.observe = func(r *audit.Record, users []capping.UserID, verdicts []capping.Verdict) {
		for i, user := range users {
			require.Equal(t, recorded[r.Sequence][user], verdicts[i].Outcome, "user %d in call %d at %s", user,
				r.Sequence, r.At.Time())
			judged++
		}
	}
	for _, r := range h.records {
		if g := h.generations[r.Generation]; g != nil && !h.calls {
			e.generations["stand-in"] = g
		}
		require.NoError(t, e.replay(r))
	}
	require.Positive(t, judged)
}

// compareCalls asks of every user who was looked at whether the other service decided so, and of every
// other whether the recorded outcome is what it decided.
func (h *history) compareCalls() func(*audit.Record, []capping.UserID, []capping.Verdict) {
	return func(r *audit.Record, users []capping.UserID, verdicts []capping.Verdict) {
		want := h.want.calls[r.Sequence-1]
		for i, user := range users {
			require.Equal(h.t, want[user], verdicts[i].Outcome, "user %d in call %d at %s", user, r.Sequence,
				r.At.Time())
		}
	}
}

func plain(rows map[string]*pair[Counts]) map[string]pair[Counts] {
	values := map[string]pair[Counts]{}
	for name, row := range rows {
		values[name] = *row
	}
	return values
}

func countsOf(c api.WhatIfCounts) Counts {
	return Counts{Sends: c.Sends, Replayed: c.Replayed, Denied: c.Denied, Unjudged: c.Unjudged, Released: c.Released}
}

func (h *history) compareRows(got *Result) {
	rows := map[string]*pair[Counts]{}
	put := func(kind string, list []api.WhatIfRow) {
		for _, row := range list {
			counts := pair[Counts]{countsOf(row.Before), countsOf(row.After)}
			counts.after.gained, counts.after.lost = row.Gained, row.Lost
			if counts != (pair[Counts]{}) {
				rows[kind+row.Name] = &counts
			}
		}
	}
	put("", []api.WhatIfRow{got.Total})
	put("day ", got.Days)
	put("segment ", got.Segments)
	numbers := map[string]capping.Channel{"none": 0, "": 0, "push": 1, "email": 2, "sms": 3}
	for i := range got.Channels {
		got.Channels[i].Name = fmt.Sprint(numbers[got.Channels[i].Name])
	}
	put("channel ", got.Channels)
	for i := range got.Campaigns {
		c := &got.Campaigns[i]
		c.Name = fmt.Sprint(capping.Message{Namespace: c.Namespace, ID: c.Name}, numbers[c.Channel])
	}
	put("campaign ", got.Campaigns)
	maps.DeleteFunc(h.want.rows, func(_ string, p *pair[Counts]) bool { return *p == pair[Counts]{} })
	require.Equal(h.t, plain(h.want.rows), plain(rows))
}

func (h *history) compareUsers(got *Result) {
	steps, want := map[int]int64{}, api.WhatIfUsers{By: []api.WhatIfStep{}, Asked: int64(len(h.want.asked))}
	for user := range h.want.changed {
		switch n := h.want.net[user]; {
		case n > 0:
			want.More++
			steps[n]++
		case n < 0:
			want.Less++
			steps[n]++
		default:
			want.Moved++
		}
	}
	for _, more := range slices.Sorted(maps.Keys(steps)) {
		want.By = append(want.By, api.WhatIfStep{More: more, Users: steps[more]})
	}
	want.Unchanged = want.Asked - want.More - want.Less - want.Moved
	require.Equal(h.t, want, got.Users)
}
