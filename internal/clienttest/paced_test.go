package clienttest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/capping/pebblestore"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/server"
	"capper/internal/testkit"
)

// pacers is the policy of the tests.
var pacers = pacing.Policy{Version: "p1", Pacers: []pacing.Pacer{
	{Name: "spaced", Rate: pacing.Rate{Permits: 250, Per: time.Second}},
	{Name: "burst", Limits: []pacing.Limit{{Max: 100, Window: time.Second}}},
	{Name: "advised", Limits: []pacing.Limit{{Max: 100, Window: 1100 * time.Millisecond}}},
	{Name: "minute", Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}},
	{Name: "short", Limits: []pacing.Limit{{Max: 50, Window: 100 * time.Millisecond}}},
	{Name: "slow", Rate: pacing.Rate{Permits: 1, Per: time.Hour}},
	{Name: "bounded", Rate: pacing.Rate{Permits: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond},
	{Name: "shared", Rate: pacing.Rate{Permits: 250, Per: time.Second},
		Shares: []pacing.Share{{Name: "otp", Percent: 20}}},
	{Name: "few", Limits: []pacing.Limit{{Max: 2, Window: 2 * time.Second}}},
	{Name: "message", Limits: []pacing.Limit{{Max: 100, Window: time.Second}}, Per: pacing.PerMessage},
}}

// grants is a store that remembers the slots that it granted.
type grants struct {
	pacing.Store
	oracle *pacingtest.Oracle

	mu    sync.Mutex
	slots []time.Time
	seen  map[pacing.Request]bool
	asks  int
	back  int // permits that went back, from callers or because a lease ended

	after func() // nil, or called when permits were taken
}

func (g *grants) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	grant, err := g.Store.TakePermits(ctx, ask)
	if err != nil {
		return grant, err
	}
	g.oracle.Add(ask, &grant)
	if g.after != nil {
		g.after()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asks++
	if g.seen[ask.Request] {
		return grant, nil
	}
	g.seen[ask.Request] = true // also replayed: the first time it was known to nobody
	for _, run := range grant.Runs {
		for i := range run.Permits {
			at := grant.At.Add(run.Wait + time.Duration(i/max(run.Burst, 1))*run.Every)
			g.slots = append(g.slots, time.UnixMicro(int64(at)))
		}
	}
	return grant, nil
}

func (g *grants) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	back, err := g.Store.ReturnPermits(ctx, ask, used)
	if err == nil {
		g.oracle.GiveUp(ask, back.Kept)
		g.oracle.Return(ask, &back)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.back += back.Permits
	}
	return back, err
}

// returned is how many permits went back. A Pacer gives back the permits of an answer that a busy machine has held up,
// so that no lease of them ends.
func (g *grants) returned() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.back
}

// granted lists the slots, earliest first.
func (g *grants) granted() []time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(slices.Values(g.slots), time.Time.Compare)
}

// calls is how many asked.
func (g *grants) calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asks
}

// began is when the clock of the tests began.
var began = time.Now()

// steady is a clock that nobody sets: senders wait by the monotonic clock, and the wall clock may be set or
// adjusted while a test runs.
func steady() time.Time { return began.Add(time.Since(began)).Round(0) }

// paced serves the pacers over an embedded store; wrap may stand between.
func paced(t *testing.T, wrap func(http.Handler) http.Handler) (url string, g *grants) {
	t.Helper()
	return pacedBy(t, wrap, steady)
}

// pacedBy is paced by a clock.
func pacedBy(t *testing.T, wrap func(http.Handler) http.Handler, clock func() time.Time) (url string, g *grants) {
	t.Helper()
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), Clock: clock,
		CacheBytes: 32 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	g = &grants{Store: store, oracle: pacingtest.NewOracle(), seen: map[pacing.Request]bool{}}
	t.Cleanup(func() { require.Empty(t, g.oracle.Faults()) })
	return newCapper(t, wrap, func(cfg *server.Config) { cfg.Pacers = pacing.New(g, &pacers) }), g
}

func newPacer(t *testing.T, url string, cfg client.PacerConfig) *client.Pacer {
	t.Helper()
	if cfg.OnRetry == nil {
		cfg.OnRetry = func(err error) { t.Log(err) }
	}
	p, err := client.NewPacer(newClient(t, client.Config{URL: url}), cfg)
	require.NoError(t, err)
	return p
}

// steadily repeats what needs a machine that stands still for no moment, until it comes out.
// What holds on every machine is demanded within.
func steadily(t *testing.T, try func() bool) {
	t.Helper()
	testkit.Steadily(t, 10, try, "it did not come out")
}

// starts is what workers that have always something to send do until ctx ends:
// when each send started, earliest first.
func starts(ctx context.Context, t *testing.T, workers int, wait func(context.Context) error) []time.Time {
	t.Helper()
	var mu sync.Mutex
	var all []time.Time
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			var own []time.Time
			for {
				err := wait(ctx)
				if err != nil {
					require.ErrorIs(t, err, ctx.Err())
					break
				}
				own = append(own, steady())
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	running.Wait()
	return slices.SortedFunc(slices.Values(all), time.Time.Compare)
}

// neverEarly demands that no send started before its slot: the n-th of all never
// before the n-th slot.
func neverEarly(t *testing.T, started, slots []time.Time) {
	t.Helper()
	require.LessOrEqual(t, len(started), len(slots))
	for i, at := range started {
		require.False(t, at.Before(slots[i]), "send %d started at %v, its slot was %v", i, at, slots[i])
	}
}

// late is how long after the slots sends started: half of them, and all of them.
func late(started, slots []time.Time) (middle, latest time.Duration) {
	all := make([]time.Duration, len(started))
	for i, at := range started {
		all[i] = at.Sub(slots[i])
	}
	if slices.Sort(all); len(all) == 0 {
		return 0, 0
	}
	return all[len(all)/2], all[len(all)-1]
}
