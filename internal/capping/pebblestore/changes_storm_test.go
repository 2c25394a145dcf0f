//go:build storms

package pebblestore

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/live/livetest"
	"capper/internal/testkit"
)

// TestLongHistoriesOfChanges compares long random histories with a plain map.
func TestLongHistoriesOfChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		history(t, 100+seed, 500)
	}
}

// TestListsKilled kills a process that changes a set under load. Every later decision must know each change that the
// process acknowledged.
func TestListsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lists := &livetest.Storm{Users: listUsers(0, false), Patience: patience, Rest: time.Millisecond}
	for round := range uint64(4) {
		served := serveStore(t, dir, IDs{})
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
	testkit.Eventually(t, func() bool { return lists.Verify(here) == 0 }) // a slow answer leaves users open
	testkit.Eventually(t, func() bool { return lists.Settle(here) == 0 })
	testkit.Eventually(t, func() bool { return lists.Verify(here) == 0 }) // a slow answer leaves users open
	tally := lists.Tally()
	require.Zero(t, tally.Violations(), tally.String())
	require.Positive(t, tally.Judged)
}

// TestListsThroughPowerCuts cuts the power under changes, packs and frees, with none, some or all of the unsynced data.
func TestListsThroughPowerCuts(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	lists := &livetest.Storm{Users: listUsers(0, false), Patience: patience, Rest: time.Millisecond}
	for round := range uint64(9) {
		s := reopen(t, Config{Path: "/db", fs: disk, SweepInterval: 5 * time.Millisecond})
		lists.Begin(4, round, newLocal(s))
		stop := make(chan struct{})
		var frees sync.WaitGroup
		frees.Go(func() { freeOthers(t, s, stop) })
		acknowledged := lists.Tally().Acknowledged + 1000
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
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
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
	refused(t, config, "changes to sets of users cannot be read", "ACCEPT-LOST-CHANGES")
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
