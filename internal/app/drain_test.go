package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// guarded is a store that detects wrong use: a call after Close, or a Close during a call. Its calls can be made to
// hang.
type guarded struct {
	capping.Store
	inFlight, closed, misuses atomic.Int64
	entered                   chan struct{} // closed when a call of Filter has started
	hang                      func(ctx context.Context)
}

func (g *guarded) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	g.inFlight.Add(1)
	defer g.inFlight.Add(-1)
	g.entered <- struct{}{}
	if g.hang != nil {
		g.hang(ctx)
	}
	g.misuses.Add(g.closed.Load())
	return g.Store.Filter(ctx, b, verdicts)
}

func (g *guarded) Close() error {
	g.misuses.Add(g.inFlight.Load())
	g.closed.Add(1)
	return g.Store.Close()
}

// Unwrap returns the wrapped store.
func (g *guarded) Unwrap() capping.Store { return g.Store }

// guard puts a guarded store between a service and its store.
func guard(cfg *Config, hang func(ctx context.Context)) *guarded {
	g := &guarded{entered: make(chan struct{}, 1), hang: hang}
	cfg.wrapStore = func(store capping.Store) capping.Store {
		g.Store = store
		return g
	}
	return g
}

// call starts a call and waits until it has reached the store.
func call(t *testing.T, s *Service, g *guarded) (ended <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := filter(context.WithoutCancel(t.Context()), s, "promo", 7)
		done <- err
	}()
	testkit.Receive(t, g.entered)
	return done
}

const impatient = "call_timeout: 10s, stop_timeout: 20ms"

// TestADrainThatTimesOutWaitsForTheStore checks that a drain closes the connections at its time limit. The store is
// closed only after the call has returned within its own time limit.
func TestADrainThatTimesOutWaitsForTheStore(t *testing.T) {
	t.Parallel()
	cfg, log := configure(t, onEmbedded(t.TempDir()), impatient)
	release := make(chan struct{})
	g := guard(&cfg, func(context.Context) { <-release })
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	ended, closed := call(t, s, g), make(chan error, 1)
	go func() {
		closed <- <-ended
		close(release)
	}()
	err = s.Stop()
	require.EqualError(t, err, "drain the calls: requests were still in progress after 20ms: context deadline exceeded")
	require.Error(t, testkit.Receive(t, closed), "its connection was closed")
	require.EqualValues(t, 1, g.closed.Load())
	require.Zero(t, g.misuses.Load())
	require.Contains(t, log.String(), `msg=stopped step="close the store"`)
	require.Equal(t, err, s.Stop())
}

// TestADrainThatTimesOutWhileRedisHangs checks that hanging Redis nodes keep calls only until the time limit of the
// call.
func TestADrainThatTimesOutWhileRedisHangs(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{})
	cfg, log := configure(t, onRedis(redis.Addrs...), impatient)
	g := guard(&cfg, nil)
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, redis.Pause(redis.Addrs[0]))
	ended := call(t, s, g)
	require.ErrorContains(t, s.Stop(), "requests were still in progress after 20ms")
	require.Error(t, testkit.Receive(t, ended))
	require.EqualValues(t, 1, g.closed.Load())
	require.Zero(t, g.misuses.Load())
	require.Contains(t, log.String(), `msg=stopped step="close the store"`)
	require.NoError(t, redis.Resume(redis.Addrs[0]))
}

// TestTheStoreStaysOpenUnderACallThatHangs checks that a call which never returns keeps the store open, and that the
// service logs it.
func TestTheStoreStaysOpenUnderACallThatHangs(t *testing.T) {
	t.Parallel()
	cfg, log := configure(t, onEmbedded(t.TempDir()), "call_timeout: 10ms, max_bitmap_users: 1, stop_timeout: 20ms")
	release := make(chan struct{})
	g := guard(&cfg, func(context.Context) { <-release })
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	ended := call(t, s, g)
	err = s.Stop()
	require.ErrorContains(t, err, "a call is still waiting for the store: step is still running")
	require.ErrorContains(t, err, `shutdown step "close the store" was not run, because step "drain the calls" `+
		"is still running")
	require.Error(t, testkit.Receive(t, ended), "its connection was closed all the same")
	require.Zero(t, g.closed.Load())
	require.Contains(t, log.String(), `level=ERROR msg="not stopped" step="close the store"`)
	require.Contains(t, log.String(), `msg=stopped step="stop refreshing segments"`,
		"what the store does not need is stopped")

	close(release)
	require.NoError(t, s.calls.end(t.Context()))
	require.NoError(t, s.closeStore(t.Context()))
	require.Zero(t, g.misuses.Load())
}

// TestNoCallBeginsAfterTheEnd checks that no call starts after the end of the call counter.
func TestNoCallBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	var c calls
	ran := 0
	h := c.counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	require.NoError(t, c.end(t.Context()))
	require.NoError(t, c.end(t.Context()))
	require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	})
	require.Equal(t, 1, ran)

	var busy calls
	require.True(t, busy.enter())
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, busy.end(ctx), errRunning)
	busy.leave()
	require.NoError(t, busy.end(t.Context()))
}
