package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// Commands end at the first signal also while they wait for something that never comes.
func TestCommandsEndAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	kind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"dense"}`) // to GET /v1/ids, before the command reads its file
	}))
	t.Cleanup(kind.Close)
	for _, args := range [][]string{
		{"check-config"},
		{"serve", "--config"},
		{"filter", "--url", kind.URL, "--message-id", "m", "--allowed", "out.txt"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			cmd := exec.CommandContext(t.Context(), "capper", append(args, pipe)...)
			cmd.Dir = t.TempDir()
			var talk bytes.Buffer
			cmd.Stderr = &talk
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			testkit.OpenWhenRead(t, pipe)
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			err := testkit.Receive(t, ended, "it went on")
			require.EqualError(t, err, "exit status 1", "%s", talk.String())
			require.Contains(t, talk.String(), "context canceled") // by itself, or by whoever lost patience with it
		})
	}
}
