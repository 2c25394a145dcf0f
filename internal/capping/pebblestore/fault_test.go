package pebblestore

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/testkit"
)

// farAhead is a clock bound for stores whose clock a test advances.
const farAhead = math.MaxInt64

func reopen(t *testing.T, config Config) *Store {
	t.Helper()
	if config.Clock != nil && config.ClockBound == 0 {
		config.ClockBound = farAhead
	}
	s, err := Open(context.Background(), config)
	require.NoError(t, err)
	return s
}

func filterAll(s *Store, message string, users ...capping.UserID) ([]capping.Verdict, error) {
	verdicts := make([]capping.Verdict, len(users))
	err := s.Filter(context.Background(), benchBatch(message, users), verdicts)
	return verdicts, err
}

// TestRefusedSync makes the disk refuse a sync. Calls without an answer, and all later calls, must be
// unavailable until the store is opened again.
func TestRefusedSync(t *testing.T) {
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
	verdicts, err := filterAll(s, "before", 1, 2)
	require.NoError(t, err)
	require.Equal(t, []capping.Verdict{{Outcome: capping.Allowed}, {Outcome: capping.Allowed}}, verdicts)
	refuse.Store(true)
	for range 2 {
		verdicts, err = filterAll(s, "refused", 2, 3)
		require.ErrorContains(t, err, "out of service until capper restarts")
		require.Equal(t, make([]capping.Verdict, 2), verdicts)
	}
	released := make([]capping.Released, 1)
	require.Error(t, s.Release(context.Background(), capping.Message{ID: "before"}.Token(), 0, []capping.UserID{1},
		released))
	require.Equal(t, capping.ReleaseUnavailable, released[0])
	require.Error(t, s.Erase(context.Background(), 1))
	health := s.Health(context.Background())
	require.Equal(t, "down", health.State)
	require.Contains(t, health.Error, "the disk refuses")
	cut := disk.CrashClone(vfs.CrashCloneCfg{})
	refuse.Store(false)
	_ = s.Close() // errors of a broken database do not matter

	s = reopen(t, Config{Path: "/db", fs: cut})
	verdicts, err = filterAll(s, "before", 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, []capping.Outcome{capping.Replayed, capping.Replayed, capping.Allowed},
		[]capping.Outcome{verdicts[0].Outcome, verdicts[1].Outcome, verdicts[2].Outcome})
	require.NoError(t, s.Close())
}

// TestStalledDisk stalls a sync: the call must end at its deadline, and no user may be allowed.
func TestStalledDisk(t *testing.T) {
	t.Parallel()
	stall, release := new(atomic.Bool), make(chan struct{})
	stalling := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if stall.Load() {
				<-release
			}
		}
		return nil
	}))
	s := reopen(t, Config{Path: "/db", fs: stalling})
	stall.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	users := []capping.UserID{1, 2, 3}
	verdicts := make([]capping.Verdict, len(users))
	ended := make(chan error)
	go func() { ended <- s.Filter(ctx, benchBatch("stalled", users), verdicts) }()
	require.ErrorIs(t, testkit.Receive(t, ended), context.DeadlineExceeded)
	require.Equal(t, make([]capping.Verdict, len(users)), verdicts)
	clear(users) // the caller may reuse its slices
	stall.Store(false)
	close(release)
	// A retry with the same message id records the send once.
	verdicts, err := filterAll(s, "stalled", 1, 2, 3)
	require.NoError(t, err)
	for i, v := range verdicts {
		require.Contains(t, []capping.Outcome{capping.Allowed, capping.Replayed}, v.Outcome)
		log, err := s.Log(context.Background(), capping.UserID(i+1))
		require.NoError(t, err)
		require.Equal(t, 1, log.Len())
	}
	require.NoError(t, s.Close())
}

// TestAReplayedSendWaitsForTheDisk stalls the disk while a call records a send. A second call with the same message id
// must not answer that the send is recorded before the record is durable.
func TestAReplayedSendWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	disk := &stallableDisk{FS: vfs.NewMem(), released: make(chan struct{})}
	s := reopen(t, Config{Path: "/db", fs: disk, SweepInterval: time.Hour})
	disk.stalled.Store(true)
	first := make(chan error, 1)
	go func() {
		_, err := filterAll(s, "m", 1)
		first <- err
	}()
	testkit.Eventually(t, func() bool { return disk.waiting.Load() > 0 })
	late, end := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer end()
	verdicts := make([]capping.Verdict, 1)
	require.ErrorIs(t, s.Filter(late, benchBatch("m", []capping.UserID{1}), verdicts), context.DeadlineExceeded)
	require.Equal(t, capping.Unavailable, verdicts[0].Outcome)
	close(disk.released)
	require.NoError(t, testkit.Receive(t, first))
	verdicts, err := filterAll(s, "m", 1)
	require.NoError(t, err)
	require.Equal(t, capping.Replayed, verdicts[0].Outcome)
	require.NoError(t, s.Close())
}

// TestDamagedLogs writes invalid logs. Their users must be unavailable and their neighbours not, and erasing
// a user must replace the log.
func TestDamagedLogs(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := reopen(t, Config{Path: t.TempDir(), Registerer: registry})
	entry := capping.Log(nil).Record(nil, capping.Entry{At: 1000}, 0)
	late, early := capping.Log(nil).Record(nil, capping.Entry{At: 2000}, 0), entry
	for user, value := range map[capping.UserID][]byte{
		10: {}, 11: entry[:11], 12: append(append([]byte{}, late...), early...), 13: make([]byte, maxLogSize+12),
	} {
		require.NoError(t, s.db.Set(s.db.LogKey(user), value, pebble.Sync))
	}
	users := []capping.UserID{9, 10, 11, 12, 13, 14}
	verdicts, err := filterAll(s, "m", users...)
	require.ErrorContains(t, err, "log of user 1")
	for i, v := range verdicts {
		want := capping.Unavailable
		if i == 0 || i == 5 {
			want = capping.Allowed
		}
		require.Equal(t, want, v.Outcome, "user %d", users[i])
	}
	_, err = s.Log(context.Background(), 11)
	require.ErrorContains(t, err, "multiple of 12 bytes, got 11")
	released := make([]capping.Released, len(users))
	require.Error(t, s.Release(context.Background(), capping.Message{ID: "m"}.Token(), 0, users, released))
	require.Equal(t, capping.ReleaseDone, released[0])
	require.Equal(t, capping.ReleaseUnavailable, released[1])
	health := s.Health(context.Background())
	require.Equal(t, "degraded", health.State)
	require.Contains(t, health.Error, "the stored sends of 4 users cannot be read")
	for _, user := range users {
		require.NoError(t, s.Erase(context.Background(), user))
	}
	require.Equal(t, "ok", s.Health(context.Background()).State)
	verdicts, err = filterAll(s, "m", users...)
	require.NoError(t, err)
	for _, v := range verdicts {
		require.Equal(t, capping.Allowed, v.Outcome)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "capper_store_errors_total" {
			require.Equal(t, "log", family.GetMetric()[0].GetLabel()[0].GetValue())
			require.EqualValues(t, 8, family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	require.NoError(t, s.Close())
}

// TestDamagedFile flips a byte of a file on the disk: only the users of that block must be unavailable.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, Config{Path: dir})
	users := make([]capping.UserID, 20_000)
	for i := range users {
		users[i] = capping.UserID(i)
	}
	_, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.Close())

	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, table := range tables {
		content, err := os.ReadFile(table)
		require.NoError(t, err)
		if len(content) > 100_000 {
			content[len(content)/2] ^= 1
			require.NoError(t, os.WriteFile(table, content, 0o600))
		}
	}
	s = reopen(t, Config{Path: dir})
	verdicts, err := filterAll(s, "m", users...)
	require.Error(t, err)
	count := make(map[capping.Outcome]int)
	for _, v := range verdicts {
		count[v.Outcome]++
	}
	require.Positive(t, count[capping.Unavailable])
	require.Greater(t, count[capping.Replayed], 15_000)
	require.Zero(t, count[capping.Allowed]+count[capping.Denied])
	require.Equal(t, "degraded", s.Health(context.Background()).State)
	require.NoError(t, s.Close())
}

func TestForeignFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, Config{Path: dir})
	_, err := filterAll(s, "m", 1)
	require.NoError(t, err)
	foreign := strings.Replace(database.Marker(2), "bucket size 1", "bucket size 64", 1)
	require.NoError(t, s.db.Set(database.MarkerKey, []byte(foreign), pebble.Sync))
	require.NoError(t, s.Close())
	registry := prometheus.NewRegistry()
	for range 2 { // the first release removes what the call recorded
		_, err = Open(context.Background(), Config{Path: dir, Registerer: registry})
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, "bucket size 64")
		families, err := registry.Gather()
		require.NoError(t, err)
		require.Empty(t, families)
	}

	other := t.TempDir()
	db, err := pebble.Open(other, &pebble.Options{Logger: silent{}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("somebody's"), nil, pebble.Sync))
	require.NoError(t, db.Close())
	_, err = Open(context.Background(), Config{Path: other})
	require.ErrorContains(t, err, "not a capper store")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(context.Background(), Config{Path: file})
	require.ErrorContains(t, err, file)
	_, err = Open(context.Background(), Config{})
	require.ErrorContains(t, err, "path: must not be empty")
}

// TestClockSetBack checks that no entry is stamped before the newest one, and that times outside the
// storable range are rejected.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now})
	first := clock.Instant()
	for i := range 3 {
		_, err := filterAll(s, crashMessage(uint64(i)), 7)
		require.NoError(t, err)
		clock.Advance(-time.Hour)
	}
	log, err := s.Log(context.Background(), 7)
	require.NoError(t, err)
	for _, e := range log.Entries() {
		require.Equal(t, first, e.At)
	}
	clock.Advance(-30 * 365 * 24 * time.Hour)
	verdicts, err := filterAll(s, "m", 7)
	require.ErrorContains(t, err, "the clock must show a time between the years")
	require.Equal(t, capping.Unavailable, verdicts[0].Outcome)
	require.NoError(t, s.Close())
}

// TestRestart checks that logs and message ids survive a restart.
func TestRestart(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	users := make([]capping.UserID, capping.BulkUsers)
	for i := range users {
		users[i] = capping.UserID(i * 1000)
	}
	for round := range 3 {
		s := reopen(t, config)
		verdicts, err := filterAll(s, "m", users...)
		require.NoError(t, err)
		want := capping.Replayed
		if round == 0 {
			want = capping.Allowed
		}
		for _, v := range verdicts {
			require.Equal(t, want, v.Outcome)
		}
		ids, err := s.Messages(context.Background(), []capping.Token{capping.Message{ID: "m"}.Token()})
		require.NoError(t, err)
		require.Equal(t, map[capping.Token]capping.Message{capping.Message{ID: "m"}.Token(): {ID: "m"}}, ids)
		require.NoError(t, s.Close())
	}
}

// TestRestartWithNothingWritten checks starts without writes since the last start. Close waits for Pebble's
// background work.
func TestRestartWithNothingWritten(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	for range 6 {
		s := reopen(t, config)
		require.NoError(t, s.Close())
		health := s.Health(context.Background())
		require.Equal(t, "ok", health.State, health.Error)
	}
}

// silent is a Pebble logger without output.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}
