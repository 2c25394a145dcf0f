package pebblestore

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
	"capper/internal/testkit"
)

// probed is a service over the store, by HTTP: the status and body of a probe.
func probed(t *testing.T, s *Store) func(path string) (status int, body api.Error) {
	t.Helper()
	policy := &capping.Policy{Version: "1", Channels: map[string]capping.Channel{"push": 1}}
	nobody := func() capping.Segments { return noSegments{} }
	service, err := server.New(server.Config{Capper: capping.New(s, nobody, policy, time.Now)})
	require.NoError(t, err)
	service.SetReady(true)
	listener := httptest.NewServer(service.Public())
	t.Cleanup(listener.Close)
	return func(path string) (status int, body api.Error) {
		response, err := http.Get(listener.URL + path)
		require.NoError(t, err)
		defer response.Body.Close()
		require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
		return response.StatusCode, body
	}
}

// noSegments are segments without anybody.
type noSegments struct{ segmentstest.WithoutSets }

func (noSegments) Generation() string               { return "1" }
func (noSegments) Names() []string                  { return nil }
func (noSegments) Lookup([]capping.UserID, []uint8) {}

const restartNeeded = "restart required: the embedded store is out of service until it is opened again; /v1/status " +
	"and the log show the reason"

// TestLivenessOfAFullDisk lets the disk become full under a service: only then it asks to be
// restarted, and the store that the next process opens is alive.
func TestLivenessOfAFullDisk(t *testing.T) {
	t.Parallel()
	small := newSmallDisk(vfs.NewCrashableMem(), 1<<40)
	s := reopen(t, Config{Path: "/db", fs: small})
	probe := probed(t, s)
	status, _ := probe("/healthz")
	require.Equal(t, http.StatusOK, status)
	small.left.Store(20_000)
	for n := uint64(0); s.db.Broken() == nil; n++ {
		send(t, s, n)
	}
	status, body := probe("/healthz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.EqualValues(t, api.CodeUnavailable, body.Error.Code)
	require.Equal(t, restartNeeded, body.Error.Message)
	require.NotContains(t, body.Error.Message, "/db", "whoever may probe is told no path")
	status, _ = probe("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	_ = s.Close() // of a broken database: what it says does not matter

	small.left.Store(1 << 40)
	s = reopen(t, Config{Path: "/db", fs: small})
	status, _ = probed(t, s)("/healthz")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, s.Close())
}

// TestLivenessOfAFailingDisk lets the disk refuse one write and take the next: what it holds is
// not known any more, so that the service asks to be restarted all the same.
func TestLivenessOfAFailingDisk(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	failing := errorfs.Wrap(vfs.NewCrashableMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if refuse.Load() && strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk refuses")
		}
		return nil
	}))
	s := reopen(t, Config{Path: "/db", fs: failing})
	probe := probed(t, s)
	refuse.Store(true)
	_, err := filterAll(s, "refused", 2, 3)
	require.ErrorContains(t, err, "out of service")
	refuse.Store(false)
	status, body := probe("/healthz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, restartNeeded, body.Error.Message)
	_ = s.Close() // of a broken database: what it says does not matter
}

// TestLivenessOfAVolumeThatIsTakenAway removes the directory under a service.
func TestLivenessOfAVolumeThatIsTakenAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/db"
	s := reopen(t, Config{Path: dir})
	probe := probed(t, s)
	require.NoError(t, os.RemoveAll(dir))
	testkit.Eventually(t, func() bool {
		status, _ := probe("/healthz")
		return status == http.StatusServiceUnavailable
	})
	_ = s.Close() // of a broken database: what it says does not matter
}

// TestLivenessOfAWrongClock sets the clock years ahead, so that nobody is decided: it can be put
// right, and a process that was restarted would believe it.
func TestLivenessOfAWrongClock(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(time.Now())
	s := reopen(t, Config{Path: t.TempDir() + "/db", Clock: clock.Now, ClockBound: 24 * time.Hour})
	probe := probed(t, s)
	clock.Advance(5 * 365 * 24 * time.Hour)
	status, _ := probe("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	status, _ = probe("/healthz")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, s.Close())
}
