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
	"capper/internal/capping/pebblestore/backup"
	"capper/internal/capping/pebblestore/directory"
)

// answered is what callers were told: the sends that were allowed, by user, and what was asked
// at all.
type answered struct {
	mu             sync.Mutex
	allowed, asked map[capping.UserID]map[capping.Token]bool
}

func newAnswered() *answered {
	return &answered{allowed: map[capping.UserID]map[capping.Token]bool{},
		asked: map[capping.UserID]map[capping.Token]bool{}}
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

// now is a copy of the sends that were allowed.
func (a *answered) now() map[capping.UserID]map[capping.Token]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	copied := make(map[capping.UserID]map[capping.Token]bool, len(a.allowed))
	for user, tokens := range a.allowed {
		copied[user] = maps.Clone(tokens)
	}
	return copied
}

// restore puts an archive back into a new directory.
func restore(t *testing.T, archive []byte) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	_, err := backup.Restore(bytes.NewReader(archive), dir, false, time.Now())
	require.NoError(t, err)
	return dir
}

// Under load, a backup has every send that was answered before it began and none that nobody
// asked for; nobody is unavailable for it; and the store that is put back decides as if time
// had stood still.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	defer s.Close()
	told, unavailable, calls := newAnswered(), atomic.Int64{}, atomic.Int64{}
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for caller := range 3 {
		callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				message, users := fmt.Sprintf("m-%d-%d", caller, i), manyUsers(2000)[rand.IntN(1000):][:1000]
				told.ask(users, capping.Message{ID: message}.Token())
				verdicts, _ := filterAll(s, message, users...)
				unavailable.Add(int64(told.tell(users, capping.Message{ID: message}.Token(), verdicts)))
				calls.Add(1)
			}
		})
	}
	for range 2 {
		begun := calls.Load()
		require.Eventually(t, func() bool { return calls.Load() > begun+10 }, time.Minute, time.Millisecond)
		before := told.now()
		var archive bytes.Buffer
		require.NoError(t, s.Backup(t.Context(), &archive, nil))
		again := reopen(t, Config{Path: restore(t, archive.Bytes())})
		requireSends(t, again, before, told)
		require.NoError(t, again.Close())
	}
	stop()
	callers.Wait()
	require.Zero(t, unavailable.Load())
	require.NoDirExists(t, directory.CopyFolder(vfs.Default, s.db.Health(t.Context()).Path))
}

// requireSends demands of the store all sends that were answered before, and none that was
// never asked for; and that it decides by them.
func requireSends(t *testing.T, s *Store, before map[capping.UserID]map[capping.Token]bool, told *answered) {
	t.Helper()
	told.mu.Lock()
	defer told.mu.Unlock()
	for user, tokens := range before {
		log, err := s.Log(t.Context(), user)
		require.NoError(t, err)
		found := map[capping.Token]int{}
		for _, e := range log.Entries() {
			found[e.Token]++
			require.True(t, told.asked[user][e.Token], "user %d has a send that nobody asked for", user)
			require.Equal(t, 1, found[e.Token], "user %d has a send twice", user)
		}
		for token := range tokens {
			require.Contains(t, found, token, "user %d lacks a send that was answered before the backup", user)
		}
		b := benchBatch("next", []capping.UserID{user})
		b.Rules = [][]capping.Rule{{(&capping.Limit{Max: log.Len(), Window: 24 * time.Hour}).Rule(0, 0)}}
		b.Record = false
		verdicts := make([]capping.Verdict, 1)
		require.NoError(t, s.Filter(t.Context(), b, verdicts))
		require.Equal(t, capping.Denied, verdicts[0].Outcome, "user %d", user)
	}
}

func archiveOf(t *testing.T, s *Store) []byte {
	t.Helper()
	var archive bytes.Buffer
	require.NoError(t, s.Backup(t.Context(), &archive, nil))
	return archive.Bytes()
}

// Of an archive no byte may be different, none missing and none too many.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	defer s.Close()
	_, err := filterAll(s, "m", manyUsers(3000)...)
	require.NoError(t, err)
	archive := archiveOf(t, s)
	refused := func(damaged []byte, what string) {
		dir := filepath.Join(t.TempDir(), "db")
		_, err := backup.Restore(bytes.NewReader(damaged), dir, true, time.Now())
		require.ErrorIs(t, err, backup.ErrDamaged, what)
		require.NoDirExists(t, dir, what)
	}
	at := func(i int) int { // the ends whole, and samples of what is between
		switch {
		case i < 40:
			return i * 13
		case i < 200:
			return len(archive) - 1 - (i-40)*31
		}
		return rand.IntN(len(archive))
	}
	for i := range 300 {
		damaged := bytes.Clone(archive)
		damaged[at(i)] ^= 1 << rand.IntN(8)
		refused(damaged, fmt.Sprintf("a bit of byte %d of %d", at(i), len(archive)))
		refused(archive[:at(i)], fmt.Sprintf("cut off at %d", at(i)))
	}
	refused(append(bytes.Clone(archive), 0), "a byte too many")
	refused(nil, "nothing")
}

// A store that was used after the backup is not put back without a word, and one that was says so.
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

	_, err = backup.Restore(bytes.NewReader(archive), dir, false, time.Now())
	var loss *backup.LossError
	require.ErrorAs(t, err, &loss)
	_, err = backup.Restore(bytes.NewReader(archive), dir, true, time.Now())
	require.ErrorContains(t, err, "is not empty")
	require.NoError(t, os.RemoveAll(dir))
	_, err = backup.Restore(bytes.NewReader(archive), dir, true, time.Now())
	require.NoError(t, err)

	s = reopen(t, Config{Path: dir})
	log, err := s.Log(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 1, log.Len())
	require.Contains(t, strings.Join(s.Health(t.Context()).Warnings, "; "), "store restored from a backup: sends from")
	require.NoError(t, s.Close())
	s = reopen(t, Config{Path: dir}) // and it is a store as any other
	require.NoError(t, s.Close())
}

// What is extracted halfway is refused by a start, whatever is missing.
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
		m, err := backup.Verify(bytes.NewReader(archive))
		require.NoError(t, err)
		if most == len(m.Files) {
			break
		}
		require.NoError(t, backup.Extract(bytes.NewReader(archive), m, dir))
		for _, file := range m.Files[most:] {
			require.NoError(t, os.Remove(filepath.Join(dir, file.Name)))
		}
		_, err = Open(t.Context(), Config{Path: dir, MustExist: true})
		require.Error(t, err, "with %d files", most)
	}
}

// A disk that refuses the copy, wherever, fails the backup and nothing else.
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

// A reader that goes away ends the backup, and the next one begins.
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

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "BACKUP"), 0o700)) // of a process that was killed
	s = reopen(t, Config{Path: dir})
	require.NoDirExists(t, filepath.Join(dir, "BACKUP"))
	require.NoError(t, s.Close())
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// BenchmarkFilterBesideBackup is what a call of 1,000 users costs while backups are made one after the
// other, and without: compare its processor time, which has the backups' in it, and the longest call.
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
