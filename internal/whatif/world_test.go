package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/quiet"
	"capper/internal/share"
	"capper/internal/testkit"
)

const day = 24 * time.Hour

// zoneNames are of zones whose days begin at different times.
func zoneNames() []string {
	return []string{"Asia/Singapore", "America/New_York", "Europe/Berlin", "Pacific/Kiritimati", "Australia/Lord_Howe"}
}

func zone(t testing.TB, name string) *time.Location {
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

// members is the users of a segment or a set.
type members map[capping.UserID]bool

// Mark marks the users of the set.
func (m members) Mark(users []capping.UserID, _ []uint32, marks []uint8, mark uint8) {
	for i, user := range users {
		if marks[i] == 0 && m[user] {
			marks[i] = mark
		}
	}
}

// generation is who is in what, in the plainest way.
type generation struct {
	users    []capping.UserID // by number, where ids are not dense; some users have no number
	name     string
	names    []string
	segments []members
	sets     map[string]members
	places   []*time.Location
}

func (g *generation) Generation() string { return g.name }

func (g *generation) Names() []string { return slices.Clone(g.names) }

func (g *generation) Zones() []*time.Location { return g.places }

func (g *generation) Set(name string) (capping.Set, bool) {
	set, ok := g.sets[name]
	return set, ok
}

func (g *generation) Numbers(users []capping.UserID, numbers []uint32) {
	for i, user := range users {
		numbers[i] = uint32(user)
		if g.users != nil {
			numbers[i] = uint32(slices.Index(g.users, user)) // the number of an unknown user is in no bitmap
		}
	}
}

// userOf is the user with a number; one that is in nothing for unknown users.
func (g *generation) userOf(number uint32) capping.UserID {
	if g.users == nil {
		return capping.UserID(number)
	}
	if number == math.MaxUint32 {
		return 0
	}
	return g.users[number]
}

func (g *generation) Lookup(numbers []uint32, codes []uint8) {
	for i, number := range numbers {
		user := g.userOf(number)
		codes[i] = uint8(1 + slices.IndexFunc(g.segments, func(m members) bool { return m[user] }))
	}
}

func (g *generation) LookupZones(numbers []uint32, zones []uint16) {
	for i, number := range numbers {
		user := g.userOf(number)
		zones[i] = uint16(1 +
			slices.IndexFunc(g.places, func(at *time.Location) bool { return g.sets["tz/"+at.String()][user] }))
	}
}

func (g *generation) segmentOf(user capping.UserID) string {
	if at := slices.IndexFunc(g.segments, func(m members) bool { return m[user] }); at >= 0 {
		return g.names[at]
	}
	return defaultName
}

// draw is a source of random things for a history.
type draw struct {
	*rand.Rand
	t testing.TB
	// long: all policies remember for longer than a history lasts. Otherwise nothing is released: whether a
	// send that is past retention is still there to be given back, no store promises.
	long bool
	// calls: calls change the set opted-out, which every policy in force suppresses first and everywhere.
	calls bool
}

func (d draw) one(of int) bool { return d.IntN(of) == 0 }

func pick[T any](d draw, from ...T) T { return from[d.IntN(len(from))] }

func (d draw) members(users []capping.UserID) members {
	m := members{}
	share := d.Float64()
	for _, user := range users {
		if d.Float64() < share {
			m[user] = true
		}
	}
	return m
}

func (d draw) generation(name string, users []capping.UserID) *generation {
	g := &generation{name: name, names: []string{"new", "vip"}, sets: map[string]members{}}
	if slices.Max(users) > capping.MaxDense {
		users = slices.Clone(users)
		d.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
		users = users[:2+d.IntN(len(users)-2)] // the others are in no file
		slices.Sort(users)
		g.users = users
	}
	if d.one(3) {
		g.names = []string{"vip", "lapsed", "new"}
	}
	for range g.names {
		g.segments = append(g.segments, d.members(users))
	}
	for _, set := range []string{"opted-out", "bounced"} {
		if !d.one(12) { // else the sends that need it are unavailable
			g.sets[set] = d.members(users)
		}
	}
	for _, name := range zoneNames()[:d.IntN(len(zoneNames()))] {
		g.sets["tz/"+name] = d.members(users)
		g.places = append(g.places, zone(d.t, name))
	}
	return g
}

func (d draw) channels() capping.ChannelSet {
	return capping.ChannelSetOf(pick(d, nil, nil, nil, []capping.Channel{1}, []capping.Channel{2},
		[]capping.Channel{1, 2})...)
}

func (d draw) policy(version string) *capping.Policy {
	p := &capping.Policy{
		Version: version, Channels: map[string]capping.Channel{"push": 1, "email": 2, "sms": 3},
		Segments: map[string][]capping.Limit{}, Zone: zone(d.t, pick(d, zoneNames()...)), Default: d.limits("d"),
	}
	for _, segment := range []string{"new", "vip", "lapsed"} {
		if !d.one(3) {
			p.Segments[segment] = d.limits(segment)
		}
	}
	if d.long {
		p.Segments["nobody"] = []capping.Limit{{Name: "year", Max: 1, Window: 366 * day}}
	}
	for _, set := range []string{"opted-out", "bounced"} {
		if d.one(4) {
			p.Suppress = append(p.Suppress, capping.Suppression{Set: set, Channels: d.channels(), EvenExempt: d.one(2)})
		}
	}
	if d.calls {
		p.Suppress = d.suppressing(version, p.Suppress)
	}
	if d.one(5) {
		held, err := share.New(share.Holdout, pick(d, 5.0, 20, 50), pick(d, "a", "b"))
		require.NoError(d.t, err)
		p.Holdout = &capping.Holdout{Share: held, Channels: d.channels()}
	}
	for range d.IntN(6) / 4 {
		p.Quiet = append(p.Quiet, d.quiet())
	}
	return p
}

// suppressing is the suppressions of a policy where calls change the set opted-out. Policies in force suppress the set
// first and everywhere, so that the record shows who was in it. The other policy suppresses it anywhere or nowhere.
func (d draw) suppressing(version string, drawn []capping.Suppression) []capping.Suppression {
	set := capping.Suppression{Set: "opted-out", EvenExempt: true}
	list := slices.DeleteFunc(drawn, func(s capping.Suppression) bool { return s.Set == set.Set })
	switch inForce := strings.HasPrefix(version, "p"); {
	case inForce:
		return slices.Insert(list, 0, set)
	case d.one(3):
		return list
	}
	set.Channels, set.EvenExempt = d.channels(), d.one(2)
	return slices.Insert(list, pick(d, 0, len(list)), set)
}

func (d draw) quiet() capping.Quiet {
	from := d.IntN(1440)
	q := capping.Quiet{
		Hours:    quiet.Hours{From: quiet.Minute(from), To: quiet.Minute((from + pick(d, 60, 480, 720)) % 1440)},
		Channels: d.channels(), UserZone: d.one(2), Sets: pick(d, nil, nil, []string{"bounced"}),
	}
	if !q.UserZone {
		q.Location = zone(d.t, pick(d, zoneNames()...))
	}
	return q
}

func (d draw) limits(of string) (limits []capping.Limit) {
	calendars := capping.Calendars()
	for i := range d.IntN(4) {
		l := capping.Limit{Name: fmt.Sprint(of, "-", i), Max: pick(d, 0, 1, 1, 2, 2, 3, 4), Channels: d.channels(),
			Shadow: d.one(4)}
		if l.Calendar = pick(d, append(make([]capping.Calendar, 2), calendars[:]...)...); l.Calendar == "" {
			l.Window = pick(d, time.Second, time.Hour, day, 7*day)
		} else if l.UserZone = d.one(2); !l.UserZone {
			l.Location = zone(d.t, pick(d, zoneNames()...))
		}
		limits = append(limits, l)
	}
	return limits
}

// changed is a policy that differs from p in one thing, or in all.
func (d draw) changed(p *capping.Policy, version string) *capping.Policy {
	drawn := d.policy(version)
	if d.one(3) {
		return drawn
	}
	other := *p
	other.Version = version
	switch d.IntN(5) {
	case 0:
		other.Default = drawn.Default
	case 1:
		other.Suppress = drawn.Suppress
	case 2:
		other.Holdout, other.Quiet = drawn.Holdout, drawn.Quiet
	default:
		other.Segments = map[string][]capping.Limit{}
		for segment, limits := range p.Segments {
			other.Segments[segment] = limits
		}
		other.Segments[pick(d, "new", "vip")] = d.limits("vip")
	}
	return &other
}

// service is the domain over a real store.
type service struct {
	capper   *capping.Capper
	store    capping.Store
	segments *generation
}

func newService(t testing.TB, clock *testkit.Clock, policy *capping.Policy, ids pebblestore.IDs) *service {
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: "/store", Clock: clock.Now,
		ClockBound: math.MaxInt64, CacheBytes: 1 << 20, IDs: ids}.InMemory())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := &service{store: store}
	s.capper = capping.New(store, func() capping.Segments { return s.segments }, policy, clock.Now)
	return s
}

// recordOf is the audit's record of what was decided.
func recordOf(send *capping.Send, at capping.Instant, d *capping.Decisions) *audit.Record {
	r := &audit.Record{
		Kind: audit.Filter, Instance: "00000000000000aa", At: at, Message: send.Message, Channel: send.Channel,
		Generation: d.Generation, Config: d.Policy.Version, Exempt: !send.Enforce,
	}
	type key struct {
		outcome    audit.Outcome
		by         capping.Reason
		limit, set string
	}
	groups, order := map[key][]capping.UserID{}, []key{}
	segments := make([]audit.SegmentCount, len(d.Names)+1)
	shadow := map[string]int{}
	for i, user := range d.Users {
		v := &d.Verdicts[i]
		k := key{by: v.By, set: d.Set(i)}
		s := &segments[(int(d.Codes[i])+len(d.Names))%(len(d.Names)+1)]
		s.Name = strings.TrimPrefix(d.Segment(i), defaultName)
		s.Requested++
		switch v.Outcome {
		case capping.Allowed, capping.Replayed:
			k.outcome = audit.Allowed + audit.Outcome(v.Outcome-capping.Allowed)
			s.Allowed++
		case capping.Denied:
			k.outcome, k.limit = audit.Denied, d.DeniedBy(i)
			s.Denied++
		default:
			k.outcome = audit.Unavailable
			s.Unavailable++
		}
		for bit, limit := range d.ShadowLimits(i) {
			shadow[limit.Name] += int(v.Shadow >> bit & 1)
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], user)
	}
	for _, k := range order {
		r.Groups = append(r.Groups, group{Outcome: k.outcome, By: k.by, Limit: k.limit, Set: k.set}.of(groups[k]))
	}
	for _, s := range segments {
		if s.Requested > 0 {
			r.Segments = append(r.Segments, s)
		}
	}
	for name, n := range shadow {
		if n > 0 {
			r.Shadow = append(r.Shadow, audit.Count{Name: name, Users: n})
		}
	}
	return r
}

// recordOfRelease is the audit's record of a release.
func recordOfRelease(message capping.Message, channel capping.Channel, at capping.Instant, s *service,
	users []capping.UserID, released []capping.Released) *audit.Record {
	r := &audit.Record{
		Kind: audit.Release, Instance: "00000000000000aa", At: at, Message: message, Channel: channel,
		Generation: s.segments.name, Config: s.capper.Policy().Version,
	}
	for result, outcome := range map[capping.Released]audit.Outcome{capping.ReleaseDone: audit.Released,
		capping.ReleaseAbsent: audit.Absent} {
		var those []capping.UserID
		for i, user := range users {
			if released[i] == result {
				those = append(those, user)
			}
		}
		if len(those) > 0 {
			r.Groups = append(r.Groups, group{Outcome: outcome}.of(those))
		}
	}
	return r
}

// group is a group without its users.
type group audit.Group

// of is the group with the users. A history has either dense ids or larger ones.
func (g group) of(users []capping.UserID) audit.Group {
	users = slices.Clone(users)
	slices.Sort(users)
	if len(users) > 0 && users[0] > capping.MaxDense {
		g.Images = users
	} else {
		g.Users = bitmap.OfSorted(capping.AppendDense(nil, users))
	}
	return audit.Group(g)
}
