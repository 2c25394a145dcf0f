package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
)

// Two stores over one cluster share a caller's budget; callers do not.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	var stores []*Store
	for range 2 {
		s, err := Open(t.Context(), Config{Addrs: testcluster.Shared(t)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	for _, caller := range []string{"crm", "shop", "news"} {
		caller = fmt.Sprintf("%s-%d", caller, rand.Uint64())
		var granted atomic.Int64
		var calls sync.WaitGroup
		for i := range 40 {
			calls.Go(func() {
				budget, err := stores[i%2].Take(context.Background(), caller, 1, 1000, 100)
				if err != nil {
					t.Error(err)
				}
				if budget.Allowed {
					granted.Add(100)
				}
			})
		}
		calls.Wait()
		require.Equal(t, int64(1000), granted.Load())
		budget, err := stores[0].Take(t.Context(), caller, 1, 1000, 500)
		require.NoError(t, err)
		require.False(t, budget.Allowed)
		require.InDelta(t, 500*time.Second, budget.RetryAfter, float64(60*time.Second))
		require.InDelta(t, 1000*time.Second, budget.ResetAfter, float64(60*time.Second))
		require.Less(t, budget.Remaining, 100)
	}
}
