//go:build storms

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// gate is the way to a service, which lets so many filter calls through.
type gateServer struct {
	*httptest.Server
	came, open atomic.Int64
}

func newGate(t *testing.T, to string) *gateServer {
	t.Helper()
	at, err := url.Parse(to)
	require.NoError(t, err)
	g, through := new(gateServer), httputil.NewSingleHostReverseProxy(at)
	through.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // else it is not seen that the caller goes
		r.Body = io.NopCloser(bytes.NewReader(body))
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for n := g.came.Add(1); n > g.open.Load() && r.Context().Err() == nil; <-look.C {
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

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
	way := newGate(t, p.url)
	blast := func(message string) *exec.Cmd {
		return exec.Command("capper", "filter", audience, "--url", way.URL, "--message-id", message, "--allowed", out,
			"--batch", "1000", "--parallel", "2")
	}
	for attempt := range int64(3) {
		way.open.Store(way.came.Load() + 4*attempt + 3)
		cmd := blast("promo")
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return way.came.Load() > way.open.Load() }, 2*time.Minute, time.Millisecond)
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		require.Error(t, cmd.Wait())
		require.NoFileExists(t, out, "no file before the result is whole")
	}
	way.open.Store(math.MaxInt64)
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
		text, err := exec.Command("capper", "filter", audience, "--url", url, "--message-id", "promo", "--allowed",
			out).CombinedOutput()
		return string(text), err
	}
	text, err := run(p.url)
	require.Error(t, err)
	require.Contains(t, text,
		`no file was written; run the same command again: message id "promo" continues from the recorded sends`)
	require.NoFileExists(t, out)
	p = serve(t, file)
	text, err = run(p.url)
	require.NoError(t, err, text)
	require.Equal(t, "20000000\n20000001\n", readFile(t, out))
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
	way := newGate(t, p.url)
	blast := exec.Command("capper", "filter", audience, "--url", way.URL, "--message-id", "promo", "--allowed", out,
		"--batch", "500", "--json")
	var stdout strings.Builder
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	blast.Stdout, blast.Stderr = &stdout, stderr
	require.NoError(t, blast.Start())
	for _, says := range []string{"", "going on in"} { // back at once, and when the client has given up a call
		way.open.Store(way.came.Load() + 20)
		require.Eventually(t, func() bool {
			return counter(t, p, `capper_users_total{limit="",outcome="allowed",segment="default"}`) > 2_000
		}, testkit.Patience, time.Millisecond)
		way.open.Store(math.MaxInt64) // so that it has calls when it is killed
		p.signal(syscall.SIGKILL)
		testkit.Eventually(t, func() bool { return strings.Contains(readFile(t, stderr.Name()), says) })
		way.open.Store(way.came.Load() + 20)
		p = serve(t, file)
	}
	way.open.Store(math.MaxInt64)
	require.NoError(t, blast.Wait(), "%s", readFile(t, stderr.Name()))
	require.Equal(t, ids.String(), readFile(t, out))
	require.Contains(t, stdout.String(), fmt.Sprintf(`"requested": %d,`, users))
	require.Contains(t, stdout.String(), fmt.Sprintf(`"allowed": %d,`, users))
}
