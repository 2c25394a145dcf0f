package clienttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client"
	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/server/gate"
)

func TestClientCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newClient(t, client.Config{URL: newCapper(t, nil) + "/"})
	first, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m1", Channel: "push", Users: []uint32{7, 1_000_001,
		7}})
	require.NoError(t, err)
	require.Equal(t, []uint32{7, 1_000_001}, first.Allowed)
	require.Equal(t, 1, first.Summary.Duplicates)

	second, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m2", Users: []uint32{7, 8}, Waves: true})
	require.NoError(t, err)
	require.Equal(t, []uint32{8}, second.Allowed)
	require.Equal(t, "daily", second.Denied[0].Limit)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), *second.Denied[0].RetryAt, time.Minute)
	require.Equal(t, []uint32{7}, second.Waves[0].Users)
	require.Equal(t, *second.Denied[0].RetryAt, second.Waves[0].ReadyAt)

	tomorrow, err := c.Filter(ctx, &client.FilterRequest{Preview: true, At: time.Now().Add(25 * time.Hour),
		Users: []uint32{7, 8}, Counts: true})
	require.NoError(t, err)
	require.Equal(t, 2, tomorrow.Summary.Allowed)
	exempt, err := c.Filter(ctx, &client.FilterRequest{MessageID: "order", Exempt: true, Bitmap: roaring.BitmapOf(7,
		8)})
	require.NoError(t, err)
	require.Equal(t, []uint32{7, 8}, exempt.AllowedBitmap.ToArray())
	require.True(t, exempt.UnavailableBitmap.IsEmpty())

	user, err := c.Explain(ctx, 7)
	require.NoError(t, err)
	require.Equal(t, "new", user.Segment)
	require.Equal(t, "m1", *user.Sends[0].MessageID)
	require.Equal(t, "push", *user.Sends[0].Channel)
	require.Equal(t, 2, user.Limits[0].Used)

	released, err := c.Release(ctx, &client.ReleaseRequest{MessageID: "m1", Users: []uint32{7, 9}})
	require.NoError(t, err)
	require.Equal(t, []uint32{7}, released.Released)
	require.Equal(t, 1, released.Summary.Absent)
	require.NoError(t, c.Erase(ctx, 7))
	require.NoError(t, c.Erase(ctx, 7))

	limits, err := c.Limits(ctx)
	require.NoError(t, err)
	require.Equal(t, "24h", limits.Segments["active"][0].Window)
	status, err := c.Status(ctx)
	require.NoError(t, err)
	require.True(t, status.Ready)
	require.Equal(t, "embedded", status.Store.Kind)
}

func TestClientRefusals(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "127.0.0.1:8080", "ftp://host", "http://", "http://[::1"} {
		_, err := client.New(client.Config{URL: url})
		require.ErrorContains(t, err, "must begin with http:// or https://", url)
	}
	_, err := client.New(client.Config{URL: "http://host", Parallel: -1})
	require.ErrorContains(t, err, "Parallel")

	var calls atomic.Int64
	c := newClient(t, client.Config{URL: newCapper(t, counting(&calls))})
	_, err = c.Filter(t.Context(), &client.FilterRequest{MessageID: "m", Users: []uint32{1}, Channel: "fax"})
	var refusal *client.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, http.StatusBadRequest, refusal.Status)
	require.Equal(t, "channel", refusal.Field)
	require.True(t, client.HasCode(err, client.CodeInvalidRequest))
	require.False(t, client.HasCode(err, client.CodeOverloaded))
	require.EqualValues(t, 1, calls.Load(), "a refusal is not repeated")
	_, err = c.Filter(t.Context(), &client.FilterRequest{MessageID: "m"})
	require.ErrorContains(t, err, "exactly one of Users, Bitmap and Audience")
}

func counting(calls *atomic.Int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			next.ServeHTTP(w, r)
		})
	}
}

// flaky breaks the calls that break answers true for: half of them before the
// service sees them, half after it has answered.
func flaky(breaks func() bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !breaks() {
				next.ServeHTTP(w, r)
				return
			}
			switch rand.N(4) {
			case 0:
				w.WriteHeader(http.StatusBadGateway)
			case 3:
				w.WriteHeader(http.StatusInternalServerError)
			case 1:
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			default:
				next.ServeHTTP(httptest.NewRecorder(), r)
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte(`{"allowed":[`))
				panic(http.ErrAbortHandler)
			}
		})
	}
}

// However many answers are lost, every user is granted once and recorded once.
func TestRetriesCountNothingTwice(t *testing.T) {
	t.Parallel()
	url := newCapper(t, flaky(func() bool { return rand.N(3) == 0 }))
	c := newClient(t, client.Config{URL: url, Attempts: 30, BatchIDs: 50, Parallel: 8,
		MaxBackoff: 5 * time.Millisecond})
	users := make([]uint32, 2000)
	for i := range users {
		users[i] = uint32(i)
	}
	var allowed []uint32
	err := c.FilterAll(t.Context(), &client.FilterRequest{MessageID: "blast", Users: users},
		func(_ *client.FilterRequest, r *client.FilterResult) error {
			allowed = append(allowed, r.Allowed...)
			return nil
		})
	require.NoError(t, err)
	require.ElementsMatch(t, users, allowed)
	for _, user := range []uint32{0, 49, 50, 1250, 1999} {
		explanation, err := c.Explain(t.Context(), user)
		require.NoError(t, err)
		require.Len(t, explanation.Sends, 1)
	}
}

func TestFilterAllSplitsBitmaps(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	c := newClient(t, client.Config{URL: newCapper(t, counting(&calls)), BatchBitmap: 70_000})
	audience := roaring.New()
	audience.AddRange(960_000, 1_060_000)
	audience.Add(4294967295)
	before := audience.Clone()
	var mu sync.Mutex
	var total api.Summary
	allowed := roaring.New()
	blast := func(id string) error {
		total, allowed = api.Summary{}, roaring.New()
		return c.FilterAll(t.Context(), &client.FilterRequest{MessageID: id, Bitmap: audience},
			func(batch *client.FilterRequest, r *client.FilterResult) error {
				require.True(t, mu.TryLock(), "each is called by one goroutine at a time")
				defer mu.Unlock()
				require.LessOrEqual(t, int(batch.Bitmap.GetCardinality()), 70_000)
				allowed.Or(r.AllowedBitmap)
				total.Add(&r.Summary)
				return nil
			})
	}
	require.NoError(t, blast("m1"))
	require.True(t, allowed.Equals(audience))
	require.True(t, audience.Equals(before), "the audience is not changed")
	require.EqualValues(t, 3, calls.Load())
	require.Equal(t, 100_001, total.Requested)
	require.NoError(t, blast("m2"))
	require.Equal(t, 30_000, total.Allowed, "active users have two sends a day")
	require.Equal(t, map[string]int{"daily": 70_001}, total.Denied)
	require.Equal(t, api.SegmentSummary{Requested: 40_000}, total.Segments["new"])

	released := 0
	require.NoError(t, c.ReleaseAll(t.Context(), &client.ReleaseRequest{MessageID: "m1", Bitmap: audience},
		func(r *client.ReleaseResult) error {
			released += r.Summary.Released
			return nil
		}))
	require.Equal(t, 100_001, released)
}

func TestFilterAllStopsAtAnError(t *testing.T) {
	t.Parallel()
	c := newClient(t, client.Config{URL: newCapper(t, nil), BatchIDs: 10})
	enough := errors.New("enough")
	batches := 0
	err := c.FilterAll(t.Context(), &client.FilterRequest{MessageID: "m", Users: make([]uint32, 10_000)},
		func(*client.FilterRequest, *client.FilterResult) error {
			batches++
			return enough
		})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, batches)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.FilterAll(ctx, &client.FilterRequest{MessageID: "m", Users: []uint32{1}}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRateLimitsAreWaitedOut(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("k.secret"))
	url := newCapper(t, nil, func(cfg *server.Config) {
		cfg.Access = gate.Rules{
			Keys: []gate.Key{{ID: "k", Client: "engine", SHA256: hex.EncodeToString(sum[:]),
				Scopes: []gate.Scope{gate.ScopeFilter}}},
			Rate: capping.Rate{UsersPerSecond: 1000, Burst: 1000},
		}
	})
	c := newClient(t, client.Config{URL: url, Key: "k.secret", BatchIDs: 500, Attempts: 1})
	start := time.Now()
	seen := 0
	users := make([]uint32, 1600)
	for i := range users {
		users[i] = uint32(i)
	}
	require.NoError(t, c.FilterAll(t.Context(), &client.FilterRequest{MessageID: "m", Users: users},
		func(_ *client.FilterRequest, r *client.FilterResult) error {
			seen += len(r.Allowed)
			return nil
		}))
	require.Equal(t, 1600, seen)
	require.Greater(t, time.Since(start), 500*time.Millisecond)
	_, err := c.Status(t.Context())
	require.True(t, client.HasCode(err, client.CodeForbidden))
	_, err = newClient(t, client.Config{URL: url, Key: "k.wrong"}).Status(t.Context())
	require.True(t, client.HasCode(err, client.CodeUnauthorized))
}

// half answers a part of the users as unavailable, as a service does whose
// store loses a node.
func half(times int64) func(http.Handler) http.Handler {
	var calls atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) > times {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"allowed":[1],"replayed":[],"denied":[],"unavailable":[2,3],
				"summary":{"requested":3,"allowed":1,"denied":{},"unavailable":2,"duplicates":0,"replayed":0,
				 "segments":{"new":{"requested":3,"allowed":1}}},
				"generation":"g1","config_version":"p1"}`))
		})
	}
}

func TestUnavailableUsersAreAskedAgain(t *testing.T) {
	t.Parallel()
	c := newClient(t, client.Config{URL: newCapper(t, half(1))})
	r, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: "m", Users: []uint32{1, 2, 3}})
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 2, 3}, r.Allowed)
	require.Empty(t, r.Unavailable)
	require.Equal(t, api.Summary{Requested: 3, Allowed: 3, Denied: map[string]int{},
		Segments: map[string]api.SegmentSummary{"new": {Requested: 3, Allowed: 3}}}, r.Summary)

	for _, config := range []client.Config{
		{URL: newCapper(t, half(100)), Attempts: 1}, {URL: newCapper(t, half(1)), LeaveUnavailable: true},
	} {
		r, err = newClient(t, config).Filter(t.Context(), &client.FilterRequest{MessageID: "m",
			Users: []uint32{1, 2, 3}})
		require.NoError(t, err)
		require.Equal(t, []uint32{2, 3}, r.Unavailable, "given up on, and told so")
	}
}

func TestSplitBitmap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		audience := roaring.New()
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			start := uint64(rapid.Uint32().Draw(t, "start"))
			audience.AddRange(start, min(start+rapid.Uint64Range(1, 300_000).Draw(t, "n"), 1<<32))
		}
		size := rapid.IntRange(20_000, 200_000).Draw(t, "size")
		whole, last := roaring.New(), int64(-1)
		client.SplitBitmap(audience, size, func(part *roaring.Bitmap) bool {
			require.False(t, part.IsEmpty())
			require.LessOrEqual(t, part.GetCardinality(), uint64(size))
			require.Greater(t, int64(part.Minimum()), last)
			last = int64(part.Maximum())
			whole.Or(part)
			return true
		})
		require.True(t, whole.Equals(audience))
	})
}
