package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/segments"
)

// The real program, killed at more and more distant moments of a publish until
// one comes through: what is live is whole and either the old or the new
// generation, and the next run succeeds.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(folder, "segmentbuild") // the name by which TestMain knows that it is to be the program
	require.NoError(t, os.Symlink(self, program))
	run := func(killAfter time.Duration, args ...string) error {
		cmd := exec.CommandContext(t.Context(), program, args...)
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		return cmd.Wait()
	}
	root := filepath.Join(folder, "out")
	require.NoError(t, run(time.Minute, "generate", "--users", "400000", "--segments", "vip=10%,new=40%,active=40%", "--out", folder))
	build := func(killAfter time.Duration, names ...string) error {
		args := []string{"build", "--to", root, "--force", "--reason", "test"}
		for _, name := range names {
			args = append(args, "--segment", fmt.Sprintf("%s=%s/%s.txt", name, folder, name))
		}
		return run(killAfter, args...)
	}
	live := func() int {
		store, err := segments.OpenStore(t.Context(), root, segments.S3Config{})
		require.NoError(t, err)
		g, err := segments.ReadLiveGeneration(t.Context(), store)
		require.NoError(t, err)
		return len(g.Bitmaps)
	}
	require.NoError(t, build(time.Minute, "vip"))
	kills := 0
	for after := time.Millisecond; ; after += after/8 + time.Millisecond {
		if err := build(after, "vip", "new", "active"); err == nil {
			break
		}
		kills++
		if live() == 3 { // killed after it went live
			require.NoError(t, build(time.Minute, "vip"))
		}
	}
	require.Equal(t, 3, live())
	require.Positive(t, kills)
	require.NoError(t, run(time.Minute, "verify", "--all", "--at", root))
}
