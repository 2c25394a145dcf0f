package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/terminal"
	"capper/internal/testkit"
)

// A build that waits for an input that never comes ends at the first signal.
func TestBuildEndsAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe.txt")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.CommandContext(t.Context(), "segmentbuild", "build", "--to", filepath.Join(folder, "out"),
		"--segment", "vip="+pipe)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	testkit.OpenWhenRead(t, pipe)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	err := testkit.Receive(t, ended, "it went on")
	require.EqualError(t, err, "exit status 1", "%s", talk.String())
	require.Contains(t, talk.String(), "context canceled")
}

// A build file that took a machine down is refused as any other.
func TestBuildFilesThatExplodeAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Repeat("[", 200_000):            "is too much: more than 100000 brackets",
		strings.Repeat("{a: ", 20_000):          "is too deep: more than 32 levels",
		strings.Repeat("? ", 20_000):            "is too deep: more than 32 levels",
		strings.Repeat("# much\n", 200_000):     "must be at most 1048576 bytes",
		"max_bad_rows: &a [*a]\nsegments: []\n": "1:19: alias *a refers to itself",
	} {
		file := filepath.Join(t.TempDir(), "segments.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		status, _, talk := command(t, "", "build", "--to", t.TempDir(), file)
		require.Equal(t, int(terminal.BadInput), status)
		require.Contains(t, talk, file)
		require.Contains(t, talk, want)
	}
}
