//go:build storms

package pebblestore

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/live"
	"capper/internal/live/livetest"
	"capper/internal/testkit"
)

// TestLongHistoriesOfChanges compares long random histories with a plain map.
func TestLongHistoriesOfChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		history(t, 100+seed, 1000)
	}
}

// TestListsKilled kills a process that changes a set under load. Every later decision must know each change that the
// process acknowledged.
func TestListsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lists := &livetest.Storm{Users: listUsers(0), Patience: patience, Rest: time.Millisecond}
	for round := range uint64(4) {
		served := serveStore(t, dir)
		lists.Begin(4, round, served)
		acknowledged := lists.Tally().Acknowledged + 2000
		testkit.Eventually(t, func() bool { return lists.Tally().Acknowledged >= acknowledged })
		served.kill(t)
		lists.End()
		served.end()
		s := reopen(t, Config{Path: dir})
		requireHeeded(t, s, lists)
		require.NoError(t, s.Close())
	}
}

// requireHeeded checks that decisions contain every acknowledged change.
func requireHeeded(t *testing.T, s *Store, lists *livetest.Storm) {
	t.Helper()
	here := newLocal(s)
	require.Zero(t, lists.Verify(here))
	testkit.Eventually(t, func() bool { return lists.Settle(here) == 0 })
	require.Zero(t, lists.Verify(here))
	tally := lists.Tally()
	require.Zero(t, tally.Violations(), tally.String())
	require.Positive(t, tally.Judged)
}

// TestListsThroughPowerCuts cuts the power under changes, packs and frees, with none, some or all of the unsynced data.
func TestListsThroughPowerCuts(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	lists := &livetest.Storm{Users: listUsers(0), Patience: patience, Rest: time.Millisecond}
	for round := range uint64(9) {
		s := reopen(t, Config{Path: "/db", fs: disk, SweepInterval: 5 * time.Millisecond})
		lists.Begin(4, round, newLocal(s))
		stop := make(chan struct{})
		var frees sync.WaitGroup
		frees.Go(func() { freeOthers(t, s, stop) })
		acknowledged := lists.Tally().Acknowledged + 3000
		testkit.Eventually(t, func() bool { return lists.Tally().Acknowledged >= acknowledged })
		var cut *vfs.MemFS
		lists.Silence(func() {
			cut = disk.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: []int{0, 50, 100}[round%3], RNG: rand.New(rand.NewPCG(1, round)),
			})
		})
		lists.End()
		close(stop)
		frees.Wait()
		require.NoError(t, s.Close())
		disk = cut
		s = reopen(t, Config{Path: "/db", fs: disk, SweepInterval: time.Hour})
		requireHeeded(t, s, lists)
		require.NoError(t, s.Close())
	}
}

// freeOthers changes and frees another set until stop is closed.
func freeOthers(t *testing.T, s *Store, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		stored, err := s.Change(context.Background(), &live.Batch{Set: "other", Add: []capping.UserID{1, 2, 3}})
		if err == nil {
			err = s.Free(context.Background(), map[string]capping.Instant{"other": stored.At})
		}
		if err != nil {
			t.Error(err)
			return
		}
		if n := s.Lists().Len("other"); n != 0 {
			t.Errorf("%d freed changes are in memory", n)
		}
	}
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCostOfChanges measures a million changes, by calls for one user and for 100,000 users: memory and disk take at
// most 40 bytes a change.
func TestCostOfChanges(t *testing.T) {
	const users = 1_000_000
	for _, c := range []struct {
		name    string
		perCall int
		callers int
	}{{"one by one", 1, 64}, {"in bulk", 100_000, 1}} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{Path: t.TempDir(), SweepInterval: time.Hour}
			s := reopen(t, config)
			before := heap()
			order := rand.New(rand.NewPCG(1, 1)).Perm(users)
			var longest []time.Duration
			var mu sync.Mutex
			var all sync.WaitGroup
			began := time.Now()
			for w := range c.callers {
				all.Go(func() {
					var took []time.Duration
					for first := w * c.perCall; first < users; first += c.callers * c.perCall {
						add := make([]capping.UserID, c.perCall)
						for i := range add {
							add[i] = capping.UserID(order[first+i]) * 270
						}
						slices.Sort(add)
						at := time.Now()
						if _, err := s.Change(context.Background(), adding(add...)); err != nil {
							t.Error(err)
							return
						}
						took = append(took, time.Since(at))
					}
					mu.Lock()
					defer mu.Unlock()
					longest = append(longest, took...)
				})
			}
			all.Wait()
			slices.Sort(longest)
			t.Logf("%v for all; a call: p50 %v, p99 %v, longest %v", time.Since(began), longest[len(longest)/2],
				longest[len(longest)*99/100], longest[len(longest)-1])
			began = time.Now()
			packAll(t, s)
			t.Logf("packed in %v, %d records remain small", time.Since(began), s.changes.fresh)
			memory := float64(heap()-before) / users
			require.NoError(t, s.db.Flush())
			prefix := []byte{database.KeyMeta, 0xFF}
			require.NoError(t, s.db.Compact(t.Context(), prefix, database.After(packedPrefix), true))
			disk, err := s.db.EstimateDiskUsage(freedKey, database.After(packedPrefix))
			require.NoError(t, err)
			require.NoError(t, s.Close())
			began = time.Now()
			s = reopen(t, config)
			t.Logf("%.1f bytes a change on disk, %.1f in memory; opened in %v", float64(disk)/users, memory,
				time.Since(began))
			require.Equal(t, users, s.Lists().Len("opted-out"))
			require.Less(t, float64(disk)/users, 40.)
			require.Less(t, memory, 40.)
			began = time.Now()
			upTo := map[string]capping.Instant{"opted-out": capping.InstantOf(time.Now())}
			require.NoError(t, s.Free(t.Context(), upTo))
			packAll(t, s)
			t.Logf("freed in %v", time.Since(began))
			require.Zero(t, s.changes.entries)
			require.NoError(t, s.Close())
		})
	}
}

// TestChangesBesideBigCalls measures calls for one user beside calls for 100,000 users and packing.
func TestChangesBesideBigCalls(t *testing.T) {
	s := reopen(t, Config{Path: t.TempDir(), SweepInterval: 10 * time.Millisecond})
	stop := make(chan struct{})
	var big sync.WaitGroup
	var bulks []time.Duration
	big.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := capping.UserID(0); ; n++ {
			users := make([]capping.UserID, 100_000)
			for i := range users {
				users[i] = capping.UserID(i)*2700 + n
			}
			began := time.Now()
			if _, err := s.Change(context.Background(), adding(users...)); err != nil {
				t.Error(err)
				return
			}
			bulks = append(bulks, time.Since(began))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	var took []time.Duration
	for n := range capping.UserID(2000) {
		began := time.Now()
		changeSet(t, s, adding(n*1_000_003))
		took = append(took, time.Since(began))
	}
	close(stop)
	big.Wait()
	slices.Sort(took)
	slices.Sort(bulks)
	t.Logf("one user: p50 %v, p99 %v, longest %v; 100,000 users: p50 %v, longest %v", took[len(took)/2],
		took[len(took)*99/100], took[len(took)-1], bulks[len(bulks)/2], bulks[len(bulks)-1])
	require.Less(t, took[len(took)*99/100], 50*time.Millisecond)
	require.Less(t, bulks[len(bulks)/2], time.Second)
	require.NoError(t, s.Close())
}

// TestDamagedTableOfChanges flips bytes in the table with the changes. The store must refuse to open, and then continue
// with the readable changes when the operator accepts the loss.
func TestDamagedTableOfChanges(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir(), SweepInterval: time.Hour}
	s := reopen(t, config)
	const users = 100_000
	_, err := filterAll(s, "m", manyUsers(1000)...)
	require.NoError(t, err)
	changeSet(t, s, adding(manyUsers(users)...))
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.Close())
	tables, err := filepath.Glob(filepath.Join(config.Path, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	flips := 0
	for _, table := range tables {
		content, err := os.ReadFile(table)
		require.NoError(t, err)
		for at := 20_000; at < len(content)-60_000; at += 30_000 {
			content[at] ^= 1
			flips++
		}
		require.NoError(t, os.WriteFile(table, content, 0o600))
	}
	require.Positive(t, flips)
	refused(t, config, "changes to sets cannot be read", "ACCEPT-LOST-CHANGES")
	require.NoError(t, os.WriteFile(filepath.Join(config.Path, "ACCEPT-LOST-CHANGES"), nil, 0o600))
	s = reopen(t, config)
	kept := s.Lists().Len("opted-out")
	t.Logf("%d of %d changes are readable after %d flips", kept, users, flips)
	require.Less(t, kept, users)
	require.Greater(t, kept, users/10)
	changeSet(t, s, &live.Batch{Set: "sms-stop", Add: []capping.UserID{1}})
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Equal(t, kept, s.Lists().Len("opted-out"))
	require.Equal(t, 1, s.Lists().Len("sms-stop"))
	require.NoError(t, s.Close())
}
