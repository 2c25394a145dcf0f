//go:build storms

package pebblestore

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// TestOpenOnFullDisk opens a store whose write-ahead log must become a table on a full disk. Pebble alone
// would retry without end.
func TestOpenOnFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := tablesRefused{FS: vfs.Default, full: new(atomic.Bool)}
	full.full.Store(true)
	s := reopen(t, Config{Path: dir, fs: full})
	users := []capping.UserID{1, 2, 3}
	_, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	for i := range 60 { // the write-ahead log grows without a flush
		require.NoError(t, s.db.Set([]byte{database.KeyMessage, byte(i)}, make([]byte, 1<<20), pebble.NoSync))
	}
	require.NoError(t, s.Close())

	// The disk is full before the start.
	_, err = Open(context.Background(), Config{Path: dir, fs: newSmallDisk(vfs.Default, database.ProbeSize/2)})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "at least 4 MiB of free space")

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second) // shorter than the timeout of openFull
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), fullDir+"="+dir)
	output, err := child.CombinedOutput()
	require.Error(t, err)
	require.NoError(t, ctx.Err())
	require.Contains(t, string(output), "no space left on device")
	require.Less(t, len(output), 4000)
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Empty(t, tables, "an attempt leaves nothing that takes the next one's space")

	s = reopen(t, Config{Path: dir})
	verdicts, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	for _, v := range verdicts {
		require.Equal(t, capping.Replayed, v.Outcome)
	}
	require.NoError(t, s.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, file := range left {
		require.NotEqual(t, "space.probe", file.Name())
	}
}
