package pebblestore

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// tortures lists the kinds of faults. Each fault serves the store on the round's disk under load at least
// once, and leaves the disk for the next round.
var tortures = []struct {
	name    string
	inflict func(*torture)
}{
	{"kill -9 of the process", killProcess},
	{"a power cut that keeps nothing unsynced", func(r *torture) { r.cutPower(0) }},
	{"a power cut that keeps half of what is unsynced", func(r *torture) { r.cutPower(50) }},
	{"a power cut that keeps all that is unsynced", func(r *torture) { r.cutPower(100) }},
	{"a disk that refuses to sync", refuseSyncs},
	{"a disk that stalls", stallSyncs},
	{"a full disk", fillDisk},
	{"a disk without room for tables", refuseTables},
	{"an older copy in place of the directory", putOlderCopy},
	{"the newest log file cut short after a stop", cutLog},
	{"the newest log files gone after a power cut", loseLogs},
}

func killProcess(r *torture) {
	dir, err := os.MkdirTemp("", "capper-torture-")
	require.NoError(r, err)
	defer func() { require.NoError(r, os.RemoveAll(dir)) }()
	place := filepath.Join(dir, "db")
	copyStore(r.T, r.disk, "/db", vfs.Default, place)
	for range 1 + r.rng.IntN(2) {
		served := serveStore(r.T, place, r.ids)
		r.load(served, func() { served.kill(r.T) })
		served.end()
	}
	r.disk = vfs.NewCrashableMem()
	copyStore(r.T, vfs.Default, place, r.disk, "/db")
}

// copyStore copies a store and the file beside it.
func copyStore(t testing.TB, from vfs.FS, place string, to vfs.FS, copied string) {
	t.Helper()
	for _, suffix := range []string{"", ".id"} {
		_, err := vfs.Clone(from, to, place+suffix, copied+suffix, vfs.CloneSync)
		require.NoError(t, err)
	}
	root, err := to.OpenDir(path.Dir(copied))
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	require.NoError(t, root.Close())
}

// copied returns a copy of the disk.
func copied(t testing.TB, disk vfs.FS) *vfs.MemFS {
	t.Helper()
	c := vfs.NewCrashableMem()
	copyStore(t, disk, "/db", c, "/db")
	return c
}

func (r *torture) cutPower(percent int) {
	var cut *vfs.MemFS
	r.serve(r.disk, func(*Store) { cut = r.cut(r.disk, percent) })
	r.disk = cut
}

func refuseSyncs(r *torture) {
	var refuse atomic.Bool
	all, percent := r.rng.IntN(2) == 0, r.percent()
	failing := errorfs.Wrap(r.disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case !refuse.Load() || !strings.HasSuffix(op.Path, ".log"):
		case isSync(op.Kind), all && op.Kind.ReadOrWrite() == errorfs.OpIsWrite:
			return errors.New("the disk refuses")
		}
		return nil
	}))
	var cut *vfs.MemFS
	r.serve(failing, func(*Store) {
		refuse.Store(true)
		r.storm.leavesOpen(r.T)
		cut = r.cut(r.disk, percent)
	})
	r.disk = cut
}

func isSync(kind errorfs.OpKind) bool {
	return kind == errorfs.OpFileSync || kind == errorfs.OpFileSyncData || kind == errorfs.OpFileSyncTo
}

// stallSyncs stalls syncs until calls reach their deadline, and then continues.
func stallSyncs(r *torture) {
	var stalled atomic.Bool
	release := make(chan struct{})
	stalling := errorfs.Wrap(r.disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if stalled.Load() && isSync(op.Kind) {
			<-release
		}
		return nil
	}))
	r.serve(stalling, func(*Store) {
		stalled.Store(true)
		r.storm.leavesOpen(r.T)
		stalled.Store(false)
		close(release)
		r.storm.answered(r.T, 20)
	})
}

// fillDisk fills the disk. The store continues from the disk, or from what a power cut leaves of it.
func fillDisk(r *torture) {
	small, room, cutToo, percent := newSmallDisk(r.disk, 1<<40), r.rng.Int64N(1<<20), r.rng.IntN(2) == 0, r.percent()
	left := r.disk
	r.serve(small, func(s *Store) {
		small.left.Store(room)
		testkit.Eventually(r, func() bool { return s.db.Broken() != nil }, "the disk is full")
		r.storm.leavesOpen(r.T)
		if cutToo {
			left = r.cut(r.disk, percent)
		}
	})
	r.disk = left
}

func refuseTables(r *torture) {
	tables := tablesRefused{FS: r.disk, full: new(atomic.Bool)}
	r.serve(tables, func(s *Store) {
		state := func(want string) func() bool {
			return func() bool { return s.Health(context.Background()).State == want }
		}
		tables.full.Store(true)
		_, err := s.db.AsyncFlush()
		require.NoError(r, err)
		testkit.Eventually(r, state("degraded"))
		r.storm.answered(r.T, 20)
		tables.full.Store(false)
		testkit.Eventually(r, state("ok"))
	})
}

// putOlderCopy replaces the directory by an older copy, by a copy made under load, or by nothing. The store
// must reject each of them.
func putOlderCopy(r *torture) {
	r.serve(r.disk, func(*Store) {})
	misplaced, which := copied(r.T, r.disk), r.rng.IntN(3)
	r.serve(r.disk, func(*Store) {
		if which == 1 {
			misplaced = r.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: r.rng})
			r.storm.answered(r.T, 20)
		}
	})
	copyFile(r.T, r.disk, misplaced, "/db.id")
	why := "the store lacks its newest sends"
	if which == 2 {
		require.NoError(r, misplaced.RemoveAll("/db"))
		why = "the store is missing"
	}
	r.refused(misplaced, why)
}

// cutLog truncates the newest log file of a closed store. The store must reject this.
func cutLog(r *torture) {
	r.serve(r.disk, func(*Store) {})
	misplaced := copied(r.T, r.disk)
	logs := logFiles(r.T, misplaced)
	cutFile(r.T, misplaced, logs[len(logs)-1], r.rng)
	r.refused(misplaced, "the store lacks its newest sends")
}

// loseLogs removes the log files after a power cut. The store must reject this.
func loseLogs(r *torture) {
	r.cutPower(r.percent())
	misplaced := copied(r.T, r.disk)
	for _, log := range logFiles(r.T, misplaced) {
		require.NoError(r, misplaced.Remove(log))
	}
	r.refused(misplaced, "newest sends of the store are missing")
}

// refused checks that Open rejects the disk with the given reason.
func (r *torture) refused(disk vfs.FS, why string) {
	r.Helper()
	_, err := Open(context.Background(), Config{Path: "/db", IDs: r.ids, fs: disk})
	require.ErrorContains(r, err, why, r.latest)
}

// logFiles returns the store's log files, newest last.
func logFiles(t testing.TB, disk vfs.FS) (logs []string) {
	t.Helper()
	names, err := disk.List("/db")
	require.NoError(t, err)
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, disk.PathJoin("/db", name))
		}
	}
	require.NotEmpty(t, logs)
	return logs
}

func copyFile(t testing.TB, from, to vfs.FS, name string) {
	t.Helper()
	_, err := vfs.Clone(from, to, name, name, vfs.CloneSync)
	require.NoError(t, err)
}

// cutFile truncates the file at a random length.
func cutFile(t testing.TB, disk vfs.FS, name string, rng *rand.Rand) {
	t.Helper()
	file, err := disk.Open(name)
	require.NoError(t, err)
	content, err := io.ReadAll(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.NotEmpty(t, content)
	cut, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = cut.Write(content[:rng.IntN(len(content))])
	require.NoError(t, err)
	require.NoError(t, cut.Sync())
	require.NoError(t, cut.Close())
}
