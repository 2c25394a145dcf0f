package capping_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/share"
)

// population is a generation that computes the sets of each user.
type population struct {
	capping.DenseIDs
	names    []string
	segment  func(capping.UserID) uint8
	sets     map[string]predicate
	places   []*time.Location
	zone     func(capping.UserID) uint16
	lookedUp *int // number of time zone look-ups
}

// predicate is a set defined by a function.
type predicate func(capping.UserID) bool

// Mark marks the users for whom the predicate is true.
func (p predicate) Mark(users []capping.UserID, _ []uint32, marks []uint8, mark uint8) {
	for i, user := range users {
		if marks[i] == 0 && p(user) {
			marks[i] = mark
		}
	}
}

func (p *population) Generation() string { return "g1" }
func (p *population) Names() []string    { return p.names }

func (p *population) Lookup(numbers []uint32, codes []uint8) {
	for i, number := range numbers {
		user := capping.UserID(number)
		codes[i] = 0
		if p.segment != nil {
			codes[i] = p.segment(user)
		}
	}
}

func (p *population) Set(name string) (capping.Set, bool) {
	set, ok := p.sets[name]
	return set, ok
}

func (p *population) Zones() []*time.Location { return p.places }

func (p *population) LookupZones(numbers []uint32, zones []uint16) {
	if p.lookedUp != nil {
		*p.lookedUp++
	}
	for i, number := range numbers {
		user := capping.UserID(number)
		zones[i] = 0
		if p.zone != nil {
			zones[i] = p.zone(user)
		}
	}
}

// logs is a store with the same few sends for every user. The store judges as every store does.
type logs struct {
	capping.Store
	now   capping.Instant
	log   capping.Log
	mutex sync.Mutex
	asked []int // number of users in each call
	fault func(*capping.Batch) error
}

func (l *logs) ClockTolerance() time.Duration { return 0 }

func (l *logs) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	l.mutex.Lock()
	l.asked = append(l.asked, len(b.Users))
	l.mutex.Unlock()
	if err := b.Check(verdicts); err != nil {
		return err
	}
	if l.fault != nil {
		if err := l.fault(b); err != nil {
			return err
		}
	}
	for i := range b.Users {
		verdicts[i] = capping.Judge(l.log, b.Channel, b.Token, b.Rules[b.Groups[i]], l.now, b.Horizon(l.now))
	}
	return nil
}

func (l *logs) Log(context.Context, capping.UserID) (capping.Log, error) { return l.log, nil }

func (l *logs) Messages(context.Context, []capping.Token) (map[capping.Token]capping.Message, error) {
	return nil, nil
}

// at returns a capper at the given time, with the population as its segments and sends in its store.
func at(now time.Time, policy *capping.Policy, people capping.Segments, sends ...time.Duration) (*capping.Capper,
	*logs) {
	store := &logs{now: capping.InstantOf(now)}
	for i, ago := range sends { // oldest first
		store.log = store.log.Record(nil, capping.Entry{At: capping.InstantOf(now.Add(-ago)), Token: letter(i)}, 0)
	}
	return capping.New(store, func() capping.Segments { return people }, policy, func() time.Time { return now }), store
}

func nobody(capping.UserID) bool   { return false }
func everyone(capping.UserID) bool { return true }

func upTo(n int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(i)
	}
	return users
}

func hours(t testing.TB, from, to string) quiet.Hours {
	a, err := quiet.ParseMinute(from)
	require.NoError(t, err)
	b, err := quiet.ParseMinute(to)
	require.NoError(t, err)
	return quiet.Hours{From: a, To: b}
}

func holdout(t testing.TB, percent float64) *capping.Holdout {
	held, err := share.New(share.Holdout, percent, "2027-q1")
	require.NoError(t, err)
	return &capping.Holdout{Share: held}
}

var night = time.Date(2026, 11, 20, 22, 30, 0, 0, time.UTC)

func TestOrderOfWhatDenies(t *testing.T) {
	t.Parallel()
	policy := &capping.Policy{
		Default:  []capping.Limit{rolling("closed", 0, day)},
		Suppress: []capping.Suppression{{Set: "a"}, {Set: "b"}},
		Holdout:  holdout(t, 100),
		Quiet:    []capping.Quiet{{Hours: hours(t, "01:00", "02:00")}, {Hours: hours(t, "21:00", "08:00")}},
	}
	b := predicate(func(user capping.UserID) bool { return user < 2 })
	people := &population{sets: map[string]predicate{"a": func(user capping.UserID) bool { return user == 0 }, "b": b}}
	send := &capping.Send{Users: upTo(3), Enforce: true}
	never := func(by capping.Reason, rule uint8) capping.Verdict {
		return capping.Verdict{Outcome: capping.Denied, By: by, Rule: rule, FreesAt: capping.Never}
	}
	c, store := at(night, policy, people)
	d := c.Filter(t.Context(), send)
	require.Equal(t, []capping.Verdict{never(capping.BySuppression, 0), never(capping.BySuppression, 1),
		never(capping.ByHoldout, 0)}, d.Verdicts)
	require.Equal(t, []string{"a", "b", ""}, []string{d.Set(0), d.Set(1), d.Set(2)})
	require.Nil(t, d.Zone(0))
	require.Nil(t, d.Limit(2))
	require.Empty(t, store.asked, "nobody is left whom the store would have to decide")

	policy.Holdout, people.sets["b"] = nil, nobody
	d = c.Filter(t.Context(), send)
	until := capping.InstantOf(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
	require.Equal(t, capping.Verdict{Outcome: capping.Denied, By: capping.ByQuiet, Rule: 1, FreesAt: until},
		d.Verdicts[2])
	require.Equal(t, time.UTC, d.Zone(2))
	policy.Quiet = nil
	d = c.Filter(t.Context(), send)
	require.Equal(t, "closed", d.Limit(2).Name)
	require.Equal(t, []int{2}, store.asked)
}

// TestExemptSends checks that only EvenExempt suppressions deny exempt sends.
func TestExemptSends(t *testing.T) {
	t.Parallel()
	people := &population{sets: map[string]predicate{"a": everyone,
		"b": func(user capping.UserID) bool { return user == 1 }}}
	c, _ := at(night, &capping.Policy{
		Default: []capping.Limit{rolling("closed", 0, day)}, Suppress: []capping.Suppression{{Set: "a"},
			{Set: "b", EvenExempt: true}},
		Holdout: holdout(t, 100), Quiet: []capping.Quiet{{Hours: hours(t, "21:00", "08:00"), UserZone: true}},
	}, people)
	d := c.Filter(t.Context(), &capping.Send{Message: capping.Message{ID: "m"}, Users: upTo(3), Record: true})
	require.NoError(t, d.Err)
	for i, want := range []capping.Outcome{capping.Allowed, capping.Denied, capping.Allowed} {
		require.Equal(t, want, d.Verdicts[i].Outcome)
	}
	require.Equal(t, "b", d.Set(1))
}

// TestWithholdingByChannel checks that suppressions, holdout and quiet hours apply by the send's channel.
func TestWithholdingByChannel(t *testing.T) {
	t.Parallel()
	const push, sms, email = 1, 2, 3
	people := &population{sets: map[string]predicate{"sms-stop": everyone}}
	held := holdout(t, 100)
	held.Channels = capping.ChannelSetOf(email)
	c, _ := at(night, &capping.Policy{
		Suppress: []capping.Suppression{{Set: "sms-stop", Channels: capping.ChannelSetOf(sms)}}, Holdout: held,
		Quiet: []capping.Quiet{{Hours: hours(t, "21:00", "08:00"), Channels: capping.ChannelSetOf(push)}},
	}, people)
	for channel, want := range map[capping.Channel]capping.Verdict{
		0: {Outcome: capping.Allowed},
		4: {Outcome: capping.Allowed},
		push: {Outcome: capping.Denied, By: capping.ByQuiet,
			FreesAt: capping.InstantOf(night.Add(9*time.Hour + 30*time.Minute))},
		sms:   {Outcome: capping.Denied, By: capping.BySuppression, FreesAt: capping.Never},
		email: {Outcome: capping.Denied, By: capping.ByHoldout, FreesAt: capping.Never},
	} {
		d := c.Filter(t.Context(), &capping.Send{Users: []capping.UserID{7}, Channel: channel, Enforce: true})
		require.Equal(t, want, d.Verdicts[0], "channel %d", channel)
	}
}

// TestReplaysAreWithheldToo checks that a recorded send is denied while a cause withholds it, and is a
// replay again after the quiet hours.
func TestReplaysAreWithheldToo(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{Default: []capping.Limit{rolling("weekly", 5, 7*day)},
		Quiet: []capping.Quiet{{Hours: hours(t, "00:00", "23:59")}}})
	send := &capping.Send{Message: capping.Message{ID: "m"}, Users: []capping.UserID{7}, Record: true}
	require.Equal(t, []capping.Outcome{capping.Allowed}, b.outcomes(send))
	send.Enforce = true
	now := b.clock.Now()
	b.clock.Advance(now.Truncate(day).Add(day + time.Minute).Sub(now))
	d := b.filter(send)
	require.Equal(t, capping.ByQuiet, d.Verdicts[0].By)
	b.clock.Advance(d.Verdicts[0].FreesAt.Time().Sub(b.clock.Now()))
	require.Equal(t, []capping.Outcome{capping.Replayed}, b.outcomes(send))
}

// TestMissingSets checks that every user is Unavailable and the store is not called when the generation
// lacks a set that the send needs.
func TestMissingSets(t *testing.T) {
	t.Parallel()
	const sms = 2
	policy := &capping.Policy{
		Suppress: []capping.Suppression{{Set: "opted-out", EvenExempt: true}, {Set: "bounced"},
			{Set: "sms-stop", Channels: capping.ChannelSetOf(sms)}},
		Quiet: []capping.Quiet{{Hours: hours(t, "21:00", "08:00"), Sets: []string{"country/sg", "country/my"}}},
	}
	require.Equal(t, []string{"bounced", "country/my", "country/sg", "opted-out", "sms-stop"}, policy.Sets())
	people := &population{names: []string{"new"}, segment: func(capping.UserID) uint8 { return 1 },
		sets: map[string]predicate{}}
	require.Equal(t, policy.Sets(), policy.Missing(people))
	for _, name := range policy.Sets() {
		people.sets[name] = nobody
	}
	require.Empty(t, policy.Missing(people))
	c, store := at(night, policy, people)
	for name, c2 := range map[string]struct{ plain, sms, exempt bool }{ // true: the send is decided
		"opted-out": {}, "bounced": {exempt: true}, "sms-stop": {plain: true, exempt: true},
		"country/sg": {exempt: true}, "country/my": {exempt: true},
	} {
		delete(people.sets, name)
		require.Equal(t, []string{name}, policy.Missing(people))
		for i, send := range []*capping.Send{{Enforce: true}, {Enforce: true, Channel: sms}, {}} {
			send.Users, send.Message, send.Record, store.asked = upTo(5), capping.Message{ID: "m"}, true, nil
			d := c.Filter(t.Context(), send)
			if []bool{c2.plain, c2.sms, c2.exempt}[i] {
				require.NoError(t, d.Err)
				require.Len(t, store.asked, 1)
				continue
			}
			require.EqualError(t, d.Err, "generation (published version) g1 of the segments lacks set "+name+
				", which the configuration "+
				"requires")
			require.Equal(t, make([]capping.Verdict, 5), d.Verdicts, "all are unavailable")
			require.Empty(t, store.asked)
			require.Equal(t, "new", d.Segment(4))
			require.Nil(t, d.Limit(0))
			require.Nil(t, d.Zone(0))
			require.Empty(t, d.ShadowLimits(0))
		}
		e, err := c.Explain(t.Context(), 7)
		require.NoError(t, err)
		require.Equal(t, []string{name}, e.Missing)
		require.Equal(t, "new", e.Segment)
		people.sets[name] = nobody
	}
}

// TestHoursThatNeverOpen checks quiet hours that together cover the whole day, while each of them ends.
func TestHoursThatNeverOpen(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const push, email = capping.Channel(1), capping.Channel(2)
	morning, rest := hours(t, "00:00", "13:00"), hours(t, "11:00", "00:00")
	for name, c := range map[string]struct {
		quiet []capping.Quiet
		want  []capping.Channel
	}{
		"none":           {nil, nil},
		"half a day":     {[]capping.Quiet{{Hours: morning}}, nil},
		"all of the day": {[]capping.Quiet{{Hours: morning}, {Hours: rest}}, []capping.Channel{push, email}},
		"of one channel": {[]capping.Quiet{{Hours: morning}, {Hours: rest, Channels: capping.ChannelSetOf(push)}},
			[]capping.Channel{push}},
		"of two channels": {[]capping.Quiet{{Hours: morning, Channels: capping.ChannelSetOf(email)},
			{Hours: rest, Channels: capping.ChannelSetOf(push)}}, nil},
		"a minute is open": {[]capping.Quiet{{Hours: morning}, {Hours: hours(t, "13:01", "00:00")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := &capping.Policy{Channels: map[string]capping.Channel{"push": push, "email": email},
				Quiet: c.quiet}
			capper, _ := at(noon, policy, &population{}, 15*time.Hour)
			e, err := capper.Explain(t.Context(), 7)
			require.NoError(t, err)
			require.Equal(t, c.want, e.NeverOpen)
			d := capper.Filter(t.Context(), &capping.Send{Users: []capping.UserID{7}, Enforce: true, Channel: push})
			require.NoError(t, d.Err)
			if slices.Contains(c.want, push) {
				require.Equal(t, capping.Never, d.Verdicts[0].FreesAt, "as the decision says")
			}
		})
	}
}

// TestSlotsThatAreFreeAtNight checks that a slot which becomes free in quiet hours counts as free at their
// end. A slot that never becomes free does not change.
func TestSlotsThatAreFreeAtNight(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	singapore, err := time.LoadLocation("Asia/Singapore")
	require.NoError(t, err)
	people := &population{places: []*time.Location{singapore},
		zone: func(user capping.UserID) uint16 { return uint16(user % 2) }}
	nine := capping.InstantOf(noon.Add(9 * time.Hour))
	for name, c := range map[string]struct {
		limit          capping.Limit
		quiet          []capping.Quiet
		utc, singapore capping.Instant
	}{
		"free before the night": {rolling("d", 1, day), nil, nine, nine},
		"in the users' nights": {rolling("d", 1, day),
			[]capping.Quiet{{Hours: hours(t, "20:00", "08:00"), UserZone: true}}, nine + 11*3_600_000, nine +
				3*3_600_000},
		"at the opening": {rolling("d", 1, day), []capping.Quiet{{Hours: hours(t, "13:00", "21:00")}}, nine,
			nine},
		"at the beginning": {rolling("d", 1, day), []capping.Quiet{{Hours: hours(t, "21:00", "21:01")}}, nine +
			60_000, nine + 60_000},
		"never": {rolling("d", 0, day), []capping.Quiet{{Hours: hours(t, "21:00", "21:01")}},
			capping.Never, capping.Never},
		"nights that meet": {rolling("d", 1, day), []capping.Quiet{{Hours: hours(t, "13:00", "01:00")},
			{Hours: hours(t, "00:30", "11:59")}}, nine + 15*3_600_000 - 60_000, nine + 15*3_600_000 - 60_000},
		"hours of other channels": {rolling("d", 1, day),
			[]capping.Quiet{{Hours: hours(t, "13:00", "01:00"), Channels: capping.ChannelSetOf(3)}}, nine, nine},
	} {
		capper, _ := at(noon, &capping.Policy{Default: []capping.Limit{c.limit}, Quiet: c.quiet}, people, 15*time.Hour)
		d := capper.Filter(t.Context(), &capping.Send{Users: []capping.UserID{2, 3}, Enforce: true})
		require.NoError(t, d.Err)
		require.Equal(t, []capping.Instant{c.utc, c.singapore}, []capping.Instant{d.Verdicts[0].FreesAt,
			d.Verdicts[1].FreesAt}, name)
		require.Equal(t, capping.ByLimit, d.Verdicts[0].By)
	}
}

func TestQuietWithoutAnOpening(t *testing.T) {
	t.Parallel()
	c, _ := at(night, &capping.Policy{Quiet: []capping.Quiet{{Hours: hours(t, "20:00", "08:00")},
		{Hours: hours(t, "08:00", "20:00")}}}, &population{})
	d := c.Filter(t.Context(), &capping.Send{Users: upTo(1), Enforce: true})
	require.Equal(t, capping.Verdict{Outcome: capping.Denied, By: capping.ByQuiet, FreesAt: capping.Never},
		d.Verdicts[0])
}

// zonesOf returns n time zones of the world, including those with unusual clock changes.
func zonesOf(t testing.TB, n int) (places []*time.Location) {
	for _, name := range append(knownZones(), fixedZones(n)...)[:n] {
		place, err := time.LoadLocation(name)
		if err != nil {
			place = time.FixedZone(name, len(places)%(24*4)*900-12*3600)
		}
		places = append(places, place)
	}
	return places
}

func knownZones() []string {
	return []string{
		"Asia/Singapore", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Australia/Sydney",
		"Pacific/Apia", "Asia/Beirut", "America/Havana",
		"Antarctica/Troll", "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "Pacific/Kiritimati",
		"Pacific/Chatham", "America/St_Johns", "Asia/Tokyo",
		"Asia/Dubai", "Asia/Tehran", "Asia/Yangon", "America/Los_Angeles", "America/Denver", "America/Chicago",
		"America/Halifax", "America/Sao_Paulo",
		"Atlantic/Azores", "Europe/London", "Europe/Athens", "Europe/Moscow", "Asia/Karachi", "Asia/Dhaka",
		"Asia/Jakarta", "Asia/Manila",
		"Australia/Adelaide", "Pacific/Auckland", "Pacific/Honolulu", "America/Anchorage", "Pacific/Marquesas",
		"Asia/Kuala_Lumpur",
	}
}

func fixedZones(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("fixed-", i))
	}
	return names
}

// manyRules returns a policy in which each segment has its own limits by the users' days, weeks and months.
// The default has no limits, and segment s0 has a limit for each calendar.
func manyRules(segments int) *capping.Policy {
	policy := &capping.Policy{Segments: map[string][]capping.Limit{}, Zone: time.FixedZone("elsewhere", 3*3600+600)}
	for s := range segments {
		units := capping.Calendars()
		policy.Segments[fmt.Sprint("s", s)] = []capping.Limit{
			{Name: fmt.Sprint("calendar", s), Max: 1 + s%3, Calendar: units[s%len(units)], UserZone: true},
			{Name: fmt.Sprint("rolling", s), Max: 2 + s%2, Window: time.Duration(s+1) * 7 * time.Hour},
			{Name: fmt.Sprint("shadow", s), Max: 1, Calendar: units[(s+1)%len(units)], UserZone: true, Shadow: true},
		}
	}
	for _, unit := range capping.Calendars() {
		policy.Segments["s0"] = append(policy.Segments["s0"],
			capping.Limit{Name: "each-" + string(unit), Max: 3, Calendar: unit, UserZone: true})
	}
	policy.Default = []capping.Limit{rolling("plain", 3, 9*time.Hour)}
	return policy
}

// TestEachUserHasTheRulesOfTheirSegmentAndZone checks that each user is decided as in a call for that user alone.
// One case has 38 zones with 8 segments. Another case has so many rules that a call needs several batches.
func TestEachUserHasTheRulesOfTheirSegmentAndZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zones, segments, parts int }{{38, 8, 1}, {400, 10, 2}} {
		people := &population{places: zonesOf(t, c.zones)}
		for s := range c.segments {
			people.names = append(people.names, fmt.Sprint("s", s))
		}
		people.zone = func(user capping.UserID) uint16 { return uint16(int(user) % (c.zones + 1)) }
		people.segment = func(user capping.UserID) uint8 { return uint8(int(user) / (c.zones + 1) % (c.segments + 1)) }
		policy := manyRules(c.segments)
		now := time.Date(2026, 11, 1, 5, 17, 0, 0, time.UTC) // clocks of New York and Havana change, and months end
		capper, store := at(now, policy, people, 30*day, 5*day, 26*time.Hour, 13*time.Hour, 6*time.Hour, 3*time.Hour)
		users := upTo(3 * (c.zones + 1) * (c.segments + 1))
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(users), func(i, k int) { users[i], users[k] = users[k], users[i] })
		d := capper.Filter(t.Context(), &capping.Send{Users: users, Enforce: true})
		require.NoError(t, d.Err)
		require.GreaterOrEqual(t, len(store.asked), c.parts)
		for i, user := range users {
			place := policy.Zone
			if zone := people.zone(user); zone > 0 {
				place = people.places[zone-1]
			}
			requireDecidedAlone(t, d, i, policy, place, store)
		}
	}
}

// requireDecidedAlone checks that user i's decision equals one with limits in the user's own zone.
func requireDecidedAlone(t *testing.T, d *capping.Decisions, i int, policy *capping.Policy, place *time.Location,
	store *logs) {
	t.Helper()
	var rules []capping.Rule
	limits := slices.Clone(policy.Limits(d.Segment(i)))
	for k := range limits {
		limits[k].UserZone, limits[k].Location = false, place
		rules = append(rules, limits[k].Rule(store.now, 0))
	}
	want := capping.Judge(store.log, 0, capping.Token{}, rules, store.now, 0)
	require.Equal(t, want, d.Verdicts[i], "user %d in %s, %v", d.Users[i], d.Segment(i), place)
	if want.Outcome == capping.Denied {
		require.Equal(t, limits[want.Rule].Name, d.Limit(i).Name)
		if d.Limit(i).UserZone {
			require.Same(t, place, d.Zone(i))
		} else {
			require.Nil(t, d.Zone(i))
		}
	}
}

// TestPartsAreIndependent checks that a part which the store does not decide leaves the other parts decided.
func TestPartsAreIndependent(t *testing.T) {
	t.Parallel()
	people := &population{places: zonesOf(t, 400), zone: func(user capping.UserID) uint16 { return uint16(user % 401) }}
	for s := range 10 {
		people.names = append(people.names, fmt.Sprint("s", s))
	}
	people.segment = func(user capping.UserID) uint8 { return uint8(user / 401 % 11) }
	capper, store := at(night, manyRules(10), people)
	down := errors.New("half of the store is away")
	store.fault = func(b *capping.Batch) error {
		if len(b.Rules) < 256 {
			return down
		}
		return nil
	}
	d := capper.Filter(t.Context(), &capping.Send{Users: upTo(10_000), Enforce: true})
	require.ErrorIs(t, d.Err, down)
	outcomes := map[capping.Outcome]int{}
	for _, v := range d.Verdicts {
		outcomes[v.Outcome]++
	}
	require.NotZero(t, outcomes[capping.Allowed])
	require.NotZero(t, outcomes[capping.Unavailable])
	require.Len(t, outcomes, 2)
}

// TestZonesAreAskedForWhereTheyMatter checks that time zones are looked up only when a decision depends on
// them.
func TestZonesAreAskedForWhereTheyMatter(t *testing.T) {
	t.Parallel()
	const push, sms = 1, 2
	people := &population{lookedUp: new(int)}
	c, _ := at(night, &capping.Policy{
		Default: []capping.Limit{{Name: "day", Max: 1, Calendar: capping.CalendarDay, UserZone: true,
			Channels: capping.ChannelSetOf(push)}, rolling("r", 1, day)},
		Quiet: []capping.Quiet{{Hours: hours(t, "21:00", "08:00"), UserZone: true, Channels: capping.ChannelSetOf(sms)},
			{Hours: hours(t, "01:00", "02:00")}},
	}, people)
	for _, want := range []struct {
		send  capping.Send
		asked int
	}{{capping.Send{Enforce: true}, 0}, {capping.Send{Channel: push, Enforce: true}, 1},
		{capping.Send{Channel: sms, Enforce: true}, 1}, {capping.Send{Channel: push}, 0}} {
		*people.lookedUp = 0
		want.send.Users = upTo(2)
		require.NoError(t, c.Filter(t.Context(), &want.send).Err)
		require.Equal(t, want.asked, *people.lookedUp)
	}
}

func TestExplainWhatWithholds(t *testing.T) {
	t.Parallel()
	singapore, err := time.LoadLocation("Asia/Singapore")
	require.NoError(t, err)
	policy := &capping.Policy{
		Suppress: []capping.Suppression{{Set: "a"}, {Set: "b", Channels: capping.ChannelSetOf(1)}, {Set: "c"}},
		Holdout:  holdout(t, 100), Zone: singapore,
		Quiet: []capping.Quiet{
			{Hours: hours(t, "06:00", "07:00"), UserZone: true}, {Hours: hours(t, "21:00", "08:00")},
			{Hours: hours(t, "21:00", "08:00"), Sets: []string{"a", "c"}}, {Hours: hours(t, "21:00", "08:00"),
				Sets: []string{"c"}}, {Hours: hours(t, "01:00", "02:00")},
		},
	}
	people := &population{sets: map[string]predicate{"a": everyone, "b": everyone, "c": nobody}}
	c, _ := at(night, policy, people)
	e, err := c.Explain(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, singapore, e.Zone)
	require.True(t, e.HeldOut)
	require.Equal(t, []*capping.Suppression{&policy.Suppress[0], &policy.Suppress[1]}, e.Suppressed)
	eight := capping.InstantOf(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
	require.Equal(t, []capping.QuietStanding{
		{Quiet: &policy.Quiet[0], Location: singapore, On: true, Until: capping.InstantOf(night.Add(30 * time.Minute))},
		{Quiet: &policy.Quiet[1], Location: time.UTC, On: true, Until: eight},
		{Quiet: &policy.Quiet[2], Location: time.UTC, On: true, Until: eight},
		{Quiet: &policy.Quiet[4], Location: time.UTC},
	}, e.Quiet)
}
