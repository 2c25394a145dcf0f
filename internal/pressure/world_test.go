package pressure

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// generation is who is in what, in the plainest way.
type generation struct {
	users    []capping.UserID // by number, where ids are not dense; some users have no number
	names    []string
	segments map[capping.UserID]int // 1 + index into names
	places   []*time.Location
	zones    map[capping.UserID]int // 1 + index into places
}

func (g *generation) Generation() string             { return "g" }
func (g *generation) Names() []string                { return slices.Clone(g.names) }
func (g *generation) Zones() []*time.Location        { return g.places }
func (g *generation) segmentOf(u capping.UserID) int { return g.segments[u] }
func (g *generation) zoneOf(u capping.UserID) int    { return g.zones[u] }
func (g *generation) dense() bool                    { return g.users == nil }
func (g *generation) Lookup(n []uint32, codes []uint8) {
	g.look(n, func(i, s, _ int) { codes[i] = uint8(s) })
}
func (g *generation) LookupZones(n []uint32, z []uint16) {
	g.look(n, func(i, _, zone int) { z[i] = uint16(zone) })
}

func (g *generation) look(numbers []uint32, yield func(i, segment, zone int)) {
	for i, number := range numbers {
		user := capping.UserID(number)
		if !g.dense() {
			if user = 0; int64(number) < int64(len(g.users)) {
				user = g.users[number]
			}
		}
		yield(i, g.segmentOf(user), g.zoneOf(user))
	}
}

func (g *generation) Numbers(users []capping.UserID, numbers []uint32) {
	for i, user := range users {
		numbers[i] = uint32(user)
		if !g.dense() {
			at := slices.Index(g.users, user)
			if numbers[i] = uint32(at); at < 0 {
				numbers[i] = math.MaxUint32
			}
		}
	}
}

// pairKey is what a user and a message on a channel have in common.
type pairKey struct {
	user    capping.UserID
	message capping.Message
	channel capping.Channel
}

// world draws calls, and keeps in the plainest way what they mean.
type world struct {
	*rand.Rand
	t          testing.TB
	long       bool // logs forget nothing, and results may be unknown
	images     bool
	plain      bool // no result is unknown, the policy stays, and denials are not kept for the model
	users      []capping.UserID
	messages   []capping.Message
	generation *generation
	policies   map[string]*capping.Policy
	policy     *capping.Policy
	now        capping.Instant
	records    []*audit.Record
	sends      map[pairKey][]capping.Instant // those that were not taken back
	taken      map[pairKey][]capping.Instant // those that were
	unknown    map[pairKey]bool
	doubt      map[pairKey]bool
	denials    []denial
}

// denial is a group that a limit denied, with the sends that were known then.
type denial struct {
	at      capping.Instant
	message capping.Message
	channel capping.Channel
	users   []capping.UserID
	limit   string
	config  string
	sends   map[pairKey][]capping.Instant
}

const day = 24 * time.Hour

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 5)), t: t, long: seed%2 == 0, images: seed%3 == 0,
		policies: map[string]*capping.Policy{}, sends: map[pairKey][]capping.Instant{},
		taken: map[pairKey][]capping.Instant{}, unknown: map[pairKey]bool{}, doubt: map[pairKey]bool{},
		now: capping.InstantOf(time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC))}
	for _, base := range []capping.UserID{0, 65_530, 4_294_967_280} {
		for i := range capping.UserID(12) {
			if user := base + i; !w.images {
				w.users = append(w.users, user)
			} else {
				w.users = append(w.users, capping.UserID(w.Uint64()|1<<40))
			}
		}
	}
	for i := range 5 {
		w.messages = append(w.messages, capping.Message{ID: fmt.Sprint("promo-", i)},
			capping.Message{Namespace: "growth", ID: fmt.Sprint("promo-", i)})
	}
	w.generation = &generation{names: []string{"new", "vip", "nobody"}, segments: map[capping.UserID]int{},
		zones: map[capping.UserID]int{}}
	for _, name := range []string{"Asia/Singapore", "America/New_York"} {
		place, err := time.LoadLocation(name)
		require.NoError(t, err)
		w.generation.places = append(w.generation.places, place)
	}
	for _, user := range w.users {
		w.generation.segments[user], w.generation.zones[user] = w.IntN(3), w.IntN(3)
		if w.images {
			if w.IntN(4) > 0 {
				w.generation.users = append(w.generation.users, user)
			} else {
				w.generation.segments[user], w.generation.zones[user] = 0, 0
			}
		}
	}
	if w.images && w.generation.users == nil {
		w.generation.users = []capping.UserID{}
	}
	w.change()
	return w
}

func (w *world) pick(n ...int) int { return n[w.IntN(len(n))] }

// change draws another policy. All have the same retention.
func (w *world) change() {
	channels := func() capping.ChannelSet {
		return [...]capping.ChannelSet{{}, {}, capping.ChannelSetOf(1), capping.ChannelSetOf(1, 2)}[w.IntN(4)]
	}
	limits := func() (list []capping.Limit) {
		list = append(list, capping.Limit{Name: "weekly", Max: w.pick(1, 2, 3), Window: 7 * day, Channels: channels()})
		if w.IntN(2) == 0 {
			list = append(list, capping.Limit{Name: "daily", Max: w.pick(0, 1, 2), Calendar: capping.CalendarDay,
				UserZone: w.IntN(2) == 0, Channels: channels(), Shadow: w.IntN(4) == 0})
		}
		if w.IntN(2) == 0 {
			list = append(list, capping.Limit{Name: "gap", Max: 1, Window: time.Hour})
		}
		return list
	}
	w.policy = &capping.Policy{Version: fmt.Sprint("p", len(w.policies)), Default: limits(),
		Channels: map[string]capping.Channel{"push": 1, "email": 2},
		Segments: map[string][]capping.Limit{"new": limits(), "vip": limits()}}
	if w.long {
		w.policy.Segments["nobody"] = []capping.Limit{{Name: "year", Max: 1, Window: 366 * day}}
	}
	w.policies[w.policy.Version] = w.policy
}

func (w *world) some() []capping.UserID {
	users := slices.Clone(w.users)
	w.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	users = users[:1+w.IntN(len(users))]
	slices.Sort(users)
	return users
}

func (w *world) group(g audit.Group, users []capping.UserID) audit.Group {
	if w.images {
		g.Images = slices.Clone(users)
	} else {
		g.Users = bitmap.OfSorted(capping.AppendDense(nil, users))
	}
	return g
}

func (w *world) run() {
	for range 60 + w.IntN(80) {
		steps := []time.Duration{0, time.Millisecond, time.Minute, time.Hour, 7 * time.Hour, day, 2 * day}
		w.now += capping.Instant(steps[w.IntN(len(steps))].Milliseconds())
		switch w.IntN(9) {
		case 0:
			w.release()
		case 1:
			if w.IntN(3) == 0 && !w.plain {
				w.change()
			}
		default:
			w.filter()
		}
	}
}

// holds reports whether a log still has a send to the user.
func (w *world) holds(key pairKey) bool {
	for _, at := range w.sends[key] {
		if w.long || at > w.now-capping.Instant((7*day).Milliseconds()) {
			return true
		}
	}
	return false
}

// filter draws a call, and the result for each user that its log allows.
func (w *world) filter() {
	m, channel := w.messages[w.IntN(len(w.messages))], capping.Channel(w.IntN(3))
	r := &audit.Record{Kind: audit.Filter, Instance: "00000000000000aa", At: w.now, Message: m, Channel: channel,
		Config: w.policy.Version, Generation: "g", Sequence: uint64(len(w.records) + 1)}
	groups := map[int][]capping.UserID{}
	names := []string{"", "weekly", "daily", "gap"}
	for _, user := range w.some() {
		key := pairKey{user, m, channel}
		what := w.pick(0, 0, 0, 1, 2, 3, 4)
		switch {
		case w.long && !w.plain && w.IntN(6) == 0:
			what = 5
			if !w.holds(key) {
				w.unknown[key] = true
			}
		case w.holds(key), w.unknown[key] && w.IntN(2) == 0:
			what = 6
			if w.unknown[key] {
				w.send(key)
			}
		case what == 0:
			w.send(key)
		}
		groups[what] = append(groups[what], user)
	}
	for what, users := range groups {
		g := audit.Group{Outcome: audit.Denied}
		switch what {
		case 0:
			g.Outcome = audit.Allowed
		case 4:
			g.By, g.Limit, g.Set = capping.BySuppression, "suppressed", "opted-out"
		case 5:
			g.Outcome = audit.Unavailable
		case 6:
			g.Outcome = audit.Replayed
		default:
			g.Limit = names[what]
		}
		r.Groups = append(r.Groups, w.group(g, users))
	}
	for what := 1; what <= 3; what++ {
		if users := groups[what]; len(users) > 0 && !w.plain {
			w.denials = append(w.denials, denial{w.now, m, channel, users, names[what], w.policy.Version, w.copied()})
		}
	}
	// Groups of one call stand in any order; only who is denied must not see the sends of the same call.
	slices.SortFunc(r.Groups, func(a, b audit.Group) int {
		return int(a.Outcome) - int(b.Outcome)
	})
	w.records = append(w.records, r)
}

func (w *world) copied() map[pairKey][]capping.Instant {
	c := make(map[pairKey][]capping.Instant, len(w.sends))
	for key, at := range w.sends {
		c[key] = slices.Clone(at)
	}
	return c
}

func (w *world) send(key pairKey) {
	w.sends[key] = append(w.sends[key], w.now)
	delete(w.unknown, key)
	delete(w.doubt, key)
}

// release draws a release on one channel or on all.
func (w *world) release() {
	m, channel := w.messages[w.IntN(len(w.messages))], capping.Channel(w.IntN(3))
	r := &audit.Record{Kind: audit.Release, Instance: "00000000000000aa", At: w.now, Message: m, Channel: channel,
		Config: w.policy.Version, Generation: "g", Sequence: uint64(len(w.records) + 1)}
	groups := map[audit.Outcome][]capping.UserID{}
	for _, user := range w.some() {
		outcome := audit.Absent
		var keys []pairKey
		for on := range capping.Channel(3) {
			if key := (pairKey{user, m, on}); channel == 0 || channel == on {
				keys = append(keys, key)
				if w.holds(key) {
					outcome = audit.Released
				}
			}
		}
		switch {
		case w.long && !w.plain && w.IntN(4) == 0:
			outcome = audit.ReleaseUnavailable
		case w.long && slices.ContainsFunc(keys, func(k pairKey) bool { return w.doubt[k] }) && w.IntN(2) == 0:
			outcome = audit.Absent
		}
		for _, key := range keys {
			w.released(key, outcome)
		}
		groups[outcome] = append(groups[outcome], user)
	}
	for outcome, users := range groups {
		r.Groups = append(r.Groups, w.group(audit.Group{Outcome: outcome}, users))
	}
	w.records = append(w.records, r)
}

// released applies the outcome of a release to what the records show.
func (w *world) released(key pairKey, outcome audit.Outcome) {
	if outcome == audit.ReleaseUnavailable {
		if w.asked(key) {
			w.doubt[key] = true
		}
		return
	}
	if n := len(w.sends[key]); (outcome == audit.Released || w.doubt[key]) && w.holds(key) {
		w.taken[key] = append(w.taken[key], w.sends[key][n-1])
		w.sends[key] = w.sends[key][:n-1]
	}
	delete(w.doubt, key)
	delete(w.unknown, key)
}

// asked reports whether a call for the message on the channel came before.
func (w *world) asked(key pairKey) bool {
	return slices.ContainsFunc(w.records, func(r *audit.Record) bool {
		return r.Kind == audit.Filter && r.Message == key.message && r.Channel == key.channel
	})
}

func (w *world) read(from capping.Instant) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		for _, r := range w.records {
			if r.At >= from && !yield(r, nil) {
				return
			}
		}
	}
}
