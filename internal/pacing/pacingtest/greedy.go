package pacingtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// Greedy is a group of test clients that take all permits that they can get, each from a random store. An Oracle checks
// the grants of the greedy clients. The test must set exported fields before it calls Begin.
type Greedy struct {
	Stores  []pacing.Store
	Targets []pacing.Target // the targets of every ask
	Sizes   []int           // each ask draws its number of permits from this list
	Waits   []time.Duration // each ask draws its longest wait from this list
	Oracle  *Oracle
	// Requests is the percentage of permit requests that have a request id. Clients repeat these requests until the
	// store replies. If the reply to a permit request without a request id is lost, the client does not repeat the
	// request.
	Requests int
	// Returns is the percentage of granted requests whose permits clients return, in part or completely.
	Returns  int
	Patience time.Duration // the timeout of each call

	load
	mu        sync.Mutex
	requested []*pacing.Ask
	tally     Tally
}

// Tally counts calls of test clients and their results.
type Tally struct {
	Calls, Granted, Lost int // numbers of calls, granted permits and lost replies
	Returned             int // number of returned permits
	Slowest              time.Duration
	LastError            error
}

// The method Add adds the counts of the tally z to y.
func (y *Tally) Add(z Tally) {
	y.Calls += z.Calls
	y.Granted += z.Granted
	y.Lost += z.Lost
	y.Returned += z.Returned
	y.Slowest = max(y.Slowest, z.Slowest)
	if z.LastError != nil {
		y.LastError = z.LastError
	}
}

// String returns the counts in one line for reports.
func (y *Tally) String() string {
	return fmt.Sprintf("%d calls for permits, %d granted, %d given back, %d answers lost, slowest answer %v, "+
		"last error: %v", y.Calls, y.Granted, y.Returned, y.Lost, y.Slowest.Round(time.Millisecond), y.LastError)
}

// Tally returns the number of calls by the test clients, and the numbers of their results.
func (g *Greedy) Tally() Tally {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tally
}

// String returns the counts in one line for reports.
func (g *Greedy) String() string {
	y := g.Tally()
	return y.String()
}

// NewGreedy returns test clients with a timeout of 10 seconds for each call and a new Oracle.
func NewGreedy(stores []pacing.Store, targets ...pacing.Target) *Greedy {
	return &Greedy{
		Stores: stores, Targets: targets, Sizes: []int{1, 10, 100, 1000, 1000, 1000},
		Waits:  []time.Duration{0, 10 * time.Second, pacing.MaxWait},
		Oracle: NewOracle(), Patience: 10 * time.Second, load: load{stop: make(chan struct{})},
	}
}

// The method Begin starts the given number of clients.
func (g *Greedy) Begin(clients int, seed uint64) { g.begin(clients, seed, 0, g.once) }

// longestPause is the longest pause of a client after the store has reported a long wait.
const longestPause = 5 * time.Millisecond

// The method "once" asks a store for permits, and repeats the request if it has a request id. The result of "once" is
// the pause until the next request.
func (g *Greedy) once(rng *rand.Rand) time.Duration {
	a := ask(g.Sizes[rng.IntN(len(g.Sizes))], g.Waits[rng.IntN(len(g.Waits))], g.Targets...)
	if rng.IntN(100) < g.Requests {
		a.Request = Request()
	}
	for attempt := 0; ; attempt++ {
		grant, err := g.take(g.Stores[rng.IntN(len(g.Stores))], a)
		switch {
		case err == nil:
			g.keep(a, &grant)
			if a.Request != (pacing.Request{}) && grant.Granted > 0 && rng.IntN(100) < g.Returns {
				g.giveBack(rng, a, rng.IntN(2)*rng.IntN(grant.Granted+1))
			}
			return min(grant.Next, longestPause)
		case a.Request == (pacing.Request{}) || attempt == 100:
			return longestPause
		}
		g.pause(longestPause)
	}
}

// giveBack returns the permits of a request to the store, except the first "used" permits. The method giveBack first
// removes the returned permits from the Oracle, because a return without a reply may have succeeded.
func (g *Greedy) giveBack(rng *rand.Rand, a *pacing.Ask, used int) {
	g.Oracle.GiveUp(a, used)
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), g.Patience)
		back, err := g.Stores[rng.IntN(len(g.Stores))].ReturnPermits(ctx, a, used)
		cancel()
		if err == nil {
			g.Oracle.Return(a, &back)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.tally.Returned += back.Permits
			return
		}
		g.pause(longestPause)
		if g.stopped() {
			return
		}
	}
}

func (g *Greedy) take(store pacing.Store, a *pacing.Ask) (pacing.Grant, error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.Patience)
	defer cancel()
	began := time.Now()
	grant, err := store.TakePermits(ctx, a)
	one := Tally{Calls: 1, Slowest: time.Since(began), LastError: err}
	if err != nil {
		one.Lost = 1
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.Add(one)
	return grant, err
}

func (g *Greedy) keep(a *pacing.Ask, grant *pacing.Grant) {
	g.Oracle.Add(a, grant)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.Granted += grant.Granted
	if a.Request != (pacing.Request{}) && grant.Granted > 0 {
		g.requested = append(g.requested, a)
	}
}

// The method Takes waits until the test clients have got the given number of further permits. The method Takes fails
// the test if the store stops granting permits.
func (g *Greedy) Takes(t testing.TB, permits int) {
	t.Helper()
	had := g.Tally().Granted
	for want := had + permits; had < want; had = g.Tally().Granted {
		testkit.Eventually(t, func() bool { return g.Tally().Granted > had }, "permits: %v", g)
	}
}

// The method Settle repeats the latest requests of the test clients, possibly at another store, and fails the test if a
// request gets no reply. The test must call Settle after End, and only when the stores are healthy.
func (g *Greedy) Settle(t testing.TB) {
	t.Helper()
	some := g.requested[max(0, len(g.requested)-100):] // the latest requests, which the store still remembers
	for i, a := range some {
		store := g.Stores[i%len(g.Stores)]
		testkit.Eventually(t, func() bool {
			grant, err := g.take(store, a)
			if err == nil {
				g.Oracle.Add(a, &grant)
			}
			return err == nil
		}, "a request is answered again: %v", g)
	}
}

// Faults returns the faults that the Oracle found, including granted permits that are missing in the ledger. The ledger
// is a target whose limit is never reached, so that the log of the ledger counts all granted permits.
func (g *Greedy) Faults(t testing.TB, ledger pacing.Target) []string {
	t.Helper()
	faults := g.Oracle.Faults()
	var state pacing.State
	testkit.Eventually(t, func() bool {
		grant, err := g.take(g.Stores[0], ask(0, 0, ledger))
		if err == nil {
			state = grant.States[0]
		}
		return err == nil
	}, "the store tells what is used: %v", g)
	switch used, granted := state.Used[0], g.Oracle.Granted(&ledger); {
	case used < granted:
		faults = append(faults, fmt.Sprintf("%d permits were granted, %d are recorded", granted, used))
	case used > granted && g.Requests == 100 && g.Returns == 0:
		faults = append(faults, fmt.Sprintf("%d permits were granted, each by a request, and %d are recorded", granted,
			used))
	}
	return faults
}

// Ledger returns a target whose log counts permits, and whose limit is too high to ever delay a permit.
func Ledger() pacing.Target {
	return target(pacing.Limit{Max: pacing.MaxMax, Window: pacing.MaxWindow})
}

// greedyCases lists limits like the limits of real message providers.
var greedyCases = []struct {
	name    string
	limits  [][]pacing.Limit // limits of each target of an ask
	permits int              // number of permits to take, most of them with slots in the future
	atOnce  int              // number of permits to take without waits; 0: none, because such a run would take minutes
	sizes   []int            // numbers of permits of an ask; nil: any number
}{
	{"100 a second", [][]pacing.Limit{{{Max: 100, Window: time.Second}}}, 100_000, 250, nil},
	{"250 a second, spaced", [][]pacing.Limit{{spaced(4 * time.Millisecond)}}, 100_000, 500, nil},
	{"600,000 a minute", [][]pacing.Limit{{{Max: 600_000, Window: time.Minute}}}, 1_250_000, 0, nil},
	{"10,000 a second", [][]pacing.Limit{{{Max: 10_000, Window: time.Second}}}, 500_000, 25_000, nil},
	{"all together", [][]pacing.Limit{
		{{Max: 100, Window: time.Second}, {Max: 50_000, Window: day}}, {spaced(4 * time.Millisecond)},
		{{Max: 600_000, Window: time.Minute}},
	}, 20_000, 250, nil},
	{"one by one, more than a log has runs for", [][]pacing.Limit{{{Max: 3500, Window: 10 * time.Minute}}}, 7100, 0,
		[]int{1}},
}

// RunGreedy runs 16 greedy clients on several instances of one store. RunGreedy checks that no window of a limit has
// too many permits. RunGreedy also checks that the clients get at least 99 % of the permits that the limits allow.
func RunGreedy(t *testing.T, stores ...pacing.Store) {
	for _, c := range greedyCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			greedy(t, stores, c.limits, c.permits, func(g *Greedy) {
				if c.sizes != nil {
					g.Sizes, g.Waits = c.sizes, []time.Duration{pacing.MaxWait}
				}
			})
			if c.atOnce > 0 {
				greedy(t, stores, c.limits, c.atOnce, func(g *Greedy) { g.Waits = []time.Duration{0} })
			}
		})
	}
}

func greedy(t *testing.T, stores []pacing.Store, limits [][]pacing.Limit, permits int, change func(*Greedy)) {
	t.Helper()
	g := NewGreedy(stores)
	for _, l := range limits {
		g.Targets = append(g.Targets, target(l...))
	}
	change(g)
	defer g.End()
	g.Begin(16, rand.Uint64())
	g.Takes(t, permits)
	g.End()
	require.Empty(t, g.Oracle.Faults())
	require.Zero(t, g.Tally().Lost, "%v", g)
	share, windows := 0.0, 0
	for i := range g.Targets { // the target that allows the fewest permits decides
		if of, n := g.Oracle.Share(&g.Targets[i]); of > share {
			share, windows = of, n
		}
	}
	t.Logf("waits up to %v: %.5f of what %d windows allow; %v", slices.Max(g.Waits), share, windows, g)
	if slices.Max(g.Waits) > 0 { // without waits, the speed depends on the times of the requests
		require.NotZero(t, windows)
		require.GreaterOrEqual(t, share, 0.99)
	}
}
