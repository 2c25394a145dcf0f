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

// fixture is one case's store, and who judges it.
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

// Names are never handed out twice by one process, and hardly ever by two.
var (
	process = rand.Uint32()
	names   atomic.Uint64
)

// Name is a pacer's that nobody else has.
func Name() string { return fmt.Sprintf("p%x-%d", process, names.Add(1)) }

// Request is one that nobody else has.
func Request() pacing.Request {
	sum := sha256.Sum256([]byte(Name()))
	return pacing.Request(sum[:16])
}

// target is a log that no other case has.
func target(limits ...pacing.Limit) pacing.Target {
	return pacing.Target{Pacer: Name(), Limits: limits}
}

// spaced is a limit of a rate.
func spaced(interval time.Duration) pacing.Limit { return pacing.Limit{Max: 1, Window: interval} }

// ask is for permits of the targets.
func ask(permits int, wait time.Duration, targets ...pacing.Target) *pacing.Ask {
	return &pacing.Ask{Targets: targets, Permits: permits, MaxWait: wait}
}

// requested is the ask with a request.
func requested(a *pacing.Ask, request pacing.Request) *pacing.Ask {
	a.Request = request
	return a
}

// take takes permits, and demands that the answer is what the model says, and that
// the store's time is what it was.
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

// slack is how far a store's clock may be from the test's.
const slack = pacing.Time(250_000)

// takeAll takes permits, in as many steps as it needs.
func (f *fixture) takeAll(permits int, wait time.Duration, targets ...pacing.Target) (granted int) {
	f.Helper()
	for more := true; more; {
		grant := f.take(ask(permits-granted, wait, targets...))
		granted, more = granted+grant.Granted, grant.More
	}
	return granted
}

// together runs n calls at once, each as often as there are asks of it.
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
