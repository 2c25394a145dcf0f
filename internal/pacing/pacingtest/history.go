package pacingtest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// Irregular returns a target with a window of one second, and permit requests that fill this window with permits at
// irregular distances. Every grant after the requests of Irregular has equally irregular distances.
func Irregular(pacer string, distances int) (irregular pacing.Target, asks []*pacing.Ask) {
	irregular = pacing.Target{Pacer: pacer, Limits: []pacing.Limit{{Max: 2 * distances, Window: time.Second}}}
	for i := range distances {
		asks = append(asks, ask(2, time.Minute, irregular,
			target(spaced(time.Duration(1009+37*(i*i%101))*time.Microsecond))))
	}
	return irregular, asks
}

func seeded(f *fixture, distances int) pacing.Target {
	irregular, asks := Irregular(Name(), distances)
	for _, ask := range asks {
		f.take(ask)
	}
	return irregular
}

func mostSteps(f *fixture) {
	irregular := seeded(f, 40)
	grant := f.take(ask(5000, time.Hour, irregular))
	require.True(f, grant.More)
	require.GreaterOrEqual(f, grant.Granted, pacing.MostSteps)
	require.Equal(f, 4000, f.takeAll(4000, time.Hour, irregular))
	require.False(f, f.take(ask(5000, 0, irregular)).More, "the wait ends it, not the steps")
}

// fullLog checks a log with more irregular permits than a log can hold as runs. The store must therefore move some
// permits of the full log to later slots. A limit may lose at most a thousandth of its permits because of moved
// permits.
func fullLog(f *fixture) {
	// Each limit of long and wider allows a little less than 100 permits a second.
	irregular, long := seeded(f, 50), target(pacing.Limit{Max: 8000, Window: 82 * time.Second})
	wider := target(pacing.Limit{Max: 9000, Window: 95 * time.Second},
		pacing.Limit{Max: 5000, Window: 51 * time.Second})
	for _, filled := range []pacing.Target{long, wider} {
		for taken := 0; taken < 30_000; {
			a := ask(pacing.MaxPermits, pacing.MaxWait, filled, irregular)
			grant, err := f.store.TakePermits(context.Background(), a)
			require.NoError(f, err)
			require.NotZero(f, grant.Granted)
			f.oracle.Add(a, &grant)
			taken += grant.Granted
		}
		share, windows := f.oracle.Share(&filled)
		f.Logf("%.5f of %d windows", share, windows)
		require.GreaterOrEqual(f, windows, 3)
		require.GreaterOrEqual(f, share, 0.999)
	}
}

// The type "history" makes random requests for permits of a few targets.
type history struct {
	*fixture
	rng     *rand.Rand
	targets []pacing.Target
	runs    int // an upper bound of the number of runs in all logs
	asked   []*pacing.Ask
}

// While a log has fewer runs (series of permits) than exactRuns, the store has not moved any permit to shorten the log.
const exactRuns = 400

func histories(f *fixture) { runHistories(f, rand.Uint64(), func(*rand.Rand) {}) }

// runHistories sends random sequences of requests to the store. The function "between" runs after each request.
func runHistories(f *fixture, seed uint64, between func(*rand.Rand)) {
	f.Helper()
	f.Logf("seed %d", seed)
	for i := range uint64(20) {
		h := &history{fixture: f, rng: rand.New(rand.NewPCG(seed, i))}
		for range 1 + h.rng.IntN(4) {
			h.targets = append(h.targets, pacing.Target{Pacer: Name(), Limits: h.limits()})
			if last := h.targets[len(h.targets)-1]; h.rng.IntN(3) == 0 { // add another log of the last pacer
				last.Message = "0123456789ab"
				h.targets = append(h.targets, last)
			}
		}
		for step := 0; step < 30 && h.runs < exactRuns; step++ {
			between(h.rng)
			h.step()
		}
	}
}

// The method "limits" returns random limits whose windows are multiples of one unit.
func (h *history) limits() (limits []pacing.Limit) {
	unit := time.Duration(1+h.rng.IntN(5000)) * []time.Duration{time.Microsecond, time.Millisecond}[h.rng.IntN(2)]
	for range 1 + h.rng.IntN(3) {
		limits = append(limits, pacing.Limit{Max: 1 + h.rng.IntN([]int{3, 30, 300}[h.rng.IntN(3)]),
			Window: unit * time.Duration(1+h.rng.IntN(50))})
	}
	if h.rng.IntN(3) == 0 {
		limits = append(limits, spaced(unit))
	}
	return limits
}

func (h *history) step() {
	h.Helper()
	if h.rng.IntN(6) == 0 { // change a limit, like a reload of the configuration
		h.targets[h.rng.IntN(len(h.targets))].Limits = h.limits()
	}
	switch n := h.rng.IntN(14); {
	case n == 0:
		pacer := h.targets[h.rng.IntN(len(h.targets))].Pacer
		require.NoError(h, h.store.ForgetPacer(context.Background(), pacer, ""))
		h.model.forget(pacer)
		h.oracle.Forget(pacer)
	case n < 3 && len(h.asked) > 0:
		a := *h.current(*h.asked[h.rng.IntN(len(h.asked))])
		h.giveBack(&a, h.rng.IntN([]int{1, 10, a.Permits + 2}[h.rng.IntN(3)]))
	case n < 5 && len(h.asked) > 0:
		h.again(h.asked[h.rng.IntN(len(h.asked))])
	default:
		h.anew()
	}
}

// The method "again" sends an earlier request once more, but with the current limits and a random wait. If the store
// has forgotten the request, the store grants new permits for the request. The model keeps the longest wait of all
// attempts at a request, because a later return of permits needs the longest wait.
func (h *history) again(asked *pacing.Ask) {
	h.Helper()
	a := h.current(*asked)
	a.MaxWait = h.wait()
	asked.MaxWait = max(asked.MaxWait, a.MaxWait)
	h.runs += len(h.take(a).Runs)
}

// The method "current" returns a copy of an earlier request for permits, in which each target has its current limits.
func (h *history) current(a pacing.Ask) *pacing.Ask {
	a.Targets = append([]pacing.Target(nil), a.Targets...)
	for i := range a.Targets {
		for _, t := range h.targets {
			if nameOf(&t) == nameOf(&a.Targets[i]) {
				a.Targets[i].Limits = t.Limits
			}
		}
	}
	return &a
}

func (h *history) anew() {
	h.Helper()
	var some []pacing.Target
	for _, i := range h.rng.Perm(len(h.targets))[:1+h.rng.IntN(len(h.targets))] {
		some = append(some, h.targets[i])
	}
	a := ask(h.rng.IntN([]int{2, 20, 400, 3000}[h.rng.IntN(4)]), h.wait(), some...)
	if a.Permits > 0 && h.rng.IntN(2) == 0 {
		a.Request = Request()
		h.asked = append(h.asked, a)
	}
	h.runs += len(h.take(a).Runs)
}

func (h *history) wait() time.Duration {
	return []time.Duration{0, 500 * time.Microsecond, 100 * time.Millisecond, 20 * time.Second,
		pacing.MaxWait}[h.rng.IntN(5)]
}
