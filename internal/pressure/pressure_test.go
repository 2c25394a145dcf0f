package pressure

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// TestCountsAreThoseOfTheModel compares random histories with a count user by user: of dense ids and of images, with
// releases, replays and unknown results, under several policies, in one pass and in many.
func TestCountsAreThoseOfTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		w.run()
		cfg := w.config()
		t.Logf("seed %d: %+v", seed, cfg)
		got, err := Run(context.Background(), w.read, cfg)
		require.NoError(t, err)
		want := &model{world: w, cfg: cfg}
		want.cfg.defaults()
		want.compare(got)
	}
}

func (w *world) config() Config {
	cfg := Config{
		Until: w.now + 1, Weeks: 1 + w.IntN(5), Policy: w.policy, Segments: w.generation, Most: 1000,
		Policies: func(version string) (*capping.Policy, error) { return w.policies[version], nil },
		MinTaken: 1, MemoryBytes: int64(w.pick(1, 100_000, 0)),
		Sizes: map[string]int64{},
	}
	for i, name := range w.generation.names {
		cfg.Sizes[name] = 0
		for _, user := range w.users {
			if w.generation.segments[user] == i+1 {
				cfg.Sizes[name]++
			}
		}
	}
	if w.long {
		cfg.MinTaken = w.pick(1, 3, 10)
	}
	if w.IntN(4) == 0 {
		channel := capping.Channel(w.IntN(3))
		cfg.Channel = &channel
	}
	if w.IntN(4) == 0 {
		namespace := []string{"", "growth"}[w.IntN(2)]
		cfg.Namespace = &namespace
	}
	cfg.AtLimit = &AtLimit{Segment: []string{"", "new", "vip"}[w.IntN(3)], Limit: []string{"", "weekly"}[w.IntN(2)]}
	return cfg
}

// model is the count user by user.
type model struct {
	*world
	cfg Config
}

func (m *model) counts(key pairKey) bool {
	return (m.cfg.Channel == nil || *m.cfg.Channel == key.channel) &&
		(m.cfg.Namespace == nil || *m.cfg.Namespace == key.message.Namespace)
}

// messages returns the number of messages of a user in a week.
func (m *model) got(user capping.UserID, week int, selected func(pairKey) bool) (n int) {
	to := m.cfg.Until - capping.Instant(week)*capping.Instant((7*day).Milliseconds())
	for key, sends := range m.sends {
		for _, at := range sends {
			if key.user == user && m.counts(key) && selected(key) && at < to &&
				at >= to-capping.Instant((7*day).Milliseconds()) {
				n++
			}
		}
	}
	return n
}

func (m *model) segmentName(user capping.UserID) string {
	if code := m.generation.segmentOf(user); code > 0 {
		return m.generation.names[code-1]
	}
	return api.NoSegment
}

func (m *model) channelName(c capping.Channel) string {
	return [...]string{"", "push", "email"}[c]
}

func (m *model) compare(got *Result) {
	t := m.t
	require.Len(t, got.Weeks, m.cfg.Weeks)
	for _, row := range got.People {
		m.comparePeople(&row)
	}
	for _, channel := range []string{"", "push", "email"} {
		m.hasRow(got, api.PressureChannel, channel, func(k pairKey) bool { return m.channelName(k.channel) == channel })
	}
	m.compareAtLimits(got)
	m.compareCampaigns(got)
	m.compareHeld(got)
}

// hasRow requires a row for a name under which anything was sent.
func (m *model) hasRow(got *Result, by, name string, selected func(pairKey) bool) {
	any := false
	for _, user := range m.users {
		for week := range m.cfg.Weeks {
			any = any || m.got(user, week, selected) > 0
		}
	}
	found := slices.ContainsFunc(got.People, func(p api.PressurePeople) bool { return p.By == by && p.Name == name })
	require.True(m.t, !any || found, "%s %q", by, name)
}

func (m *model) comparePeople(row *api.PressurePeople) {
	size := int64(0)
	for week := range m.cfg.Weeks {
		want := api.PressureSpread{Got: make([]int64, api.PressureMost)}
		none := int64(0)
		size = 0
		for _, user := range m.users {
			segment := m.segmentName(user)
			if row.By == api.PressureSegment && segment != row.Name {
				continue
			}
			n := m.got(user, week, func(k pairKey) bool {
				return (row.By != api.PressureChannel || m.channelName(k.channel) == row.Name) &&
					(row.By != api.PressureNamespace || k.message.Namespace == row.Name)
			})
			want.Messages += int64(n)
			if n > 0 {
				want.Got[min(n, api.PressureMost)-1]++
			}
			if segment != api.NoSegment {
				if size++; n == 0 {
					none++
				}
			}
		}
		if row.By != api.PressureSegment || row.Name != api.NoSegment {
			want.None = &none
			require.Equal(m.t, size, *row.Size)
		}
		require.Equal(m.t, want, row.Weeks[week], "%s %s, week %d", row.By, row.Name, week)
	}
}

// atLimit reports whether the user is at the limit.
func (m *model) atLimit(user capping.UserID, l *capping.Limit) bool {
	zone := time.UTC
	if z := m.generation.zoneOf(user); z > 0 {
		zone = m.generation.places[z-1]
	}
	rule := l.RuleIn(m.cfg.Until, 0, zone)
	n := 0
	for key, sends := range m.sends {
		for _, at := range sends {
			if key.user == user && at > rule.After(m.cfg.Until) && l.AppliesTo(key.channel) {
				n++
			}
		}
	}
	return n >= l.Max
}

func (m *model) compareAtLimits(got *Result) {
	var listed []capping.UserID
	for _, row := range got.AtLimits {
		name := row.Segment
		if name == api.NoSegment {
			name = ""
		}
		var want []int64
		anyone := map[capping.UserID]bool{}
		for _, l := range m.cfg.Policy.Limits(name) {
			if l.Shadow || l.Max == 0 {
				continue
			}
			users := int64(0)
			for _, user := range m.users {
				if m.segmentName(user) == row.Segment && m.atLimit(user, &l) {
					users++
					anyone[user] = true
					if name == m.cfg.AtLimit.Segment && (m.cfg.AtLimit.Limit == "" || m.cfg.AtLimit.Limit == l.Name) {
						listed = append(listed, user)
					}
				}
			}
			want = append(want, users)
		}
		var have []int64
		for _, l := range row.Limits {
			have = append(have, l.Users)
		}
		require.Equal(m.t, want, have, row.Segment)
		require.Equal(m.t, int64(len(anyone)), row.Any)
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	have := got.Images
	if got.Users != nil {
		have = capping.AppendUsers(nil, got.Users.IDs())
	}
	require.ElementsMatch(m.t, listed, have)
}

func (m *model) compareCampaigns(got *Result) {
	type row struct{ sends, released, held []int64 }
	want := map[api.PressureMessage]*row{}
	of := func(key pairKey) *row {
		name := api.PressureMessage{MessageID: key.message.ID, Namespace: key.message.Namespace,
			Channel: m.channelName(key.channel)}
		if want[name] == nil {
			zero := func() []int64 { return make([]int64, m.cfg.Weeks) }
			want[name] = &row{zero(), zero(), zero()}
		}
		return want[name]
	}
	count := func(all map[pairKey][]capping.Instant, to func(*row) []int64) {
		for key, sends := range all {
			for _, at := range sends {
				if week := m.cfg.week(at); week >= 0 && m.counts(key) {
					to(of(key))[week]++
				}
			}
		}
	}
	count(m.sends, func(r *row) []int64 { return r.sends })
	count(m.taken, func(r *row) []int64 { return r.released })
	held := map[pairKey]bool{}
	for i := range m.denials {
		d := &m.denials[i]
		for _, user := range d.users {
			key := pairKey{user, d.message, d.channel}
			if week := m.cfg.week(d.at); week >= 0 && m.counts(key) && !held[key] && !m.zero(d, user) {
				held[key] = true
				of(key).held[week]++
			}
		}
	}
	have := map[api.PressureMessage]*row{}
	for _, c := range got.Campaigns {
		have[c.PressureMessage] = &row{c.Messages, c.Released, c.HeldBack}
	}
	for name, r := range want {
		if sum(r.sends) == 0 {
			delete(want, name)
		}
	}
	require.ElementsMatch(m.t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(have)))
	for name, r := range want {
		require.Equal(m.t, *r, *have[name], name)
	}
}

// zero reports whether the limit that denied the user is 0.
func (m *model) zero(d *denial, user capping.UserID) bool {
	policy := m.policies[d.config]
	has := func(limits []capping.Limit, is func(most int) bool) bool {
		return slices.ContainsFunc(limits, func(l capping.Limit) bool {
			return l.Name == d.limit && !l.Shadow && is(l.Max)
		})
	}
	none := func(most int) bool { return most == 0 }
	own := m.segmentName(user)
	if own == api.NoSegment {
		own = ""
	}
	all := slices.Concat(policy.Default, policy.Segments["new"], policy.Segments["vip"])
	return has(policy.Limits(own), none) ||
		has(all, none) && !has(all, func(most int) bool { return most > 0 })
}

// after returns the instant after which sends were in the window of a limit.
func (m *model) after(d *denial) (after capping.Instant, channels func(capping.Channel) bool) {
	policy := m.policies[d.config]
	var limits []capping.Limit
	for _, list := range append([][]capping.Limit{policy.Default}, policy.Segments["new"], policy.Segments["vip"]) {
		for _, l := range list {
			if l.Name == d.limit && !l.Shadow && l.Max > 0 {
				limits = append(limits, l)
			}
		}
	}
	after = d.at
	for _, l := range limits {
		for _, zone := range append([]*time.Location{time.UTC}, m.generation.places...) {
			rule := l.RuleIn(d.at, 0, zone)
			after = min(after, rule.After(d.at))
		}
	}
	return after, func(c capping.Channel) bool {
		return len(limits) == 0 || slices.ContainsFunc(limits, func(l capping.Limit) bool { return l.AppliesTo(c) })
	}
}

func (m *model) compareHeld(got *Result) {
	type message struct {
		capping.Message
		channel capping.Channel
	}
	want := map[api.PressureMessage]map[api.PressureMessage]int64{}
	users := map[api.PressureMessage]int64{}
	held := map[pairKey]bool{}
	name := func(msg message) api.PressureMessage {
		return api.PressureMessage{MessageID: msg.ID, Namespace: msg.Namespace, Channel: m.channelName(msg.channel)}
	}
	for i := range m.denials {
		d := &m.denials[i]
		if m.cfg.week(d.at) < 0 || !m.counts(pairKey{0, d.message, d.channel}) {
			continue
		}
		after, on := m.after(d)
		all, inWindow := map[message]int{}, map[message]map[capping.UserID]bool{}
		for key, sends := range d.sends {
			msg := message{key.message, key.channel}
			all[msg] += len(sends)
			for _, at := range sends {
				if at > after && on(key.channel) {
					if inWindow[msg] == nil {
						inWindow[msg] = map[capping.UserID]bool{}
					}
					inWindow[msg][key.user] = true
				}
			}
		}
		b := name(message{d.message, d.channel})
		for _, user := range d.users {
			if held[pairKey{user, d.message, d.channel}] || m.zero(d, user) {
				continue
			}
			held[pairKey{user, d.message, d.channel}] = true
			users[b]++
			for msg := range inWindow {
				if all[msg] >= m.cfg.MinTaken && inWindow[msg][user] {
					if want[b] == nil {
						want[b] = map[api.PressureMessage]int64{}
					}
					want[b][name(msg)]++
				}
			}
		}
	}
	require.Len(m.t, got.HeldBack, len(users))
	require.True(m.t, slices.IsSortedFunc(got.HeldBack, func(a, b api.PressureHeld) int {
		return cmp.Compare(b.Users, a.Users)
	}))
	for _, h := range got.HeldBack {
		require.Equal(m.t, users[h.PressureMessage], h.Users)
		have := map[api.PressureMessage]int64{}
		for _, taken := range h.TakenBy {
			have[taken.PressureMessage] = taken.Users
		}
		require.Len(m.t, have, len(want[h.PressureMessage]))
		for by, n := range have {
			require.Equal(m.t, want[h.PressureMessage][by], n, "%v by %v", h.PressureMessage, by)
		}
	}
}

// TestLimitsOfZeroHoldNobodyBack checks that a denial counts only for users whose segment has the limit above 0.
func TestLimitsOfZeroHoldNobodyBack(t *testing.T) {
	t.Parallel()
	daily := func(most int) capping.Limit { return capping.Limit{Name: "daily", Max: most, Window: day} }
	policy := &capping.Policy{Version: "p", Channels: map[string]capping.Channel{"push": 1},
		Default: []capping.Limit{daily(1)}, Segments: map[string][]capping.Limit{
			"new": {daily(0)}, "vip": {daily(2), {Name: "blocked", Window: day}}}}
	now := capping.InstantOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	call := func(n uint64, id string, groups ...audit.Group) *audit.Record {
		return &audit.Record{Kind: audit.Filter, Instance: "00000000000000aa", Sequence: n, Channel: 1, Config: "p",
			At: now - 10 + capping.Instant(n), Message: capping.Message{ID: id}, Groups: groups}
	}
	denied := func(limit string, users ...uint32) audit.Group {
		return audit.Group{Outcome: audit.Denied, Limit: limit, Users: bitmap.Of(users...)}
	}
	w := &world{records: []*audit.Record{
		call(1, "spring", audit.Group{Outcome: audit.Allowed, Users: bitmap.Of(2, 3)}),
		call(2, "basket", denied("daily", 1, 2, 3), denied("blocked", 4)),
		call(3, "only-zero", denied("daily", 1), denied("blocked", 5)),
	}}
	cfg := Config{Until: now, Policy: policy, MinTaken: 1, Segments: &generation{names: []string{"new", "vip"},
		segments: map[capping.UserID]int{1: 1, 2: 2, 4: 2, 5: 2}},
		Policies: func(string) (*capping.Policy, error) { return policy, nil }}
	got, err := Run(t.Context(), w.read, cfg)
	require.NoError(t, err)
	on := func(id string) api.PressureMessage { return api.PressureMessage{MessageID: id, Channel: "push"} }
	require.Equal(t, []api.PressureHeld{{PressureMessage: on("basket"), Users: 2,
		TakenBy: []api.PressureTaken{{PressureMessage: on("spring"), Users: 2}}}}, got.HeldBack)

	cfg.Segments = nil
	got, err = Run(t.Context(), w.read, cfg)
	require.NoError(t, err)
	require.Len(t, got.HeldBack, 2, "without segments, everybody has the default limits")
}

func TestACountEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.run()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, w.read, w.config())
	require.ErrorIs(t, err, context.Canceled)

	broken := errors.New("broken")
	_, err = Run(context.Background(), func(capping.Instant) iter.Seq2[*audit.Record, error] {
		return func(yield func(*audit.Record, error) bool) { yield(nil, broken) }
	}, w.config())
	require.ErrorIs(t, err, broken)
	_, err = Run(context.Background(), w.read, Config{})
	require.Error(t, err)
}
