package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/terminal"
)

// damage makes a user's log in a closed embedded store unreadable.
func damage(t *testing.T, path string, user byte) {
	t.Helper()
	db, err := pebble.Open(path, &pebble.Options{FormatMajorVersion: pebble.FormatValueSeparation})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte{1, 0, 0, 0, user}, []byte("no log"), pebble.Sync))
	require.NoError(t, db.Close())
}

// Users that cannot be decided are asked for again until the time is up, then
// listed; the same command later settles them. Each counts as requested once.
func TestABlastThatLeavesUsersUndecided(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 2}}")
	p := serve(t, file)
	p.signal(syscall.SIGTERM)
	damage(t, filepath.Join(filepath.Dir(file), "log.db"), 5)
	p = serve(t, file)

	dir := t.TempDir()
	audience := filepath.Join(dir, "audience.txt")
	out, rest := filepath.Join(dir, "allowed.txt"), filepath.Join(dir, "rest.txt")
	require.NoError(t, os.WriteFile(audience, []byte("4\n5\n6\n1001\n"), 0o600))
	blast := func() (report filterReport, err error) {
		text, err := exec.Command("capper", "filter", audience, "--url", p.url, "--message-id", "promo",
			"--allowed", out, "--unavailable", rest, "--timeout", "8s", "--json").Output()
		require.NoError(t, json.Unmarshal(text, &report))
		return report, err
	}
	report, err := blast()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, int(terminal.Undecided), exit.ExitCode())
	require.Contains(t, string(exit.Stderr), "1 user could not be decided")
	require.Regexp(t, `capper: 1 user is unavailable; the next retry is in 1s, until --timeout 8s ends: the store is degraded: \S+`, string(exit.Stderr))
	require.Contains(t, string(exit.Stderr), "hint: do not send to these users yet; capper status shows the reason; "+
		"then run the same command again\n")
	_, err = exec.Command("capper", "explain", "5", "--url", p.url).Output()
	require.ErrorAs(t, err, &exit)
	require.Contains(t, string(exit.Stderr), "the store could not answer: /v1/status shows the reason")
	require.Contains(t, string(exit.Stderr), "hint: capper status shows the reason\n")
	require.Equal(t, "5\n", readFile(t, rest))
	require.Equal(t, "4\n6\n1001\n", readFile(t, out))
	require.Equal(t, [4]int{4, 3, 1, 0}, [4]int{report.Requested, report.Allowed, report.Unavailable, report.Replayed})
	require.Equal(t, 3, report.Segments["new"].Requested)
	require.Equal(t, 2, report.Segments["new"].Allowed)

	request, err := http.NewRequest(http.MethodDelete, p.url+"/v1/users/5", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	report, err = blast()
	require.NoError(t, err)
	require.Equal(t, [4]int{4, 4, 0, 3}, [4]int{report.Requested, report.Allowed, report.Unavailable, report.Replayed})
	require.Empty(t, readFile(t, rest))
	require.Equal(t, "4\n5\n6\n1001\n", readFile(t, out))
}
