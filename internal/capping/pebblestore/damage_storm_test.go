//go:build storms

package pebblestore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// damagedStore returns a closed store with a send to each of n users. In its tables one byte in about every
// bytes is flipped.
func damagedStore(t *testing.T, n, every int, ids IDs) (dir string, flips int) {
	dir = t.TempDir()
	s := reopen(t, Config{Path: dir, IDs: ids})
	users := persons(s, manyUsers(n))
	for first := 0; first < n; first += 100_000 {
		_, err := filterAll(s, "m", users[first:min(n, first+100_000)]...)
		require.NoError(t, err)
	}
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.db.Compact(context.Background(), []byte{database.KeyLog}, []byte{database.KeyEnd}, true))
	require.NoError(t, s.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	for _, table := range tables {
		content, err := os.ReadFile(table)
		require.NoError(t, err)
		for at := every / 2; at < len(content)-60_000; at += every {
			content[at] ^= 1
			flips++
		}
		require.NoError(t, os.WriteFile(table, content, 0o600))
	}
	return dir, flips
}

// usersOfBlock is more than the number of logs with one send that fit into a block.
const usersOfBlock = 400

// TestDamagedBlocks flips bytes in all tables of a store. Only the users of those blocks may be unavailable,
// and a repeated call must return at once. No user may be treated as new. Erasing the users repairs them
// permanently.
func TestDamagedBlocks(t *testing.T) {
	t.Parallel()
	testDamagedBlocks(t, IDs{})
}

// TestDamagedBlocksOfImages is TestDamagedBlocks with a store for images.
func TestDamagedBlocksOfImages(t *testing.T) {
	t.Parallel()
	testDamagedBlocks(t, uuids)
}

func testDamagedBlocks(t *testing.T, ids IDs) {
	const all = 150_000
	dir, flips := damagedStore(t, all, 150_000, ids)
	require.Greater(t, flips, 15)
	s := reopen(t, Config{Path: dir, IDs: ids, SweepInterval: time.Hour})
	users := persons(s, manyUsers(all))
	lost := filterParts(t, s, "m", users, capping.Replayed)
	require.GreaterOrEqual(t, len(lost), flips)
	require.LessOrEqual(t, len(lost), flips*usersOfBlock)
	began := time.Now()
	require.False(t, s.db.Damage().Unfiltered)
	require.Equal(t, lost, filterParts(t, s, "m", users, capping.Replayed))
	require.Less(t, time.Since(began), time.Minute, "each damaged log costs tens of milliseconds to look at")
	health := s.Health(context.Background())
	require.Equal(t, "degraded", health.State)
	require.Contains(t, health.Error, fmt.Sprintf("%d database blocks are damaged", s.db.Damage().Blocks))
	_, err := s.Log(context.Background(), lost[0])
	require.ErrorContains(t, err, "checksum mismatch")
	sweepAll(t, s)

	// Cached logs are known, and stay known after a write.
	eraseAll(t, s, lost)
	verdicts, err := filterAll(s, "n", lost...)
	require.NoError(t, err)
	requireAll(t, capping.Allowed, verdicts)
	require.Empty(t, filterParts(t, s, "n", users[:100_000], capping.Allowed, capping.Replayed))
	require.NoError(t, s.Close())

	s = reopen(t, Config{Path: dir, IDs: ids, SweepInterval: time.Hour})
	verdicts, err = filterAll(s, "n", lost...)
	require.NoError(t, err)
	requireAll(t, capping.Replayed, verdicts)
	for _, user := range lost {
		require.Len(t, logOf(t, s, user), 1, "the erased send is gone, that after it is not")
	}
	require.NoError(t, s.Close())
}

func eraseAll(t *testing.T, s *Store, users []capping.UserID) {
	t.Helper()
	var all sync.WaitGroup
	for part := range slices.Chunk(users, len(users)/16+1) {
		all.Go(func() {
			for _, user := range part {
				if err := s.Erase(context.Background(), user); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// filterParts filters users in calls of 100,000 and returns the unavailable users. Every other user must
// have one of the given outcomes.
func filterParts(t *testing.T, s *Store, message string, users []capping.UserID,
	want ...capping.Outcome) (unavailable []capping.UserID) {
	t.Helper()
	for part := range slices.Chunk(users, 100_000) {
		verdicts, _ := filterAll(s, message, part...)
		for i, v := range verdicts {
			if v.Outcome == capping.Unavailable {
				unavailable = append(unavailable, part[i])
				continue
			}
			require.Contains(t, want, v.Outcome)
		}
	}
	return unavailable
}
