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

func (o oracle) member(set string, base map[capping.UserID]bool, asOf capping.Instant, user capping.UserID) bool {
	switch change := o[set][user]; {
	case change.Kind == Added && change.At > asOf-Margin:
		return true
	case change.Kind == Removed && change.At > asOf:
		return false
	}
	return base[user]
}

// someUsers returns ascending users in a few blocks.
func someUsers(r *rand.Rand, most int) []capping.UserID {
	users := make([]capping.UserID, 0, most)
	for range r.IntN(most) + 1 {
		users = append(users, []uint32{0, 70_000, 4_294_900_000}[r.IntN(3)]+uint32(r.IntN(400)))
	}
	slices.Sort(users)
	return slices.Compact(users)
}

func someRecord(r *rand.Rand) *Record {
	record := &Record{Set: []string{"opted-out", "sms-stop"}[r.IntN(2)], By: []string{"", "crm", "mail"}[r.IntN(3)]}
	for i := range r.IntN(3) + 1 {
		run := Run{At: capping.Instant(1_000_000 + r.IntN(500)*1000 + i)}
		for _, user := range someUsers(r, []int{3, 300}[r.IntN(2)]) {
			kind := r.IntN(kinds)
			run.Users[kind] = append(run.Users[kind], user)
		}
		record.Runs = append(record.Runs, run)
	}
	return record
}

func TestListsAgreeWithAMap(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			lists, want := New(4), oracle{}
			base := map[capping.UserID]bool{}
			for _, user := range someUsers(r, 500) {
				base[user] = true
			}
			var ids []uint32
			for user := range base {
				ids = append(ids, user)
			}
			built, asOf := bitmap.Of(ids...), capping.Instant(1_000_000+r.IntN(600)*1000)
			views := map[string]*View{}
			for step := range 40 {
				record := someRecord(r)
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
					views[set] = lists.View(set, built, asOf, views[set])
					if step%7 == 0 {
						views[set] = lists.Merge(set, views[set])
						requireMembers(t, want, set, base, asOf, views[set].Bitmap().Contains)
					}
					requireMembers(t, want, set, base, asOf, func(user capping.UserID) bool {
						marks := []uint8{0, 7}
						views[set].Mark([]uint32{user, user}, marks, 3)
						if marks[1] != 7 || marks[0] != 0 && marks[0] != 3 {
							require.Fail(t, "marks", "%v", marks)
						}
						return marks[0] == 3
					})
				}
			}
			for set, changes := range want {
				require.Equal(t, len(changes), lists.Len(set))
				for user, change := range changes {
					got, ok := lists.Of(set, user)
					require.True(t, ok)
					require.Equal(t, change.At, got.At)
					require.Equal(t, change.Kind, got.Kind)
				}
			}
		})
	}
}

func requireMembers(t *testing.T, want oracle, set string, base map[capping.UserID]bool, asOf capping.Instant,
	is func(capping.UserID) bool) {
	t.Helper()
	for _, from := range []uint32{0, 70_000, 4_294_900_000} {
		for user := from; user < from+400; user++ {
			if expected := want.member(set, base, asOf, user); expected != is(user) {
				require.Fail(t, "membership", "%s user %d: expected %t", set, user, expected)
			}
		}
	}
}

func TestPackKeepsTheLatestChanges(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		lists, want := New(0), oracle{}
		var stored []*Record
		for range 60 {
			record := someRecord(r)
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
	}
}

func TestStampIsLaterThanEarlierChanges(t *testing.T) {
	lists := New(0)
	lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: []uint32{7}}, 5000))
	require.Equal(t, capping.Instant(5001), lists.Stamp(&Batch{Set: "opted-out", Remove: []uint32{7}}, 4000))
	require.Equal(t, capping.Instant(4000), lists.Stamp(&Batch{Set: "opted-out", Remove: []uint32{8}}, 4000))
	require.Equal(t, capping.Instant(3000), lists.Stamp(&Batch{Set: "opted-out", Remove: []uint32{7}, At: 3000}, 4000))
}

func TestRecordsAreRefused(t *testing.T) {
	good := AppendRecord(nil, &Record{Set: "opted-out", By: "crm", Runs: []Run{{At: 5, Users: [kinds][]uint32{2: {1,
		9}}}}})
	for n := range good {
		_, err := DecodeRecord(good[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	_, err := DecodeRecord(append(slices.Clone(good), 0))
	require.ErrorContains(t, err, "bytes follow its end")
	_, err = DecodeRecord(append([]byte{9}, good[1:]...))
	require.ErrorContains(t, err, "version 9")
	freed := AppendFreed(nil, map[string]capping.Instant{"a": 1, "b": 1 << 39})
	back, err := DecodeFreed(freed)
	require.NoError(t, err)
	require.Equal(t, map[string]capping.Instant{"a": 1, "b": 1 << 39}, back)
	_, err = DecodeFreed(freed[:len(freed)-1])
	require.Error(t, err)
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(AppendRecord(nil, &Record{Set: "opted-out", Runs: []Run{{At: 5, Users: [kinds][]uint32{{3}, {2}, {1, 9}}}}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if r, err := DecodeRecord(raw); err == nil {
			require.Equal(t, raw, AppendRecord(nil, r))
			New(0).Apply(r)
		}
	})
}
