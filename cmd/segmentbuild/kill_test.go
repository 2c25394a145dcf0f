//go:build storms

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
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
	require.NoError(t, run(time.Minute, "generate", "--users", "400000", "--segments", "vip=10%,new=40%,active=40%",
		"--out", folder))
	build := func(killAfter time.Duration, names ...string) error {
		args := []string{"build", "--to", root, "--force", "--reason", "test"}
		for _, name := range names {
			args = append(args, "--segment", fmt.Sprintf("%s=%s/%s.txt", name, folder, name))
		}
		return run(killAfter, args...)
	}
	live := func() int {
		store, err := objects.Open(t.Context(), root, objects.S3Config{})
		require.NoError(t, err)
		g, err := segmentstest.ReadLive(t.Context(), store)
		require.NoError(t, err)
		return len(g.Bitmaps)
	}
	require.NoError(t, build(time.Minute, "vip"))
	kills := 0
	for after := time.Millisecond; ; after += after/8 + time.Millisecond {
		if err := build(after, "vip", "new", "active"); err != nil {
			kills++
		} else if kills > 0 { // else the killing was late
			break
		}
		if live() == 3 { // killed after it went live
			require.NoError(t, build(time.Minute, "vip"))
		}
	}
	require.Equal(t, 3, live())
	require.NoError(t, run(time.Minute, "verify", "--all", "--at", root))
}

// Builds, roll-backs and gc at once, as programs, most of them killed at some
// moment: what is live is always whole, and whoever comes next succeeds.
func TestKilledWhileOthersBuildRollBackAndCollect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(folder, "segmentbuild")
	require.NoError(t, os.Symlink(self, program))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("1\n2\n3\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.txt"), []byte("2\n3\n4\n"), 0o644))
	bucket, err := s3test.NewBucket(t.Context())
	require.NoError(t, err)
	for name, at := range map[string]string{"directory": filepath.Join(folder, "out"), "s3": "s3://" + bucket +
		"/prod"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(killAfter time.Duration, args ...string) error {
				cmd := exec.CommandContext(t.Context(), program, args...)
				require.NoError(t, cmd.Start())
				timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
				defer timer.Stop()
				return cmd.Wait()
			}
			build := []string{"build", "--to", at, "--force", "--reason", "test", "--segment", "vip=" + folder +
				"/a.txt", "--segment"}
			require.NoError(t, run(time.Minute, append(build, "new="+folder+"/a.txt", "--precedence", "vip,new")...))
			store, err := objects.Open(t.Context(), at, objects.S3Config{})
			require.NoError(t, err)
			for range 6 {
				list, err := publish.List(t.Context(), store)
				require.NoError(t, err)
				var wg sync.WaitGroup
				for _, args := range [][]string{
					append(slices.Clone(build), "new="+folder+"/a.txt", "--precedence", "vip,new"),
					append(slices.Clone(build), "new="+folder+"/b.txt", "--precedence", "vip,new"),
					{"rollback", list[len(list)-1].Generation, "--at", at},
					{"gc", "--keep", "1", "--grace", "0s", "--lease", "500ms", "--delete", "--at", at},
				} {
					wg.Go(func() { _ = run(time.Duration(rand.IntN(300))*time.Millisecond, args...) })
				}
				wg.Wait()
				require.NoError(t, run(time.Minute, "verify", "--at", at))
			}
			require.NoError(t, run(time.Minute, append(slices.Clone(build), "new="+folder+"/b.txt", "--precedence",
				"vip,new")...))
			require.NoError(t, run(time.Minute, "gc", "--keep", "1", "--grace", "0s", "--delete", "--at", at))
			require.NoError(t, run(time.Minute, "verify", "--all", "--at", at))
		})
	}
}
