package pacingtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

const day = 24 * time.Hour

// The type "fixture" holds the store under test for one test case, and the checkers of its grants.
type fixture struct {
	*testing.T
	store  pacing.Store
	now    func() time.Time
	oracle *Oracle
	model  *model
}

func newFixture(t *testing.T, store pacing.Store, now func() time.Time) *fixture {
	return &fixture{t, store, now, NewOracle(), newModel()}
}

func (f *fixture) judge() {
	f.Helper()
	require.Empty(f, f.oracle.Faults())
}

// process and names are the two numbers in each pacer name that Name returns. One process never repeats a name, and two
// processes hardly ever use the same name.
var (
	process = rand.Uint32()
	names   atomic.Uint64
)

// Name returns a pacer name that no other test uses.
func Name() string { return fmt.Sprintf("p%x-%d", process, names.Add(1)) }

// Request returns a random request hash that no other test uses.
func Request() pacing.Request {
	sum := sha256.Sum256([]byte(Name()))
	return pacing.Request(sum[:16])
}

// The function "target" returns a target (log with limits) with the given limits and a log that no other test uses.
func target(limits ...pacing.Limit) pacing.Target {
	return pacing.Target{Pacer: Name(), Limits: limits}
}

// The function "spaced" returns a limit of one permit per interval. Package pacing checks a rate in the form of a
// limit.
func spaced(interval time.Duration) pacing.Limit { return pacing.Limit{Max: 1, Window: interval} }

// The function "ask" returns a permit request for the targets. The slots of the permits may be at most "wait" in the
// future.
func ask(permits int, wait time.Duration, targets ...pacing.Target) *pacing.Ask {
	return &pacing.Ask{Targets: targets, Permits: permits, MaxWait: wait}
}

// The function "requested" sets the request id of a request for permits, and returns this request.
func requested(a *pacing.Ask, request pacing.Request) *pacing.Ask {
	a.Request = request
	return a
}

// The method "take" takes permits, and checks that the grant equals the model's prediction and that the store's clock
// is right.
func (f *fixture) take(ask *pacing.Ask) pacing.Grant {
	f.Helper()
	before := f.now()
	grant, err := f.store.TakePermits(context.Background(), ask)
	require.NoError(f, err)
	after := f.now()
	require.GreaterOrEqual(f, grant.At, pacing.TimeOf(before)-slack, "its time is that of the call")
	require.LessOrEqual(f, grant.At, pacing.TimeOf(after)+slack, "its time is that of the call")
	require.Empty(f, f.model.compare(ask, &grant), "%d permits, up to %v, granted %+v", ask.Permits, ask.MaxWait, grant)
	f.oracle.Add(ask, &grant)
	return grant
}

// The constant "slack" is the largest difference between a store's clock and the test's clock.
const slack = pacing.Time(250_000)

// takeAll takes permits in as many requests to the store as needed, and returns the number of granted permits.
func (f *fixture) takeAll(permits int, wait time.Duration, targets ...pacing.Target) (granted int) {
	f.Helper()
	for more := true; more; {
		grant := f.take(ask(permits-granted, wait, targets...))
		granted, more = granted+grant.Granted, grant.More
	}
	return granted
}

// The method "together" runs n callers in parallel. Each of the parallel callers sends its own requests to the store
// one after another.
func (f *fixture) together(n int, asks func(call int) []*pacing.Ask) {
	f.Helper()
	var calls sync.WaitGroup
	start, errs := make(chan struct{}), make([]error, n)
	for call := range n {
		todo := asks(call)
		calls.Go(func() {
			<-start
			for _, ask := range todo {
				grant, err := f.store.TakePermits(context.Background(), ask)
				if err != nil {
					errs[call] = err
					return
				}
				f.oracle.Add(ask, &grant)
			}
		})
	}
	close(start)
	calls.Wait()
	for _, err := range errs {
		require.NoError(f, err)
	}
}
