package pacingtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// faulty is a store with a fault in its handling of asks.
type faulty struct {
	*Memory
	take func(m *Memory, n int64, ask pacing.Ask) (pacing.Grant, error)
	asks *atomic.Int64
}

func (f faulty) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if ask.Permits == 0 { // a look without permits
		return f.Memory.TakePermits(ctx, ask)
	}
	a := *ask
	a.Targets = append([]pacing.Target(nil), a.Targets...)
	return f.take(f.Memory, f.asks.Add(1), a)
}

// forgetful is a store that grants a repeated request what it gave back.
type forgetful struct{ *Memory }

func (f forgetful) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	f.mu.Lock()
	var before *pacing.Remembered
	if held := f.requests[ask.Request]; held != nil {
		before = new(*held)
	}
	f.mu.Unlock()
	back, err := f.Memory.ReturnPermits(ctx, ask, used)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[ask.Request] = before
	return back, err
}

// hasty is a store that takes back slots that have passed.
type hasty struct{ *Memory }

func (h hasty) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	h.mu.Lock()
	now := h.now
	h.now = func() time.Time { return now().Add(-time.Hour) }
	h.mu.Unlock()
	back, err := h.Memory.ReturnPermits(ctx, ask, used)
	back.At = back.At.Add(time.Hour)
	for i := range back.Runs {
		back.Runs[i].Wait -= time.Hour
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = now
	return back, err
}

// TestOracleBitesWhatIsReturned checks that clients that give permits back find the fault of each faulty store.
func TestOracleBitesWhatIsReturned(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		store pacing.Store
		waits []time.Duration
		takes int
	}{
		"":                   {NewMemory(time.Now), []time.Duration{0, 10 * time.Second, pacing.MaxWait}, 3000},
		"permits stayed was": {forgetful{NewMemory(time.Now)}, []time.Duration{0, 10 * time.Second}, 1000},
		"a slot of":          {hasty{NewMemory(time.Now)}, []time.Duration{0}, 150},
	} {
		ledger := Ledger()
		g := NewGreedy([]pacing.Store{c.store}, target(pacing.Limit{Max: 100, Window: time.Second}),
			target(spaced(4*time.Millisecond)), ledger)
		g.Requests, g.Returns, g.Sizes, g.Waits = 100, 50, []int{1, 10, 40}, c.waits
		g.Begin(4, 1)
		g.Takes(t, c.takes)
		g.End()
		g.Settle(t)
		found := strings.Join(g.Faults(t, ledger), "\n")
		if want == "" {
			require.Empty(t, found)
			require.Positive(t, g.Tally().Returned)
		}
		require.Contains(t, found, want)
	}
}

// careless is a store that forgets the logs of parts and keys now and then.
type careless struct {
	*Memory
	asks *atomic.Int64
}

func (c careless) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if c.asks.Add(1)%200 == 0 {
		c.mu.Lock()
		for name := range c.logs {
			if !strings.HasSuffix(name, "/") {
				delete(c.logs, name)
			}
		}
		c.mu.Unlock()
	}
	return c.Memory.TakePermits(ctx, ask)
}

// lossy is a store of which answers are lost at random.
type lossy struct{ *Memory }

func (l lossy) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	grant, err := l.Memory.TakePermits(ctx, ask)
	if rand.IntN(20) == 0 {
		return pacing.Grant{}, errLost
	}
	return grant, err
}

// brief is a store in which leases end at once.
type brief struct{ *Memory }

func (b brief) EndedLeases(_ context.Context, _ string, _ int) (ended []pacing.Lease, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, l := range b.leases {
		ended = append(ended, pacing.Lease{Request: r, Call: l.call})
	}
	clear(b.leases)
	return ended, nil
}

// TestCallersBite checks that callers of shares and keys find the fault of each faulty store.
func TestCallersBite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store pacing.Store
		want  string
	}{
		"a sound store":      {NewMemory(time.Now), ""},
		"answers are lost":   {lossy{NewMemory(time.Now)}, ""},
		"logs are forgotten": {careless{NewMemory(time.Now), new(atomic.Int64)}, "permits within"},
		"what went back":     {forgetful{NewMemory(time.Now)}, "permits stayed was"},
		"leases end early":   {brief{NewMemory(time.Now)}, "a call with a lease of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			callersFind(t, c.store, c.want)
		})
	}
}

func callersFind(t *testing.T, store pacing.Store, want string) {
	t.Helper()
	c := NewCallers(CallersPolicy(), NewOracle(), store, store)
	defer c.End()
	c.Begin(4, 1)
	for had := c.Tally(); had.Calls <= 1000 || had.Returned <= 20; had = c.Tally() {
		testkit.Eventually(t, func() bool { return c.Tally().Calls > had.Calls })
	}
	c.End()
	c.Settle(t)
	found := strings.Join(c.Faults(t), "\n")
	if want == "" {
		require.Empty(t, found)
	}
	require.Contains(t, found, want)
}

var errLost = errors.New("the answer is lost")

func granted(m *Memory, a pacing.Ask) pacing.Grant {
	grant, err := m.TakePermits(context.Background(), &a)
	if err != nil {
		panic(err)
	}
	return grant
}

// TestOracleBites checks that greedy clients find the fault of each faulty store. A store that only loses
// replies has no fault.
func TestOracleBites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		take func(m *Memory, n int64, ask pacing.Ask) (pacing.Grant, error)
		want []string
	}{
		"answers are lost": {func(m *Memory, n int64, ask pacing.Ask) (pacing.Grant, error) {
			if grant := granted(m, ask); n%3 > 0 {
				return grant, nil
			}
			return pacing.Grant{}, errLost
		}, nil},
		"answers are lost and requests forgotten": {func(m *Memory, n int64, ask pacing.Ask) (pacing.Grant, error) {
			ask.Request = pacing.Request{}
			if grant := granted(m, ask); n%3 > 0 {
				return grant, nil
			}
			return pacing.Grant{}, errLost
		}, []string{"each by a request", "a request was granted"}},
		"lost answers are made up": {func(m *Memory, n int64, ask pacing.Ask) (pacing.Grant, error) {
			grant := granted(m, ask)
			if n%50 == 0 {
				grant.Granted, grant.Runs = ask.Permits, []pacing.WaitRun{{Burst: 1, Permits: ask.Permits}}
			}
			return grant, nil
		}, []string{"permits within", "are recorded"}},
		"what was recorded is lost": {func(m *Memory, n int64, ask pacing.Ask) (pacing.Grant, error) {
			if n == 50 {
				m.mu.Lock()
				clear(m.logs)
				m.mu.Unlock()
			}
			return granted(m, ask), nil
		}, []string{"permits within", "are recorded"}},
		"a window is short": {func(m *Memory, _ int64, ask pacing.Ask) (pacing.Grant, error) {
			ask.Targets[0].Limits = []pacing.Limit{{Max: 100, Window: time.Second - 4*time.Millisecond}}
			return granted(m, ask), nil
		}, []string{"101 permits within 99"}},
		"one permit too many": {func(m *Memory, _ int64, ask pacing.Ask) (pacing.Grant, error) {
			ask.Targets[0].Limits = []pacing.Limit{{Max: 101, Window: time.Second}}
			return granted(m, ask), nil
		}, []string{"of a limit of 100 in 1s"}},
		"a rate is a microsecond fast": {func(m *Memory, _ int64, ask pacing.Ask) (pacing.Grant, error) {
			ask.Targets[1].Limits = []pacing.Limit{spaced(4*time.Millisecond - time.Microsecond)}
			return granted(m, ask), nil
		}, []string{"2 permits within 3.999ms"}},
		"targets one after the other": {func(m *Memory, _ int64, ask pacing.Ask) (pacing.Grant, error) {
			first := ask // an ask with slots of its own
			first.Targets, first.Request = ask.Targets[:1], pacing.Request{}
			granted(m, first)
			ask.Targets = ask.Targets[1:]
			return granted(m, ask), nil
		}, []string{"of a limit of 100 in 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := Ledger()
			store := faulty{NewMemory(time.Now), c.take, new(atomic.Int64)}
			g := NewGreedy([]pacing.Store{store}, target(pacing.Limit{Max: 100, Window: time.Second}),
				target(spaced(4*time.Millisecond)), ledger)
			g.Requests, g.Sizes = 100, []int{1, 10, 40}
			defer g.End()
			g.Begin(4, 1)
			g.Takes(t, 3000)
			g.End()
			g.Settle(t)
			found := strings.Join(g.Faults(t, ledger), "\n")
			if len(c.want) == 0 {
				require.Empty(t, found)
			}
			for _, want := range c.want {
				require.Contains(t, found, want)
			}
		})
	}
}
