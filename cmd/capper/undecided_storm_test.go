//go:build storms

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/terminal"
)

// A store that is out of service is told at once, and that a restart is needed, also to a key that may not read the
// status.
func TestABlastOverAStoreThatIsOutOfService(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 2}}"))
	// every write to a file fails
	limit := exec.Command("prlimit", "--fsize=0", "--pid", strconv.Itoa(p.cmd.Process.Pid))
	out, err := limit.CombinedOutput()
	require.NoError(t, err, "%s", out)
	audience := filepath.Join(t.TempDir(), "audience.txt")
	require.NoError(t, os.WriteFile(audience, []byte("4\n5\n"), 0o600))
	blast := exec.Command("capper", "filter", audience, "--url", p.url, "--message-id", "promo", "--timeout", "1ms")
	_, err = blast.Output()
	require.Error(t, err)
	blast = exec.Command("capper", "filter", audience, "--url", p.url, "--message-id", "promo", "--timeout", "2s")
	_, err = blast.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, int(terminal.Undecided), exit.ExitCode())
	require.Contains(t, string(exit.Stderr), "2 users are unavailable; the next retry is in 1s, until --timeout 2s "+
		"ends: restart required: the embedded store is out of service")
}
