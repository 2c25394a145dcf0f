package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A blast that is killed and started again ends with the same result as one
// that ran through, and counts nobody twice.
func TestABlastKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	const users = 40_000
	p := serve(t, configure(t, "{default: {daily: 2}}"))
	dir := t.TempDir()
	audience, out := filepath.Join(dir, "audience.txt"), filepath.Join(dir, "allowed.txt")
	var ids strings.Builder
	for id := range users {
		fmt.Fprintln(&ids, 10_000_000+id)
	}
	require.NoError(t, os.WriteFile(audience, []byte(ids.String()), 0o600))
	blast := func(message string) *exec.Cmd {
		return exec.Command("capper", "filter", audience, "--url", p.url, "--message-id", message, "--allowed", out, "--batch", "1000", "--parallel", "2")
	}
	decided := func() int64 {
		return counter(t, p, `capper_users_total{limit="",outcome="allowed",segment="default"}`)
	}

	killed := 0
	for attempt := range 3 {
		before := decided()
		cmd := blast("promo")
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return attempt > 0 || decided() > before+2_000 }, time.Minute, time.Millisecond)
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		if cmd.Wait() != nil {
			killed++
		}
		require.NoFileExists(t, out, "no file before the result is whole")
	}
	require.Equal(t, 3, killed)
	require.NoError(t, blast("promo").Run())
	require.Equal(t, ids.String(), readFile(t, out))

	require.NoError(t, blast("second").Run())
	require.Equal(t, ids.String(), readFile(t, out), "the killed runs counted one send, so a second one fits")
	require.NoError(t, blast("third").Run())
	require.Empty(t, readFile(t, out))
}

// While the service is away a blast fails; it writes no file and loses nothing.
func TestABlastWhoseServiceDies(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	p := serve(t, file)
	dir := t.TempDir()
	audience, out := filepath.Join(dir, "audience.txt"), filepath.Join(dir, "allowed.txt")
	require.NoError(t, os.WriteFile(audience, []byte("20000000\n20000001\n"), 0o600))
	p.signal(syscall.SIGKILL)
	run := func(url string) (string, error) {
		text, err := exec.Command("capper", "filter", audience, "--url", url, "--message-id", "promo", "--allowed", out).CombinedOutput()
		return string(text), err
	}
	text, err := run(p.url)
	require.Error(t, err)
	require.Contains(t, text, `no file was written; run the same command again: message id "promo" continues where it was`)
	require.NoFileExists(t, out)
	p = serve(t, file)
	text, err = run(p.url)
	require.NoError(t, err, text)
	require.Equal(t, "20000000\n20000001\n", readFile(t, out))
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

// A service that is killed and comes back in the middle of a blast delays it,
// and changes nothing of its result.
func TestABlastOutlivesItsService(t *testing.T) {
	t.Parallel()
	const users = 60_000
	file := configure(t, "{default: {daily: 1}}")
	p := serve(t, file)
	address := strings.TrimPrefix(p.url, "http://")
	write(t, file, strings.Replace(readFile(t, file), "127.0.0.1:0", address, 1)) // where it comes back
	dir := t.TempDir()
	audience, out := filepath.Join(dir, "audience.txt"), filepath.Join(dir, "allowed.txt")
	var ids strings.Builder
	for id := range users {
		fmt.Fprintln(&ids, 30_000_000+id)
	}
	require.NoError(t, os.WriteFile(audience, []byte(ids.String()), 0o600))
	blast := exec.Command("capper", "filter", audience, "--url", p.url, "--message-id", "promo", "--allowed", out, "--batch", "500", "--json")
	var stdout strings.Builder
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	blast.Stdout, blast.Stderr = &stdout, stderr
	require.NoError(t, blast.Start())
	for _, says := range []string{"", "going on in"} { // back at once, and when the client has given up a call
		require.Eventually(t, func() bool {
			return counter(t, p, `capper_users_total{limit="",outcome="allowed",segment="default"}`) > 2_000
		}, time.Minute, time.Millisecond)
		p.signal(syscall.SIGKILL)
		require.Eventually(t, func() bool { return strings.Contains(readFile(t, stderr.Name()), says) }, time.Minute, 5*time.Millisecond)
		p = serve(t, file)
	}
	require.NoError(t, blast.Wait(), "%s", readFile(t, stderr.Name()))
	require.Equal(t, ids.String(), readFile(t, out))
	require.Contains(t, stdout.String(), fmt.Sprintf(`"requested": %d,`, users))
	require.Contains(t, stdout.String(), fmt.Sprintf(`"allowed": %d,`, users))
}
