//go:build storms

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Files that took a machine down are refused as any other, by the real program,
// in little more memory than it takes to start.
func TestConfigurationsThatExplodeAreRefused(t *testing.T) {
	t.Parallel()
	aliases := "limits:\n  default: &d [" + strings.Repeat("{name: a, max: 1, window: 1h},", 2_000) + "]\n  segments:\n"
	for text, want := range map[string]string{
		strings.Repeat("[", 200_000): "is too much: more than 100000 brackets",
		strings.Repeat("[", 90_000):  ":1:33: is too deep: more than 32 levels",
		strings.Repeat("- ", 45_000): ":1:65: is too deep: more than 32 levels",
		aliases + "    a: *d\n    b: *d\n    c: *d\n    d: *d\n    e: *d\n    f: *d\n    g: *d\n": "is too much: " +
			"more than 100000 values after every alias is replaced by its value",
	} {
		file := filepath.Join(t.TempDir(), "capper.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "capper", "check-config", file)
		out, err := cmd.CombinedOutput()
		require.EqualError(t, err, "exit status 3", "%s", out)
		require.Contains(t, string(out), want)
		used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
		if runtime.GOOS == "darwin" { // there it is bytes
			used >>= 10
		}
		// With the race detector it is several times what it takes otherwise, and Linux counts what this process had
		// when it forked.
		require.Less(t, used, int64(1<<20), "KiB")
	}
}
