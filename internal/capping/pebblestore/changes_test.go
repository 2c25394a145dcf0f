package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/live"
	"capper/internal/testkit"
)

// changeSet changes a set and requires that the store accepts the change.
func changeSet(t testing.TB, s *Store, b *live.Batch) live.Stored {
	t.Helper()
	stored, err := s.Change(t.Context(), b)
	require.NoError(t, err)
	require.Empty(t, stored.Unstored)
	return stored
}

func adding(users ...capping.UserID) *live.Batch {
	return &live.Batch{Set: "opted-out", By: "crm", Add: users}
}

// packAll packs until nothing is left to pack.
func packAll(t testing.TB, s *Store) {
	t.Helper()
	for range 1000 {
		c := s.changes
		before := c.next
		require.NoError(t, c.Pack(t.Context()))
		if c.packing.pass == nil && c.next == before && (c.forgets == 0 || c.packing.pause > 0) {
			return
		}
	}
	require.Fail(t, "packing does not end")
}

// changesOf returns the changes of each set that a user can notice: forgotten changes are left out.
func changesOf(s *Store) map[string][]live.Change {
	all := map[string][]live.Change{}
	for _, size := range s.Lists().Sizes() {
		for _, change := range s.Lists().Since(size.Set, 0, 0, 1<<30) {
			if change.Kind != live.Forgotten {
				all[size.Set] = append(all[size.Set], change)
			}
		}
	}
	return all
}

// TestALateChangeOverridesNoLaterOne checks that a call that arrived before another one, and executes after it,
// overrides no change of the other call.
func TestALateChangeOverridesNoLaterOne(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	added := changeSet(t, s, adding(7, 8)).At
	remove := func(asked capping.Instant, user capping.UserID) live.Stored {
		ctx := capping.WithCaller(t.Context(), capping.Caller{Asked: asked})
		stored, err := s.Change(ctx, &live.Batch{Set: "opted-out", Remove: []capping.UserID{user}})
		require.NoError(t, err)
		return stored
	}
	require.Equal(t, live.Stored{At: added, Superseded: 1}, remove(added-1, 7))
	require.Equal(t, live.Stored{At: added + 1}, remove(added, 8))
}

// TestChangesSurviveARestart checks changes of every kind, with their instants and clients, after a restart.
func TestChangesSurviveARestart(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	now := clock.Instant()
	require.Equal(t, live.Stored{At: now}, changeSet(t, s, adding(1, 2, 3)))
	require.Equal(t, live.Stored{At: now + 1},
		changeSet(t, s, &live.Batch{Set: "opted-out", Remove: []capping.UserID{2}}),
		"later than the change of the same millisecond")
	require.Equal(t, live.Stored{At: now - 5, Superseded: 1},
		changeSet(t, s, &live.Batch{Set: "opted-out", At: now - 5, Add: []capping.UserID{2, 4}}))
	changeSet(t, s, &live.Batch{Set: "sms-stop", By: "mail", Add: []capping.UserID{2}, Forget: []capping.UserID{9}})
	want := map[string][]live.Change{
		"opted-out": {
			{User: 1, Kind: live.Added, At: now, By: "crm"}, {User: 2, Kind: live.Removed, At: now + 1},
			{User: 3, Kind: live.Added, At: now, By: "crm"}, {User: 4, Kind: live.Added, At: now - 5},
		},
		"sms-stop": {{User: 2, Kind: live.Added, At: now, By: "mail"}},
	}
	for range 3 {
		require.Equal(t, want, changesOf(s))
		require.NoError(t, s.Close())
		s = reopen(t, config)
		packAll(t, s)
	}
	require.Zero(t, s.changes.forgets, "forgotten changes leave the log")
	require.NoError(t, s.Renew(t.Context(), nil))
	asOf, ok := s.OthersAsOf()
	require.True(t, ok)
	require.Empty(t, asOf)
	require.NoError(t, s.Close())
}

// TestInvalidChanges checks that a batch that could not be read back is not stored.
func TestInvalidChanges(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	for says, b := range map[string]*live.Batch{
		"change to a set of users must name the set": {Add: []capping.UserID{1}},
		"must name at least one user":                {Set: "opted-out"},
		"user 2 follows user 2":                      {Set: "opted-out", Remove: []capping.UserID{1, 2, 2}},
		"user 1 follows user 5":                      {Set: "opted-out", Forget: []capping.UserID{5, 1}},
		"must be at least 0 and below ":              {Set: "opted-out", At: capping.Never, Add: []capping.UserID{1}},
	} {
		stored, err := s.Change(t.Context(), b)
		require.ErrorContains(t, err, says)
		require.Equal(t, usersOf(b), stored.Unstored)
	}
	require.Empty(t, s.Lists().Sizes())
	require.False(t, s.db.HasChanges())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stored, err := s.Change(ctx, adding(1))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []capping.UserID{1}, stored.Unstored)
	require.NoError(t, s.Close())
}

// TestFree checks that freed changes leave memory at once and the disk with the next pack, and that their instants
// remain.
func TestFree(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir(), SweepInterval: time.Hour}
	s := reopen(t, config)
	for i := range capping.UserID(300) {
		changeSet(t, s, &live.Batch{Set: "opted-out", At: capping.Instant(1000 + i), Add: []capping.UserID{i}})
		changeSet(t, s, &live.Batch{Set: "other", At: capping.Instant(1000 + i), Add: []capping.UserID{i}})
	}
	changeSet(t, s, &live.Batch{Set: "bulk", At: 1000, Add: manyUsers(10_000)})
	packAll(t, s)
	require.Less(t, s.changes.fresh, packFrom+1)
	upTo := map[string]capping.Instant{"opted-out": 1199, "bulk": 1000, "unknown": 5000, "other": 999}
	require.NoError(t, s.Free(t.Context(), upTo))
	check := func() {
		t.Helper()
		require.Equal(t, 100, s.Lists().Len("opted-out"))
		require.Equal(t, 300, s.Lists().Len("other"))
		require.Zero(t, s.Lists().Len("bulk"))
		require.Equal(t, map[string]capping.Instant{"opted-out": 1199, "bulk": 1000}, s.Lists().AllFreed(),
			"a set that lost no change can still be used with every generation")
	}
	check()
	require.NoError(t, s.Close())
	s = reopen(t, config)
	check()
	s.changes.packing.wanted = true
	packAll(t, s)
	require.Equal(t, 400, s.changes.entries)
	require.Equal(t, live.Stored{At: 1100, Superseded: 1},
		changeSet(t, s, &live.Batch{Set: "opted-out", At: 1100, Add: []capping.UserID{7}}), "the build has it")
	require.Equal(t, capping.Instant(1299), s.Lists().Sizes()[1].Newest)
	require.NoError(t, s.Close())
	s = reopen(t, config)
	check()
	require.NoError(t, s.Close())
}

// TestChangesAgreeWithAMap makes random changes, packs, frees and restarts, and compares with a plain map.
func TestChangesAgreeWithAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			history(t, seed, 150)
		})
	}
}

// history runs a random history of the given number of steps.
func history(t *testing.T, seed uint64, steps int) {
	r := rand.New(rand.NewPCG(seed, 0))
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	want := map[string]map[capping.UserID]live.Change{"opted-out": {}, "sms-stop": {}}
	freed := map[string]capping.Instant{}
	for step := range steps {
		set := []string{"opted-out", "sms-stop"}[r.IntN(2)]
		kind := r.IntN(20)
		switch kind {
		case 0:
			require.NoError(t, s.Close())
			s = reopen(t, config)
		case 1:
			packAll(t, s)
		case 2:
			upTo := clock.Instant() - capping.Instant(r.IntN(20_000))
			require.NoError(t, s.Free(t.Context(), map[string]capping.Instant{set: upTo}))
			freed[set] = max(freed[set], s.Lists().Freed(set))
			maps.DeleteFunc(want[set], func(_ capping.UserID, c live.Change) bool { return c.At <= freed[set] })
		default:
			b := someBatch(r, set, clock.Instant())
			stored := changeSet(t, s, b)
			superseded := 0
			for kind, users := range [][]capping.UserID{b.Forget, b.Remove, b.Add} {
				for _, user := range users {
					next := live.Change{User: user, Kind: live.Kind(kind), At: stored.At, By: b.By}
					before, known := want[set][user]
					older := known && (next.At < before.At || next.At == before.At && next.Kind < before.Kind)
					switch {
					case older || stored.At <= freed[set]:
						superseded++
					case !known || next.At > before.At || next.Kind > before.Kind:
						want[set][user] = next
					}
				}
			}
			require.Equal(t, superseded, stored.Superseded)
		}
		clock.Advance(time.Duration(r.IntN(500)) * time.Millisecond)
		if kind > 2 && step%20 != 19 { // a comparison takes longer than a change
			continue
		}
		for set, users := range want {
			var changes []live.Change
			for _, user := range slices.Sorted(maps.Keys(users)) {
				if users[user].Kind != live.Forgotten {
					changes = append(changes, users[user])
				}
			}
			require.Equal(t, changes, changesOf(s)[set])
		}
	}
	require.NoError(t, s.Close())
}

// someBatch returns a batch with the store's time, or with an earlier one. Batches that forget have the store's time,
// because a change from before a forgotten one counts again after packing.
func someBatch(r *rand.Rand, set string, now capping.Instant) *live.Batch {
	b := &live.Batch{Set: set, By: []string{"", "crm", "mail"}[r.IntN(3)]}
	for user := range capping.UserID([]int{20, 20, 3000}[r.IntN(3)]) {
		switch r.IntN(6) {
		case 0:
			b.Add = append(b.Add, user*70_001)
		case 1:
			b.Remove = append(b.Remove, user*70_001)
		case 2:
			if r.IntN(2) == 0 && user%2 == 0 {
				b.Forget = append(b.Forget, user*70_001)
			}
		}
	}
	if len(b.Add)+len(b.Remove) == 0 {
		b.Add = []capping.UserID{1}
	}
	if r.IntN(3) == 0 {
		odd := func(user capping.UserID) bool { return user/70_001%2 == 0 }
		b.Add, b.Remove, b.Forget = slices.DeleteFunc(b.Add, odd), slices.DeleteFunc(b.Remove, odd), nil
		if len(b.Add)+len(b.Remove) == 0 {
			b.Add = []capping.UserID{70_001}
		}
		b.At = now - capping.Instant(r.IntN(30_000))
	}
	return b
}

// TestRefusedChange makes the disk refuse a sync. The change must be unstored and the store out of service.
func TestRefusedChange(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	var refuse atomic.Bool
	failing := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if refuse.Load() && strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk refuses")
		}
		return nil
	}))
	s := reopen(t, Config{Path: "/db", fs: failing})
	changeSet(t, s, adding(1, 2))
	refuse.Store(true)
	for range 2 {
		stored, err := s.Change(t.Context(), &live.Batch{Set: "opted-out", Add: []capping.UserID{3},
			Remove: []capping.UserID{1}, Forget: []capping.UserID{2}})
		require.ErrorContains(t, err, "out of service until capper restarts")
		require.Equal(t, live.Stored{Unstored: []capping.UserID{3, 1, 2}}, stored)
	}
	require.ErrorContains(t, s.Free(t.Context(), map[string]capping.Instant{"opted-out": capping.Never - 1}),
		"out of service until capper restarts")
	require.Equal(t, 2, s.Lists().Len("opted-out"))
	cut := disk.CrashClone(vfs.CrashCloneCfg{})
	refuse.Store(false)
	_ = s.Close() // errors of a broken database do not matter
	s = reopen(t, Config{Path: "/db", fs: cut})
	require.Len(t, changesOf(s)["opted-out"], 2)
	require.NoError(t, s.Close())
}

// TestChangeOnAStalledDisk checks that a call ends at its deadline and that its caller may reuse the slices.
func TestChangeOnAStalledDisk(t *testing.T) {
	t.Parallel()
	stall, release := new(atomic.Bool), make(chan struct{})
	stalling := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isSync(op.Kind) && stall.Load() {
			<-release
		}
		return nil
	}))
	s := reopen(t, Config{Path: "/db", fs: stalling, SweepInterval: time.Hour})
	stall.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	users := []capping.UserID{1, 2, 3}
	stored, err := s.Change(ctx, adding(users...))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, users, stored.Unstored)
	clear(users)
	require.Zero(t, s.Lists().Len("opted-out"), "not before the change is durable")
	packed := make(chan error)
	go func() { packed <- s.changes.Pack(context.Background()) }()
	require.NoError(t, testkit.Receive(t, packed))
	stall.Store(false)
	close(release)
	testkit.Eventually(t, func() bool { return s.Lists().Len("opted-out") == 3 })
	require.NoError(t, s.Close())
}

// TestPackBesideChanges packs all the time while callers change a set and ask for decisions.
func TestPackBesideChanges(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir(), SweepInterval: time.Millisecond}
	s := reopen(t, config)
	const callers, calls = 4, 150
	want := make([]map[capping.UserID]live.Kind, callers)
	var all sync.WaitGroup
	for w := range callers {
		want[w] = map[capping.UserID]live.Kind{}
		all.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			for n := range calls {
				b := &live.Batch{Set: "opted-out", By: "crm"}
				for i := range capping.UserID([]int{3, 900}[n%2]) {
					user := i*4 + capping.UserID(w)
					kind := live.Kind(r.IntN(3))
					to := []*[]capping.UserID{&b.Forget, &b.Remove, &b.Add}[kind]
					*to = append(*to, user)
					want[w][user] = kind
				}
				if _, err := s.Change(context.Background(), b); err != nil {
					t.Error(err)
					return
				}
				if _, err := filterAll(s, crashMessage(uint64(n)), capping.UserID(w)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	check := func() {
		t.Helper()
		for w := range callers {
			for user, kind := range want[w] {
				change, ok := s.Lists().Of("opted-out", user)
				require.Equal(t, kind, change.Kind, "user %d, known %t", user, ok)
			}
		}
	}
	check()
	require.NoError(t, s.Close())
	for range 2 {
		s = reopen(t, Config{Path: config.Path, SweepInterval: time.Hour})
		check()
		packAll(t, s)
		require.NoError(t, s.Close())
	}
}

// TestOldProgramsRefuseChanges checks that a store without changes stays one of format 2, also after an upgrade, and
// that the first change makes programs for that format refuse the store.
func TestOldProgramsRefuseChanges(t *testing.T) {
	t.Parallel()
	marker := func(s *Store) string {
		value, err := s.db.Lookup(database.MarkerKey)
		require.NoError(t, err)
		return string(value)
	}
	for name, config := range map[string]Config{
		"format 1": oldConfig(oldStore(t)),
		"format 2": {Path: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reopen(t, config)
			_, err := filterAll(s, "m", 1)
			require.NoError(t, err)
			require.NoError(t, s.Free(t.Context(), map[string]capping.Instant{"opted-out": 1}))
			require.Equal(t, database.Marker(2), marker(s))
			changeSet(t, s, adding(5))
			require.Equal(t, database.Marker(3), marker(s))
			require.NoError(t, s.Close())
			s = reopen(t, config)
			require.Equal(t, database.Marker(3), marker(s))
			require.Equal(t, 1, s.Lists().Len("opted-out"))
			testkit.Eventually(t, func() bool { return s.db.Upgrade() == nil })
			require.NoError(t, s.Close())
			s = reopen(t, config)
			require.Equal(t, 1, s.Lists().Len("opted-out"))
			require.NoError(t, s.Close())
		})
	}
}

// TestChangesInBackups checks that an archive contains the changes that were answered before it.
func TestChangesInBackups(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	s := reopen(t, Config{Path: dir})
	changeSet(t, s, adding(1, 2))
	changeSet(t, s, &live.Batch{Set: "bulk", Add: manyUsers(2000)})
	archive := archiveOf(t, s)
	changeSet(t, s, adding(3))
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(dir))
	_, err := database.Restore(strings.NewReader(string(archive)), dir, true, time.Now())
	require.NoError(t, err)
	s = reopen(t, Config{Path: dir})
	require.Equal(t, 2, s.Lists().Len("opted-out"))
	require.Equal(t, 2000, s.Lists().Len("bulk"))
	require.Contains(t, strings.Join(s.Health(t.Context()).Warnings, "; "),
		"store restored from a backup: sends and changes to sets from")
	require.NoError(t, s.Close())
}

// TestUnreadableChange checks that a store with an unreadable record refuses to open, that an operator can accept the
// loss once, and that an open store writes such a record again from memory.
func TestUnreadableChange(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, *Store){
		"value": func(t *testing.T, s *Store) {
			require.NoError(t, s.db.Set(changeKey(freshPrefix, 2), []byte{1, 2, 3}, pebble.Sync))
		},
		"version": func(t *testing.T, s *Store) {
			require.NoError(t, s.db.Set(changeKey(packedPrefix, 9), []byte{9}, pebble.Sync))
		},
		"key": func(t *testing.T, s *Store) {
			require.NoError(t, s.db.Set(append(slices.Clone(freshPrefix), 1), nil, pebble.Sync))
		},
		"freed": func(t *testing.T, s *Store) { require.NoError(t, s.db.Set(freedKey, []byte{1, 200}, pebble.Sync)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{Path: t.TempDir(), SweepInterval: time.Hour}
			s := reopen(t, config)
			for user := range capping.UserID(5) {
				changeSet(t, s, adding(user))
			}
			damage(t, s)
			require.NoError(t, s.Close())
			accept := filepath.Join(config.Path, "ACCEPT-LOST-CHANGES")
			for range 2 {
				refused(t, config, "changes to sets of users cannot be read", "create the file "+accept)
			}
			require.NoError(t, os.WriteFile(accept, nil, 0o600))
			s = reopen(t, config)
			require.GreaterOrEqual(t, s.Lists().Len("opted-out"), 4)
			require.Contains(t, fmt.Sprint(s.Health(t.Context()).Warnings), "the unreadable ones are lost")
			changeSet(t, s, adding(100))
			require.NoError(t, s.Close())
			require.NoFileExists(t, accept)
			s = reopen(t, config)
			require.GreaterOrEqual(t, s.Lists().Len("opted-out"), 5)
			require.Empty(t, s.Health(t.Context()).Warnings)
			require.NoError(t, s.Close())
		})
	}
}

// TestDamageWhileOpen checks that an open store writes unreadable records again from memory.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir(), SweepInterval: time.Hour}
	s := reopen(t, config)
	for user := range capping.UserID(packFrom + 10) {
		changeSet(t, s, adding(user))
	}
	require.NoError(t, s.db.Set(changeKey(freshPrefix, 2), []byte{1, 2, 3}, pebble.Sync))
	require.NoError(t, s.changes.Pack(t.Context()))
	require.Equal(t, "ok", s.Health(t.Context()).State)
	changeSet(t, s, adding(500))
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Equal(t, packFrom+11, s.Lists().Len("opted-out"))
	require.NoError(t, s.Close())
}

// TestEraseKeepsChanges checks that erasing a user's log keeps the user's changes.
func TestEraseKeepsChanges(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	changeSet(t, s, adding(7))
	require.NoError(t, s.Erase(t.Context(), 7))
	_, ok := s.Lists().Of("opted-out", 7)
	require.True(t, ok)
	require.NoError(t, s.Close())
}

// FuzzDecodeChange decodes any key and value. A decoded record is encoded to a value that is decoded to the same
// record.
func FuzzDecodeChange(f *testing.F) {
	f.Add(changeKey(freshPrefix, 1), live.AppendRecord(nil, live.RecordOf(adding(1, 5), 7)))
	f.Add(changeKey(packedPrefix, 1<<63), []byte{1})
	f.Add(changeKey(packedPrefix, 0), []byte(nil))
	f.Add([]byte{0}, []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		number, r, err := decodeChange(key, value)
		if err != nil {
			require.True(t, isDamage(err))
			return
		}
		require.Equal(t, key[len(freshPrefix):], changeKey(freshPrefix, number)[len(freshPrefix):])
		again, err := live.DecodeRecord(live.AppendRecord(nil, r))
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
