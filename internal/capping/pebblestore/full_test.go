package pebblestore

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/testkit"
)

// smallDisk is a disk that becomes full after a number of bytes. A write keeps the part that fits, and
// removed files free no space.
type smallDisk struct {
	vfs.FS
	left atomic.Int64
}

func newSmallDisk(fs vfs.FS, size int64) *smallDisk {
	d := &smallDisk{FS: fs}
	d.left.Store(size)
	return d
}

func (d *smallDisk) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return smallFile{f, d}, nil
}

func (d *smallDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.left.Load() <= 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	return d.file(d.FS.Create(name, category))
}

func (d *smallDisk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(from, to, category))
}

type smallFile struct {
	vfs.File
	disk *smallDisk
}

func (f smallFile) Write(p []byte) (int, error) {
	if left := f.disk.left.Add(-int64(len(p))); left < 0 {
		n, _ := f.File.Write(p[:max(0, int64(len(p))+left)])
		return n, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// SyncData returns an error on a full disk, as file systems that allocate space late do.
func (f smallFile) SyncData() error {
	if f.disk.left.Load() < 0 {
		return syscall.ENOSPC
	}
	return f.File.SyncData()
}

// TestFullDisk lets the disk become full at different points during parallel calls. The store must then be
// out of service but readable, must close, and must have everything that it answered after the disk has
// space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for size := int64(1000); size < 2<<20; size += size/2 + 9_997 {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			fill(t, size)
		})
	}
}

func fill(t *testing.T, size int64) {
	disk := vfs.NewCrashableMem()
	small := newSmallDisk(disk, 1<<40)
	s := reopen(t, Config{Path: "/db", fs: small})
	small.left.Store(size)
	var mu sync.Mutex
	answered := make(map[uint64][]capping.UserID) // by message
	var all sync.WaitGroup
	for worker := range uint64(3) {
		all.Go(func() {
			for n := worker; s.db.Broken() == nil; n += 3 {
				allowed := send(t, s, n)
				mu.Lock()
				answered[n] = allowed
				mu.Unlock()
			}
		})
	}
	all.Wait()
	requireDown(t, s, "no space left on device")
	for _, users := range answered {
		if len(users) > 0 {
			log, err := s.Log(context.Background(), users[0])
			require.NoError(t, err, "what can be read still is")
			require.Equal(t, 1, log.Len())
		}
	}
	began := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(began), 30*time.Second)
	if size%2 == 0 {
		disk = disk.CrashClone(vfs.CrashCloneCfg{})
	}
	s = reopen(t, Config{Path: "/db", fs: disk})
	for n, users := range answered {
		verdicts, err := filterAll(s, crashMessage(n), users...)
		require.NoError(t, err)
		for i, v := range verdicts {
			if v.Outcome != capping.Replayed {
				t.Fatalf("message %d was answered allowed to user %d and is not there", n, users[i])
			}
		}
	}
	require.NoError(t, s.Close())
}

// send sends to 20 to 5,000 new users and returns the allowed ones: all users, or none after an error.
func send(t *testing.T, s *Store, n uint64) []capping.UserID {
	users := make([]capping.UserID, 20+n*397%5_000)
	for i := range users {
		users[i] = capping.UserID(n<<16) + capping.UserID(i)
	}
	verdicts, err := filterAll(s, crashMessage(n), users...)
	want := capping.Allowed
	if err != nil {
		want = capping.Unavailable
	}
	for i, v := range verdicts {
		if v.Outcome != want {
			t.Errorf("user %d: %v with error %v", users[i], v.Outcome, err)
		}
	}
	if err != nil {
		return nil
	}
	return users
}

func requireDown(t *testing.T, s *Store, why string) {
	t.Helper()
	health := s.Health(context.Background())
	require.Equal(t, "down", health.State)
	require.Contains(t, health.Error, "out of service until capper restarts")
	require.Contains(t, health.Error, why)
	verdicts, err := filterAll(s, "late", 1)
	require.ErrorContains(t, err, why)
	require.Equal(t, capping.Unavailable, verdicts[0].Outcome)
	require.ErrorContains(t, s.Erase(context.Background(), 1), why)
}

// TestNoSpaceForTables leaves space for the write-ahead log only. The store must continue, report
// "degraded", and recover when the disk has space.
func TestNoSpaceForTables(t *testing.T) {
	t.Parallel()
	full := tablesRefused{FS: vfs.NewMem(), full: new(atomic.Bool)}
	registry := prometheus.NewRegistry()
	var said testkit.Log
	s, err := Open(context.Background(), Config{Path: "/db", fs: full, Registerer: registry,
		Logger: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	full.full.Store(true)
	_, err = filterAll(s, "m", 1, 2, 3)
	require.NoError(t, err)
	_, err = s.db.AsyncFlush()
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return s.Health(context.Background()).State == "degraded" })
	require.Contains(t, s.Health(context.Background()).Error, "no space left on device")
	_, err = filterAll(s, "n", 1, 2, 3)
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return errorsOf(t, registry, "background") >= 3 })
	full.full.Store(false)
	testkit.Eventually(t, func() bool { return s.Health(context.Background()).State == "ok" })
	require.NoError(t, s.Close())
	require.Equal(t, 1, strings.Count(said.String(), "background work of the embedded store failed"))
	require.NotContains(t, said.String(), ".go:", "no stack")
}

// errorsOf returns the number of counted errors of a kind.
func errorsOf(t *testing.T, registry *prometheus.Registry, kind string) int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "capper_store_errors_total" && metric.GetLabel()[0].GetValue() == kind {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	return 0
}

type tablesRefused struct {
	vfs.FS
	full *atomic.Bool
}

func (d tablesRefused) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.full.Load() && database.IsTable(name) {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	return d.FS.Create(name, category)
}

// TestPanic panics in a call. The call's users must be unavailable, the stack must be in the log, no later
// call may reach Pebble, and Close must release the directory.
func TestPanic(t *testing.T) {
	t.Parallel()
	var said testkit.Log
	dir := t.TempDir()
	s, err := Open(context.Background(), Config{Path: dir, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	_, err = filterAll(s, "m", 1)
	require.NoError(t, err)
	err = s.db.Write(context.Background(), func() error {
		c := new(call)
		c.begin([]capping.UserID{1, 2}, s.runs, func(capping.Instant, int, capping.Log, []byte) ([]byte, bool) {
			panic("boom")
		})
		return s.run(context.Background(), c)
	})
	require.ErrorContains(t, err, "boom")
	requireDown(t, s, "boom")
	_, err = s.Log(context.Background(), 1)
	require.ErrorContains(t, err, "boom")
	require.Contains(t, said.String(), "full_test.go")
	require.NoError(t, s.Close())
	require.NoError(t, s.db.DB.Close()) // Pebble is healthy here; this ends its goroutines
	s = reopen(t, Config{Path: dir})
	verdicts, err := filterAll(s, "m", 1, 2)
	require.NoError(t, err)
	require.Equal(t, []capping.Verdict{{Outcome: capping.Replayed}, {Outcome: capping.Allowed}}, verdicts)
	require.NoError(t, s.Close())
}

// fullDir is the environment variable that makes the test binary open a store on a disk that becomes full.
const fullDir = "CAPPER_TEST_FULL_DIR"

func openFull(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := Open(ctx, Config{Path: dir, fs: newSmallDisk(vfs.Default, database.ProbeSize+100_000)})
	return err
}

// TestOpenGivesUp checks that Open ends with its context while the disk does not respond.
func TestOpenGivesUp(t *testing.T) {
	t.Parallel()
	stalled := stalledDisk{FS: vfs.NewMem(), release: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, Config{Path: "/db", fs: stalled})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(stalled.release)
}

type stalledDisk struct {
	vfs.FS
	release chan struct{}
}

func (d stalledDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	<-d.release
	return d.FS.Create(name, category)
}
