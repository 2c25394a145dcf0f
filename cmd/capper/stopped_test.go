package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Commands end at the first signal also while they wait for something that never comes.
func TestCommandsEndAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check-config"},
		{"serve", "--config"},
		{"filter", "--url", "http://127.0.0.1:1", "--message-id", "m", "--allowed", "out.txt"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			cmd := exec.Command("capper", append(args, pipe)...)
			cmd.Dir = t.TempDir()
			var talk bytes.Buffer
			cmd.Stderr = &talk
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			writer := whenRead(t, pipe)
			defer writer.Close()
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			select {
			case err := <-ended:
				require.EqualError(t, err, "exit status 1", "%s", talk.String())
				require.Contains(t, talk.String(), "context canceled") // by itself, or by whoever lost patience with it
			case <-time.After(30 * time.Second):
				require.NoError(t, cmd.Process.Kill())
				require.Fail(t, "it went on")
			}
		})
	}
}

// whenRead opens the pipe for writing as soon as somebody reads from it.
func whenRead(t *testing.T, pipe string) (writer *os.File) {
	t.Helper()
	require.Eventually(t, func() bool {
		f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		writer = f
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	return writer
}
