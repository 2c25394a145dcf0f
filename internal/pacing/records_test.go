package pacing_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

// numbers is a store of the numbers of records and of known logs.
type numbers struct {
	mu     sync.Mutex
	groups map[pacing.RecordGroup]int
	logs   map[string]bool
	calls  int
}

func (n *numbers) HasRequest(context.Context, string, pacing.Request) (bool, error) {
	return false, nil
}

func (n *numbers) HasLog(_ context.Context, t *pacing.Target) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	had := n.logs[t.Message]
	n.logs[t.Message] = true
	return had, nil
}

func (n *numbers) AddRecords(
	_ context.Context, added map[pacing.RecordGroup]int, now time.Time,
) (map[pacing.RecordGroup]int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	for group, number := range added {
		n.groups[group] += number
	}
	maps.DeleteFunc(n.groups, func(g pacing.RecordGroup, _ int) bool { return g.Expires <= now.Unix() })
	return maps.Clone(n.groups), nil
}

func newNumbers() *numbers {
	return &numbers{groups: map[pacing.RecordGroup]int{}, logs: map[string]bool{}}
}

func (n *numbers) total() (sum int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, number := range n.groups {
		sum += number
	}
	return sum
}

func recordPacers(records *pacing.Records, now func() time.Time) *pacing.Pacers {
	p := pacing.New(pacingtest.NewMemory(now), &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: "shared", Limits: []pacing.Limit{{Max: 1_000_000, Window: time.Second}}, MaxWait: pacing.MaxWait},
		{Name: "campaign", Limits: []pacing.Limit{{Max: 1_000_000, Window: time.Second}}, Per: pacing.PerMessage},
	}})
	p.Bound(records)
	return p
}

// TestRunTellsTheStore checks that the numbers reach the store within a second, sooner for many records, and
// when Run ends.
func TestRunTellsTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newNumbers()
		records := pacing.NewRecords(store, pacing.RecordBounds{Client: 640, All: 6400}, time.Now, nil)
		p := recordPacers(records, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); records.Run(ctx) }()
		ask := func(id string) {
			_, err := p.Take(t.Context(), &pacing.Call{Pacers: []string{"shared"}, Permits: 1, Client: "crm",
				RequestID: id})
			require.NoError(t, err)
		}
		ask("one")
		synctest.Wait()
		require.Zero(t, store.total())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 1, store.total())
		for n := range 10 {
			ask(string(rune('a' + n)))
		}
		synctest.Wait()
		require.Equal(t, 11, store.total(), "1/64 of the bound")
		ask("last")
		stop()
		<-done
		require.Equal(t, 12, store.total())
	})
}

// TestALogIsCountedWhileItIsUsed checks that a log is counted once during its count, and again when it is
// used for longer.
func TestALogIsCountedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newNumbers()
		records := pacing.NewRecords(store, pacing.RecordBounds{}, time.Now, nil)
		p := recordPacers(records, time.Now)
		for range 100 {
			_, err := p.Take(t.Context(), &pacing.Call{Pacers: []string{"campaign"}, Permits: 1, Client: "crm",
				Message: "0a"})
			require.NoError(t, err)
			require.NoError(t, records.Sync(t.Context()))
			require.Equal(t, 1, records.Count("crm", pacing.LogRecord))
			require.Zero(t, records.CountAll(pacing.RequestRecord))
			time.Sleep(time.Hour)
		}
		time.Sleep(28 * time.Hour)
		require.NoError(t, records.Sync(t.Context()))
		require.Zero(t, records.CountAll(pacing.LogRecord))
	})
}

// TestRequestsAreCountedWhileTheyAreRemembered checks that requests are counted while they are remembered,
// and at most 1/16 and a second longer.
func TestRequestsAreCountedWhileTheyAreRemembered(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Second, time.Minute, 7 * time.Minute, time.Hour, 23 * time.Hour,
		24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			records := pacing.NewRecords(newNumbers(), pacing.RecordBounds{}, time.Now, nil)
			p := recordPacers(records, time.Now)
			_, err := p.Take(t.Context(), &pacing.Call{Pacers: []string{"shared"}, Permits: 1, MaxWait: wait,
				Client: "crm", RequestID: "r"})
			require.NoError(t, err)
			lasts := wait + pacing.RememberFor
			time.Sleep(lasts - time.Millisecond)
			require.NoError(t, records.Sync(t.Context()))
			require.Equal(t, 1, records.CountAll(pacing.RequestRecord), wait)
			time.Sleep(lasts/16 + time.Second + time.Millisecond)
			require.NoError(t, records.Sync(t.Context()))
			require.Zero(t, records.CountAll(pacing.RequestRecord), wait)
		})
	}
}
