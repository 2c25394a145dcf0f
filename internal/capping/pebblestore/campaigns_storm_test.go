//go:build storms

package pebblestore

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// inLogs returns the number of entries in all logs, by message and channel.
func inLogs(t *testing.T, s *Store) map[idText]int64 {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{database.KeyLog},
		UpperBound: []byte{database.KeyLog + 1}})
	require.NoError(t, err)
	found := map[idText]int64{}
	for ok := it.First(); ok; ok = it.Next() {
		log, _, err := decodeLog(it.Value())
		require.NoError(t, err)
		for _, e := range log.Entries() {
			found[idText{e.Token, e.Channel}]++
		}
	}
	require.NoError(t, it.Close())
	return found
}

// requireCounted checks that the counts equal the entries in the logs.
func requireCounted(t *testing.T, s *Store) {
	t.Helper()
	page, err := s.ListMessages(context.Background(), messages.Query{Max: 100_000})
	require.NoError(t, err)
	require.Nil(t, page.Next)
	logs := inLogs(t, s)
	for _, c := range page.Found {
		at := idText{c.Message.Token(), c.Channel}
		require.Equal(t, logs[at], c.Recorded-c.Released, "%v on channel %d: recorded %d, released %d", c.Message,
			c.Channel, c.Recorded, c.Released)
		delete(logs, at)
	}
	require.Empty(t, logs, "recorded, and not counted")
}

// TestCountsAreTheLogsAfterAKill kills a process during calls repeatedly, and checks that counts and logs
// are equal.
func TestCountsAreTheLogsAfterAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 4 {
		child := exec.Command(os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), campaignsDir+"="+dir)
		child.Stderr = os.Stderr
		stdout, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = io.ReadFull(stdout, make([]byte, 60+rand.IntN(100)))
		require.NoError(t, err, "the child ended by itself")
		require.NoError(t, child.Process.Kill())
		_ = child.Wait() // the process was killed
		s, err := Open(context.Background(), Config{Path: dir})
		require.NoError(t, err)
		require.Len(t, inLogs(t, s), 9)
		requireCounted(t, s)
		for range 20 { // the store continues to count
			require.NoError(t, callOnce(s))
		}
		requireCounted(t, s)
		require.NoError(t, s.Close())
	}
}
