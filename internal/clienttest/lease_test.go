package clienttest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/pacing"
	"capper/internal/testkit"
)

// ending ends leases on the store until the test ends, and counts the permits that go back.
func ending(t *testing.T, store pacing.Store) (returned *atomic.Int64) {
	t.Helper()
	returned = new(atomic.Int64)
	p := pacing.New(store, &pacers)
	p.OnReturn(func(back *pacing.Back) { returned.Add(int64(back.Permits)) })
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = p.ReturnEnded(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-over })
	return returned
}

// leases passes calls on, and counts those with a lease. answer, unless nil, answers the n-th of them and reports
// whether it did.
func leases(n *atomic.Int64, answer func(n int64, w http.ResponseWriter) bool) func(http.Handler) http.Handler {
	return leasesThrough(n, func(n int64, w http.ResponseWriter, _ func()) bool {
		return answer != nil && answer(n, w)
	})
}

// leasesThrough is leases for an answer that may let the service do the call, whose answer is then lost.
func leasesThrough(n *atomic.Int64, answer func(n int64, w http.ResponseWriter, serve func()) bool) func(
	http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"lease":"6s"`)) && r.URL.Path == "/v1/permits" {
				serve := func() { h.ServeHTTP(nowhere{http.Header{}}, r) }
				if answer(n.Add(1), w, serve) {
					return
				}
			}
			h.ServeHTTP(w, r)
		})
	}
}

// A caller who waits longer than a lease keeps its permits.
func TestAPacerKeepsItsLeases(t *testing.T) {
	t.Parallel()
	var kept atomic.Int64
	url, g := paced(t, leases(&kept, nil))
	returned := ending(t, g.Store)
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
	steadily(t, func() bool {
		before := returned.Load()
		require.NoError(t, p.WaitN(t.Context(), 2500)) // 10 s
		require.Greater(t, kept.Load(), int64(1))
		return returned.Load() == before
	})
	short := newPacer(t, url, client.PacerConfig{Pacers: []string{"minute"}, MaxWait: 30 * time.Second})
	before := kept.Load()
	require.NoError(t, short.WaitN(t.Context(), 500))
	require.Equal(t, before, kept.Load(), "permits that come soon need no lease")
}

// The permits of a sender that nobody uses any more go back by themselves.
func TestPermitsOfADeadSenderGoBack(t *testing.T) {
	t.Parallel()
	var kept atomic.Int64
	url, g := paced(t, leases(&kept, nil))
	ending(t, g)
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- p.WaitN(ctx, 7000) }() // 28 s ahead
	testkit.Eventually(t, func() bool { return kept.Load() > 0 }, "the lease has begun")
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	testkit.Eventually(t, func() bool { return g.returned() > 0 })
	state, err := newClient(t, client.Config{URL: url}).Pacer(t.Context(), "spaced")
	require.NoError(t, err)
	require.LessOrEqual(t, time.Duration(state.NextMS), 5*time.Millisecond, "others get the slots")
}

// TestACallerThatLeavesBeginsItsLease cancels a call when it has taken its permits. The lease must begin, so that the
// permits go back.
func TestACallerThatLeavesBeginsItsLease(t *testing.T) {
	t.Parallel()
	_, g := paced(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g.after = cancel
	_, err := pacing.New(g, &pacers).Take(ctx, &pacing.Call{Pacers: []string{"spaced"}, Permits: 7000,
		MaxWait: 30 * time.Second, Client: "c", RequestID: "r", Lease: time.Second})
	require.NoError(t, err)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	ending(t, g)
	testkit.Eventually(t, func() bool { return g.returned() > 0 })
}

// A sender that cannot keep its lease uses none of its later permits, and asks anew. The service may have begun a lease
// although its answer was lost.
func TestAPacerWhoseLeaseHasEndedAsksAnew(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"the lease is known": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept, up atomic.Int64
			url, g := paced(t, leasesThrough(&kept, func(n int64, w http.ResponseWriter, serve func()) bool {
				switch {
				case up.Load() > 0 || n == 1 && !lost:
					return false
				case n == 1:
					serve()
				}
				w.WriteHeader(http.StatusBadGateway)
				return true
			}))
			ending(t, g)
			p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
			done := make(chan error)
			go func() { done <- p.WaitN(t.Context(), 5000) }() // 20 s: slots are ahead when a lease of 6 s ends
			testkit.Eventually(t, func() bool { return g.returned() > 0 })
			up.Store(1)
			require.NoError(t, <-done)
			require.Greater(t, len(g.granted()), 5000)
		})
	}
}

// A service of an earlier version refuses the field.
func TestAPacerOfAServiceWithoutLeases(t *testing.T) {
	t.Parallel()
	var kept atomic.Int64
	url, _ := paced(t, leases(&kept, func(_ int64, w http.ResponseWriter) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"code":"invalid_request","message":"lease: is unknown","field":"lease"}}`)
		return true
	}))
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
	require.NoError(t, p.WaitN(t.Context(), 1800))
	require.Equal(t, int64(1), kept.Load(), "the Pacer tries once")
}
