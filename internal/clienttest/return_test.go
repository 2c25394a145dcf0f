package clienttest

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/testkit"
)

// still returns a clock that does not move: every slot but those of the first instant stays ahead.
func still() func() time.Time {
	now := time.Now().Round(0)
	return func() time.Time { return now }
}

// A Pacer that is closed gives back what nobody has used, and ends all waits.
func TestAClosedPacerGivesBackItsPermits(t *testing.T) {
	t.Parallel()
	url, g := pacedBy(t, nil, still())
	c := newClient(t, client.Config{URL: url})
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced", "minute"}, MaxWait: 30 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- p.WaitN(ctx, 7000) }() // 28 s ahead
	testkit.Eventually(t, func() bool { return g.calls() > 0 }, "the permits are granted")
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	waits := make(chan error)
	go func() { waits <- p.WaitN(t.Context(), 7200) }()
	returned, err := p.Close(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, <-waits, client.ErrPacerClosed)
	require.ErrorIs(t, p.Wait(t.Context()), client.ErrPacerClosed)
	require.Positive(t, returned)
	state, err := c.Pacer(t.Context(), "minute")
	require.NoError(t, err)
	require.Equal(t, len(g.granted())-returned, *state.Limits[0].Used)
	again, err := p.Close(t.Context())
	require.NoError(t, err)
	require.Zero(t, again)
}

// A request without an answer may have been granted, so a closed Pacer gives it back, too.
func TestAClosedPacerGivesBackWhatWasNotAnswered(t *testing.T) {
	t.Parallel()
	var lose atomic.Bool
	lose.Store(true)
	url, g := pacedBy(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/permits" && lose.Load() {
				h.ServeHTTP(nowhere{http.Header{}}, r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	}, still())
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 30 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- p.WaitN(ctx, 500) }()
	testkit.Eventually(t, func() bool { return g.calls() > 0 }, "the permits are granted")
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	returned, err := p.Close(t.Context())
	require.NoError(t, err)
	require.Equal(t, 499, returned, "all but the slot that has come")
}

// nowhere is an answer that nobody gets.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header          { return n.header }
func (nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (nowhere) WriteHeader(int)                {}

// Permits go back at all pacers, and repeated answers have what stays.
func TestPermitsGoBack(t *testing.T) {
	t.Parallel()
	url, _ := pacedBy(t, nil, still())
	c := newClient(t, client.Config{URL: url})
	ask := api.PermitsRequest{Pacers: []string{"spaced", "burst"}, Permits: 150, MaxWait: api.Wait(20 * time.Second),
		RequestID: "r1"}
	granted, err := c.Permits(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, 150, granted.Granted)
	back, err := c.ReturnPermits(t.Context(), api.PermitsReturn{PermitsRequest: ask, Used: 30})
	require.NoError(t, err)
	require.Equal(t, &api.PermitsReturned{Returned: 120, Kept: 30, Remembered: true,
		Pacers: []api.PacerReturned{{Name: "spaced", Returned: 120}, {Name: "burst", Returned: 120}}}, back)
	again, err := c.Permits(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, 30, again.Granted)
	ask.Permits++
	_, err = c.ReturnPermits(t.Context(), api.PermitsReturn{PermitsRequest: ask})
	require.True(t, client.HasCode(err, client.CodeInvalidRequest))
	require.ErrorContains(t, err, "give back permits of spaced, burst: ")
}
