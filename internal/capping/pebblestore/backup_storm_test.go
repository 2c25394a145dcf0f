//go:build storms

package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

func newAnswered() *answered {
	return &answered{allowed: map[capping.UserID]map[capping.Token]bool{},
		asked: map[capping.UserID]map[capping.Token]bool{}}
}

// restore restores an archive into a new directory.
func restore(t *testing.T, archive []byte) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	_, err := database.Restore(bytes.NewReader(archive), dir, false, time.Now())
	require.NoError(t, err)
	return dir
}

// TestBackupUnderLoad checks backups under load. A backup must contain every send that was answered before
// its start, and no send that nobody asked for. No user may be unavailable because of the backup, and the
// restored store must decide by its sends.
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
		require.Eventually(t, func() bool { return calls.Load() > begun+10 }, 2*time.Minute, time.Millisecond)
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
	require.NoDirExists(t, database.CopyFolder(vfs.Default, s.db.Health(t.Context()).Path))
}

// requireSends checks that the store has all sends that were answered before and none that nobody asked for,
// and decides by these sends.
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

// TestDamagedBackup checks that an archive with a changed, missing or additional byte is rejected.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	defer s.Close()
	_, err := filterAll(s, "m", manyUsers(3000)...)
	require.NoError(t, err)
	archive := archiveOf(t, s)
	refused := func(damaged []byte, what string) {
		dir := filepath.Join(t.TempDir(), "db")
		_, err := database.Restore(bytes.NewReader(damaged), dir, true, time.Now())
		require.ErrorIs(t, err, database.ErrDamaged, what)
		require.NoDirExists(t, dir, what)
	}
	at := func(i int) int { // both ends completely, and samples in between
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
