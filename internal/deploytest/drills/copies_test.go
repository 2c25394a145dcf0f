//go:build storms

package drills

import (
	"capper/internal/testcluster"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A backup has one copy of each shard and nothing else: what another save left is refused, and so is a copy too many
// when it is put back, before anything goes over.
func TestABackupHasOneCopyOfEachShard(t *testing.T) {
	t.Parallel()
	addrs := testcluster.Start(t, testcluster.Options{NodeTimeout: time.Minute}).Addrs
	for n := range 100 {
		command(t, addrs[0], "-c", "set", fmt.Sprint("key", n), "value")
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	backup(t, "save", addrs[0], first)
	copies := copiesOf(t, first)
	require.Len(t, copies, 3)
	private(t, first)

	require.NoError(t, os.Mkdir(second+".part", 0o755))
	left := filepath.Join(second+".part", strings.Repeat("0", 40)+".rdb")
	copyTo(t, copies[0], left)
	require.Contains(t, refusal(t, "save", addrs[0], second), "rm -r "+second+".part")
	require.FileExists(t, left, "it may be of a save that runs")
	require.NoDirExists(t, second)
	require.NoError(t, os.RemoveAll(second+".part"))
	backup(t, "save", addrs[0], second+"/")
	require.Len(t, copiesOf(t, second), 3)

	for _, addr := range addrs {
		command(t, addr, "flushall")
	}
	extra := filepath.Join(second, filepath.Base(left))
	copyTo(t, copies[0], extra)
	require.Contains(t, refusal(t, "restore", addrs[0], second), extra+" is not what was saved")
	inside(t, second, "sha256sum since shards ./*.rdb >SHA256SUMS")
	require.Contains(t, refusal(t, "restore", addrs[0], second), extra+" is of no shard of this backup")
	require.Equal(t, "0", command(t, addrs[0], "dbsize"), "something went over")
	inside(t, second, "mv shards .. && sha256sum since ./*.rdb >SHA256SUMS") // as versions before made it
	require.Contains(t, refusal(t, "restore", addrs[0], second), "keys of it are in another copy")

	for _, addr := range addrs {
		command(t, addr, "flushall")
	}
	inside(t, second, "mv ../shards . && rm 000*.rdb && sha256sum since shards ./*.rdb >SHA256SUMS")
	backup(t, "restore", addrs[0], second)
	require.Equal(t, "value", command(t, addrs[0], "-c", "get", "key42"))
}

// While slots are moved a copy of each shard is no copy of the whole. A save that ends early leaves nothing in the way
// of the next.
func TestABackupIsNotMadeWhileSlotsMove(t *testing.T) {
	t.Parallel()
	addrs := testcluster.Start(t, testcluster.Options{NodeTimeout: time.Minute}).Addrs
	to := filepath.Join(t.TempDir(), "backup")
	taker := command(t, addrs[2], "cluster", "myid")
	moves := "#!/bin/sh\ncase \"$*\" in *--rdb*)\n"
	for _, addr := range []string{addrs[2], addrs[0], addrs[1]} {
		_, port, _ := strings.Cut(addr, ":")
		moves += "redis-cli -p " + port + " cluster setslot 0 node " + taker + " >/dev/null\n"
	}
	fake := filepath.Join(t.TempDir(), "redis-cli")
	require.NoError(t, os.WriteFile(fake, []byte(moves+"esac\nexec redis-cli \"$@\"\n"), 0o755))
	out, err := scriptBy(t, fake, "save", addrs[0], to)
	require.Error(t, err, out)
	require.Contains(t, out, "slots were moved meanwhile")
	require.NoDirExists(t, to)
	require.NoDirExists(t, to+".part")

	command(t, addrs[2], "cluster", "setslot", "0", "migrating", command(t, addrs[0], "cluster", "myid"))
	require.Contains(t, refusal(t, "save", addrs[0], to), "slots are being moved")
	command(t, addrs[2], "cluster", "setslot", "0", "stable")
	backup(t, "save", addrs[0], to)
}

// private: copies say who was sent what, so they are their owner's alone.
func private(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		about, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, about.Mode().Perm()&0o077, "%s has mode %v", path, about.Mode())
		return nil
	}))
}

func copiesOf(t *testing.T, backup string) []string {
	t.Helper()
	copies, err := filepath.Glob(filepath.Join(backup, "*.rdb"))
	require.NoError(t, err)
	return copies
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o644))
}

func inside(t *testing.T, dir, line string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
