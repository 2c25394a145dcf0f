package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// oracle keeps the latest change of each user in a plain map.
type oracle map[string]map[capping.UserID]Change

func (o oracle) apply(r *Record) {
	if o[r.Set] == nil {
		o[r.Set] = map[capping.UserID]Change{}
	}
	for _, run := range r.Runs {
		for kind, users := range run.Users {
			for _, user := range users {
				next := Change{User: user, Kind: Kind(kind), At: run.At, By: r.By}
				known, ok := o[r.Set][user]
				if !ok || next.At > known.At || next.At == known.At && next.Kind > known.Kind {
					o[r.Set][user] = next
				}
			}
		}
	}
}

func (o oracle) drop(set string, upTo capping.Instant) {
	for user, change := range o[set] {
		if change.At <= upTo {
			delete(o[set], user)
		}
	}
}

// held counts the users with a live change.
func held(changes map[capping.UserID]Change) (n int) {
	for _, change := range changes {
		if change.Kind != Forgotten {
			n++
		}
	}
	return n
}

func (o oracle) member(set string, base map[capping.UserID]bool, asOf capping.Instant, user capping.UserID) bool {
	switch change := o[set][user]; {
	case change.Kind == Added && change.At > asOf-Margin:
		return true
	case change.Kind == Removed && change.At > asOf:
		return false
	}
	return base[user]
}

// people draws users around a few places, where each place has 400 users.
type people []capping.UserID

var (
	dense  = people{0, 70_000, 4_294_900_000}
	images = people{70_000, 1<<32 - 200, 1<<48 - 200, 1<<64 - 400}
)

// some returns ascending users.
func (p people) some(r *rand.Rand, most int) []capping.UserID {
	users := make([]capping.UserID, 0, most)
	for range r.IntN(most) + 1 {
		users = append(users, p[r.IntN(len(p))]+capping.UserID(r.IntN(400)))
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// all returns every user that some draws.
func (p people) all() (users []capping.UserID) {
	for _, first := range p {
		for i := range capping.UserID(400) {
			users = append(users, first+i)
		}
	}
	return users
}

// forAll runs a test with dense users, and with images.
func forAll(t *testing.T, seeds uint64, test func(t *testing.T, p people, seed uint64)) {
	for name, p := range map[string]people{"dense": dense, "images": images} {
		for seed := range seeds {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) { test(t, p, seed) })
		}
	}
}

// lists returns Lists for the users.
func (p people) lists(partitions int) *Lists {
	if len(p) == len(dense) {
		return New(partitions)
	}
	return NewOfImages(partitions)
}

// unknown is the number of an image that no dictionary has.
const unknown = 1<<32 - 1

// generation is a base with its numbers: in a generation of images half of the users have one.
type generation struct {
	members map[capping.UserID]bool
	base    *bitmap.Bitmap
	numbers map[capping.UserID]uint32
}

func (p people) generation(r *rand.Rand) *generation {
	g := &generation{members: map[capping.UserID]bool{}, numbers: map[capping.UserID]uint32{}}
	var numbers []uint32
	for _, user := range p.some(r, 500) {
		g.members[user] = true
	}
	for _, user := range p.all() {
		switch {
		case len(p) == len(dense):
			g.numbers[user] = capping.Dense(user)
		case g.members[user] || r.IntN(2) == 0:
			g.numbers[user] = uint32(len(g.numbers))
		}
		if g.members[user] {
			numbers = append(numbers, g.numbers[user])
		}
	}
	g.base = bitmap.Of(numbers...)
	return g
}

func (g *generation) number(user capping.UserID) uint32 {
	if n, ok := g.numbers[user]; ok {
		return n
	}
	return unknown
}

func (p people) record(r *rand.Rand) *Record {
	record := &Record{Set: []string{"opted-out", "sms-stop"}[r.IntN(2)], By: []string{"", "crm", "mail"}[r.IntN(3)]}
	for i := range r.IntN(3) + 1 {
		run := Run{At: capping.Instant(1_000_000 + r.IntN(500)*1000 + i)}
		for _, user := range p.some(r, []int{3, 300}[r.IntN(2)]) {
			kind := r.IntN(kinds)
			run.Users[kind] = append(run.Users[kind], user)
		}
		record.Runs = append(record.Runs, run)
	}
	return record
}

func TestListsAgreeWithAMap(t *testing.T) {
	forAll(t, 30, func(t *testing.T, p people, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		lists, want := p.lists(4), oracle{}
		g, asOf := p.generation(r), capping.Instant(1_000_000+r.IntN(600)*1000)
		views := map[string]*View{}
		for step := range 40 {
			record := p.record(r)
			raw := AppendRecord(nil, record)
			decoded, err := DecodeRecord(raw)
			require.NoError(t, err)
			require.Equal(t, raw, AppendRecord(nil, decoded))
			lists.Apply(decoded)
			want.apply(record)
			if r.IntN(10) == 0 {
				upTo := capping.Instant(1_000_000 + r.IntN(200)*1000)
				lists.Drop(map[string]capping.Instant{"sms-stop": upTo})
				for set := range want {
					want.drop(set, lists.Freed(set))
				}
			}
			for set := range want { // changes up to the freed instant do not come back
				want.drop(set, lists.Freed(set))
			}
			for _, set := range []string{"opted-out", "sms-stop"} {
				before := views[set]
				views[set] = lists.View(set, g.base, asOf, before)
				requireMembers(t, p, g, want, set, asOf, views[set])
				if step%7 != 0 {
					continue
				}
				if views[set] = lists.Merge(set, views[set]); len(p) == len(dense) {
					for _, user := range p.all() {
						has := views[set].Bitmap().Contains(g.number(user))
						require.Equal(t, want.member(set, g.members, asOf, user), has)
					}
				}
				requireMembers(t, p, g, want, set, asOf, views[set])
			}
		}
		for set, changes := range want {
			require.Equal(t, held(changes), lists.Len(set))
			var users []capping.UserID
			for user, change := range changes {
				got, ok := lists.Of(set, user)
				require.True(t, ok)
				require.Equal(t, change.At, got.At)
				require.Equal(t, change.Kind, got.Kind)
				users = append(users, user)
			}
			slices.Sort(users)
			var since []capping.UserID
			for _, change := range lists.Since(set, 0, 0, len(users)+1) {
				since = append(since, change.User)
			}
			require.Equal(t, users, since, "in the order of users")
		}
		again := p.lists(0)
		again.Apply(lists.Records(func(capping.UserID) bool { return true })...)
		for set, changes := range want {
			require.Equal(t, held(changes), again.Len(set))
		}
	})
}

func requireMembers(t *testing.T, p people, g *generation, want oracle, set string, asOf capping.Instant, view *View) {
	t.Helper()
	users := p.all()
	numbers, marks := make([]uint32, len(users)), make([]uint8, len(users))
	for i, user := range users {
		numbers[i] = g.number(user)
		if i%3 == 0 {
			marks[i] = 7
		}
	}
	view.Mark(users, numbers, marks, 3)
	for i, user := range users {
		expected := uint8(0)
		switch {
		case i%3 == 0:
			expected = 7
		case want.member(set, g.members, asOf, user):
			expected = 3
		}
		if marks[i] != expected {
			require.Fail(t, "membership", "%s user %d: expected mark %d, got %d", set, user, expected, marks[i])
		}
	}
}

func TestPackKeepsTheLatestChanges(t *testing.T) {
	forAll(t, 40, func(t *testing.T, p people, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		lists, want := p.lists(0), oracle{}
		var stored []*Record
		for range 60 {
			record := p.record(r)
			stored = append(stored, record)
			lists.Apply(record)
			want.apply(record)
		}
		upTo := capping.Instant(1_000_000 + r.IntN(200)*1000)
		lists.Drop(map[string]capping.Instant{"opted-out": upTo})
		want.drop("opted-out", upTo)
		before := 0
		for _, changes := range want {
			before += len(changes)
		}
		packed := lists.Pack(stored, false)
		again, changes := oracle{}, 0
		for _, record := range packed {
			raw := AppendRecord(nil, record)
			require.LessOrEqual(t, len(raw), RecordBytes)
			decoded, err := DecodeRecord(raw)
			require.NoError(t, err)
			again.apply(decoded)
			changes += record.Len()
		}
		require.Equal(t, before, changes, "each user once")
		for set := range want {
			for user, change := range want[set] {
				got := again[set][user]
				require.Equal(t, [2]any{change.Kind, change.At}, [2]any{got.Kind, got.At})
			}
		}
		for _, record := range lists.Pack(stored, true) {
			for _, run := range record.Runs {
				require.Empty(t, run.Users[Forgotten])
			}
		}
	})
}

func TestStampIsLaterThanEarlierChanges(t *testing.T) {
	lists := New(0)
	lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: []capping.UserID{7}}, 5000))
	of := func(user capping.UserID) *Batch { return &Batch{Set: "opted-out", Remove: []capping.UserID{user}} }
	require.Equal(t, capping.Instant(5001), lists.Stamp(of(7), 4000))
	require.Equal(t, capping.Instant(4000), lists.Stamp(of(8), 4000))
	old := &Batch{Set: "opted-out", Remove: []capping.UserID{7}, At: 3000}
	require.Equal(t, capping.Instant(3000), lists.Stamp(old, 4000))
}

func TestChangesThatFollowedACallStay(t *testing.T) {
	lists := New(0)
	lists.Apply(RecordOf(&Batch{Set: "stop", Add: []capping.UserID{7, 8}}, 5000))
	b := &Batch{Set: "stop", Add: []capping.UserID{8}, Remove: []capping.UserID{7, 9}, Forget: []capping.UserID{10}}
	for _, before := range []capping.Period{{}, {After: 5000, UpTo: 6000}, {After: 3000, UpTo: 4999}} {
		rest, without := lists.WithoutLater(b, before)
		require.Equal(t, *b, rest)
		require.Zero(t, without)
	}
	rest, without := lists.WithoutLater(b, capping.Period{After: 4999, UpTo: 5000})
	require.Equal(t, Batch{Set: "stop", Add: []capping.UserID{}, Remove: []capping.UserID{9},
		Forget: []capping.UserID{10}}, rest)
	require.Equal(t, 2, without)
	require.Equal(t, []capping.UserID{7, 9}, b.Remove)
	given := *b
	given.At = 4000
	_, without = lists.WithoutLater(&given, capping.Period{After: 4999, UpTo: 5000})
	require.Zero(t, without, "the caller gave a time")
}

func TestOvertakenChangesAreOfTheTimeBeforeTheCall(t *testing.T) {
	lists := New(0)
	lists.Apply(RecordOf(&Batch{Set: "stop", Add: []capping.UserID{7, 8}}, 5000),
		RecordOf(&Batch{Set: "stop", Add: []capping.UserID{9}}, 6000))
	late := RecordOf(&Batch{Set: "stop", Remove: []capping.UserID{7, 9}, Add: []capping.UserID{8, 10},
		Forget: []capping.UserID{11}}, 4000)
	lists.Apply(late)
	require.Equal(t, 3, lists.Superseded(late))
	again := Batch{}
	require.Equal(t, 2, lists.AddOvertaken(&again, late, capping.Period{After: 5999, UpTo: 6000}))
	require.Equal(t, Batch{Add: []capping.UserID{8}, Remove: []capping.UserID{7}}, again)
	require.Zero(t, lists.AddOvertaken(&again, late, capping.Period{After: 4999, UpTo: 6000}))
	require.Equal(t, 5, New(0).AddOvertaken(&again, late, capping.Period{}), "freed meanwhile")
}

// recordOfAdded returns a record that adds the users.
func recordOfAdded(by string, users ...capping.UserID) *Record {
	return RecordOf(&Batch{Set: "opted-out", By: by, Add: users}, 5)
}

func TestRecordsAreRefused(t *testing.T) {
	good := AppendRecord(nil, recordOfAdded("crm", 1, 9))
	for n := range good {
		_, err := DecodeRecord(good[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	_, err := DecodeRecord(append(slices.Clone(good), 0))
	require.ErrorContains(t, err, "bytes follow the end of the record")
	_, err = DecodeRecord(append([]byte{9}, good[1:]...))
	require.ErrorContains(t, err, "version must be 1 or 2, got 9")
	wide := AppendRecord(nil, recordOfAdded("crm", 1, 1<<32, 1<<64-1))
	require.Equal(t, byte(2), wide[0])
	require.Equal(t, byte(1), good[0])
	for n := range wide {
		_, err := DecodeRecord(wide[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	_, err = DecodeRecord(append([]byte{1}, wide[1:]...))
	require.ErrorContains(t, err, "at most 4294967295")
	_, err = DecodeRecord(append([]byte{2}, good[1:]...))
	require.ErrorContains(t, err, "at least one user id above 4294967295")
	over := AppendRecord(nil, recordOfAdded("", 2, 1<<64-1))
	over[len(over)-11] = 3 // the first of both users, to which the difference is added
	_, err = DecodeRecord(over)
	require.ErrorContains(t, err, "at most 18446744073709551615")
	freed := AppendFreed(nil, map[string]capping.Instant{"a": 1, "b": 1 << 39})
	back, err := DecodeFreed(freed)
	require.NoError(t, err)
	require.Equal(t, map[string]capping.Instant{"a": 1, "b": 1 << 39}, back)
	_, err = DecodeFreed(freed[:len(freed)-1])
	require.Error(t, err)
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(AppendRecord(nil, &Record{Set: "x", Runs: []Run{{At: 5, Users: [kinds][]capping.UserID{{3}, {2}, {1, 9}}}}}))
	f.Add(AppendRecord(nil, &Record{Set: "x", Runs: []Run{{At: 5, Users: [kinds][]capping.UserID{{3}, {1 << 40}}}}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if r, err := DecodeRecord(raw); err == nil {
			require.Equal(t, raw, AppendRecord(nil, r))
			New(0).Apply(r)
		}
	})
}
