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

// probed starts an HTTP service with the store and returns a function that returns the status and body of a
// probe.
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

// noSegments is a generation of segments without users.
type noSegments struct{ segmentstest.WithoutSets }

func (noSegments) Generation() string       { return "1" }
func (noSegments) Names() []string          { return nil }
func (noSegments) Lookup([]uint32, []uint8) {}

const restartNeeded = "restart required: the embedded store is out of service until it is opened again; /v1/status " +
	"and the log show the reason"

// TestLivenessOfAFullDisk fills the disk of a service. Only then the service must ask for a restart, and the
// store of the next process must be alive.
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
	_ = s.Close() // errors of a broken database do not matter

	small.left.Store(1 << 40)
	s = reopen(t, Config{Path: "/db", fs: small})
	status, _ = probed(t, s)("/healthz")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, s.Close())
}

// TestLivenessOfAFailingDisk makes the disk refuse one write and accept the next. The content of the disk is
// unknown, so that the service must ask for a restart.
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
	_ = s.Close() // errors of a broken database do not matter
}

// TestLivenessOfAVolumeThatIsTakenAway removes the directory of a running service.
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
	_ = s.Close() // errors of a broken database do not matter
}

// TestLivenessOfAWrongClock sets the clock years ahead, so that no user is decided. The service must not ask
// for a restart, because a new process would trust the wrong clock.
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
