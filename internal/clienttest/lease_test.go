package clienttest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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
	return leasesThrough(func(w http.ResponseWriter, _ serving) bool {
		is := n.Add(1)
		return answer != nil && answer(is, w)
	})
}

// serving lets the service do a call, answers it and returns the status.
type serving func(http.ResponseWriter) (status int)

// leasesThrough passes calls on. answer answers those with a lease, and reports whether it did.
func leasesThrough(answer func(w http.ResponseWriter, serve serving) bool) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"lease":"6s"`)) && r.URL.Path == "/v1/permits" {
				serve := func(w http.ResponseWriter) int {
					answer := httptest.NewRecorder()
					h.ServeHTTP(answer, r)
					w.WriteHeader(answer.Code)
					_, _ = w.Write(answer.Body.Bytes())
					return answer.Code
				}
				if answer(w, serve) {
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
	steadily(t, func() bool { // permits that come soon need no lease, but a call that is repeated has one
		before := kept.Load()
		require.NoError(t, short.WaitN(t.Context(), 500))
		return kept.Load() == before
	})
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
// although its answer was lost, and also if it answered the first call too late.
func TestAPacerWhoseLeaseHasEndedAsksAnew(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct{ late, lost bool }{
		"the lease is known":       {},
		"the answer is lost":       {lost: true},
		"the first answer is late": {late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, begun, up atomic.Bool
			url, g := paced(t, func(h http.Handler) http.Handler {
				return leasesThrough(func(w http.ResponseWriter, serve serving) bool {
					switch {
					case up.Load():
						return false
					case !begun.Load() && is.lost:
						begun.Store(serve(nowhere{http.Header{}}) == http.StatusOK)
					case !begun.Load():
						begun.Store(serve(w) == http.StatusOK)
						return true
					}
					w.WriteHeader(http.StatusBadGateway)
					return true
				})(heldUp(h, is.late, &asked))
			})
			ending(t, g)
			p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
			done := make(chan error)
			go func() { done <- p.WaitN(t.Context(), 5000) }() // 20 s: slots are ahead when a lease of 6 s ends
			testkit.Eventually(t, func() bool { return g.returned() > 0 })
			up.Store(true)
			require.NoError(t, <-done)
			require.Greater(t, len(g.granted()), 5000)
		})
	}
}

// heldUp answers the first call, if it is late, when a Pacer no longer uses the answer.
func heldUp(h http.Handler, late bool, asked *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if late && asked.CompareAndSwap(false, true) {
			held := httptest.NewRecorder()
			h.ServeHTTP(held, r)
			_ = pass(r.Context(), 300*time.Millisecond)
			w.WriteHeader(held.Code)
			_, _ = w.Write(held.Body.Bytes())
			return
		}
		h.ServeHTTP(w, r)
	})
}

// A service of an earlier version refuses the field.
func TestAPacerOfAServiceWithoutLeases(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"in time": false, "the first answer is late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept atomic.Int64
			var asked atomic.Bool
			refuse := leases(&kept, func(_ int64, w http.ResponseWriter) bool {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w,
					`{"error":{"code":"invalid_request","message":"lease: is unknown","field":"lease"}}`)
				return true
			})
			url, _ := paced(t, func(h http.Handler) http.Handler { return refuse(heldUp(h, late, &asked)) })
			p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
			require.NoError(t, p.WaitN(t.Context(), 1800))
			require.Equal(t, int64(1), kept.Load(), "the Pacer tries once")
		})
	}
}
