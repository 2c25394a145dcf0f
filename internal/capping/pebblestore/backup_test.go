package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// answered records the allowed sends by user, and all messages that were asked for.
type answered struct {
	mu             sync.Mutex
	allowed, asked map[capping.UserID]map[capping.Token]bool
}

func note(of map[capping.UserID]map[capping.Token]bool, user capping.UserID, token capping.Token) {
	if of[user] == nil {
		of[user] = map[capping.Token]bool{}
	}
	of[user][token] = true
}

func (a *answered) ask(users []capping.UserID, token capping.Token) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, user := range users {
		note(a.asked, user, token)
	}
}

func (a *answered) tell(users []capping.UserID, token capping.Token, verdicts []capping.Verdict) (unavailable int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, user := range users {
		switch verdicts[i].Outcome {
		case capping.Allowed, capping.Replayed:
			note(a.allowed, user, token)
		case capping.Unavailable:
			unavailable++
		}
	}
	return unavailable
}

// now returns a copy of the allowed sends.
func (a *answered) now() map[capping.UserID]map[capping.Token]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	copied := make(map[capping.UserID]map[capping.Token]bool, len(a.allowed))
	for user, tokens := range a.allowed {
		copied[user] = maps.Clone(tokens)
	}
	return copied
}

func archiveOf(t *testing.T, s *Store) []byte {
	t.Helper()
	var archive bytes.Buffer
	require.NoError(t, s.Backup(t.Context(), &archive, nil))
	return archive.Bytes()
}

// TestRestoreOverLaterSends checks that restoring over a store with later sends needs an explicit
// acceptance, and that the restored store reports the loss.
func TestRestoreOverLaterSends(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	s := reopen(t, Config{Path: dir})
	_, err := filterAll(s, "before", 1)
	require.NoError(t, err)
	archive := archiveOf(t, s)
	_, err = filterAll(s, "after", 1)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	_, err = database.Restore(bytes.NewReader(archive), dir, false, time.Now())
	var loss *database.LossError
	require.ErrorAs(t, err, &loss)
	_, err = database.Restore(bytes.NewReader(archive), dir, true, time.Now())
	require.ErrorContains(t, err, "must be empty")
	require.NoError(t, os.RemoveAll(dir))
	_, err = database.Restore(bytes.NewReader(archive), dir, true, time.Now())
	require.NoError(t, err)

	s = reopen(t, Config{Path: dir})
	log, err := s.Log(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 1, log.Len())
	require.Contains(t, strings.Join(s.Health(t.Context()).Warnings, "; "), "store restored from a backup: sends from")
	require.NoError(t, s.Close())
	s = reopen(t, Config{Path: dir}) // the restored store works like any other
	require.NoError(t, s.Close())
}

// TestHalfRestored checks that a start rejects a partly extracted archive, whichever file is missing.
func TestHalfRestored(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	_, err := filterAll(s, "m", manyUsers(3000)...)
	require.NoError(t, err)
	require.NoError(t, s.db.Flush())
	archive := archiveOf(t, s)
	require.NoError(t, s.Close())
	for most := 0; ; most++ {
		dir := t.TempDir()
		m, err := database.Verify(bytes.NewReader(archive))
		require.NoError(t, err)
		if most == len(m.Files) {
			break
		}
		require.NoError(t, database.Extract(bytes.NewReader(archive), m, dir))
		for _, file := range m.Files[most:] {
			require.NoError(t, os.Remove(filepath.Join(dir, file.Name)))
		}
		_, err = Open(t.Context(), Config{Path: dir, MustExist: true})
		require.Error(t, err, "with %d files", most)
	}
}

// TestBackupRefusedByDisk checks that a refused write in the copy fails the backup and nothing else.
func TestBackupRefusedByDisk(t *testing.T) {
	t.Parallel()
	refusals := 0
	for fail := int64(0); ; fail++ {
		disk, left := vfs.NewMem(), atomic.Int64{}
		left.Store(1 << 40)
		failing := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.Contains(op.Path, "/BACKUP") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && left.Add(-1) < 0 {
				return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		s := reopen(t, Config{Path: "/db", fs: failing})
		_, err := filterAll(s, "before", 1)
		require.NoError(t, err)
		left.Store(fail)
		_, end, err := s.db.Copy()
		left.Store(1 << 40)
		if err == nil {
			require.NoError(t, errors.Join(end(), s.Close()))
			break
		}
		refusals++
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, "ok", s.Health(t.Context()).State)
		verdicts, err := filterAll(s, "after", 1)
		require.NoError(t, err)
		require.Equal(t, capping.Allowed, verdicts[0].Outcome)
		require.NoError(t, s.Close())
	}
	require.Greater(t, refusals, 10)
}

// TestBackupOfReaderThatGoes checks that a disconnected reader ends the backup, and that the next backup
// works.
func TestBackupOfReaderThatGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, Config{Path: dir})
	_, err := filterAll(s, "m", manyUsers(1000)...)
	require.NoError(t, err)
	gone := errors.New("gone")
	require.ErrorIs(t, s.Backup(t.Context(), failingWriter{gone}, nil), gone)
	require.NoDirExists(t, filepath.Join(dir, "BACKUP"))
	require.NotEmpty(t, archiveOf(t, s))
	require.NoError(t, s.Close())

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "BACKUP"), 0o700)) // left by a process that was killed
	s = reopen(t, Config{Path: dir})
	require.NoDirExists(t, filepath.Join(dir, "BACKUP"))
	require.NoError(t, s.Close())
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// BenchmarkFilterBesideBackup measures calls of 1,000 users with and without continuous backups. Its
// processor time includes the backups; the longest call is reported too.
func BenchmarkFilterBesideBackup(b *testing.B) {
	for _, backups := range []bool{false, true} {
		b.Run(fmt.Sprintf("backups=%v", backups), func(b *testing.B) { benchmarkBesideBackup(b, backups) })
	}
}

func benchmarkBesideBackup(b *testing.B, backups bool) {
	s, err := Open(b.Context(), Config{Path: b.TempDir()})
	require.NoError(b, err)
	users := manyUsers(1_000_000)
	for first := 0; first < len(users); first += 100_000 {
		_, err := filterAll(s, "past", users[first:first+100_000]...)
		require.NoError(b, err)
	}
	require.NoError(b, s.db.Flush())
	ctx, stop := context.WithCancel(b.Context())
	var made atomic.Int64
	var all sync.WaitGroup
	if backups {
		all.Go(func() {
			for ctx.Err() == nil {
				if s.Backup(ctx, io.Discard, nil) == nil {
					made.Add(1)
				}
			}
		})
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		_, err := filterAll(s, fmt.Sprint("m-", i), users[rand.IntN(len(users)-1000):][:1000]...)
		took = append(took, time.Since(begun))
		require.NoError(b, err)
	}
	stop()
	all.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(made.Load()), "backups")
	require.NoError(b, s.Close())
}
