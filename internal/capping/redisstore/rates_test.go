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

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// Two stores on one cluster share a client's budget; different clients have different budgets.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	var stores []*Store
	for range 2 {
		s, err := openInTime(t, Config{Addrs: testcluster.Shared(t)})
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
				budget, err := stores[i%2].Take(context.Background(), caller, capping.Rate{UsersPerSecond: 1,
					Burst: 1000}, 100)
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
		budget, err := stores[0].Take(t.Context(), caller, capping.Rate{UsersPerSecond: 1, Burst: 1000}, 500)
		require.NoError(t, err)
		require.False(t, budget.Allowed)
		require.InDelta(t, 500*time.Second, budget.RetryAfter, float64(60*time.Second))
		require.InDelta(t, 1000*time.Second, budget.ResetAfter, float64(60*time.Second))
		require.Less(t, budget.Remaining, 100)
	}
}

// Budgets are in the store's namespace, so they need no right beyond those for the namespace.
func TestBudgetsNeedNoRightBeyondTheNamespace(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	server := admin(t, c.Addrs[0])
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)}) // as the user of deploy/redis.acl
	// with the script, and where the node has lost it
	for range 2 {
		budget, err := s.Take(t.Context(), "crm", capping.Rate{UsersPerSecond: 1, Burst: 100}, 10)
		require.NoError(t, err)
		require.True(t, budget.Allowed)
		require.NoError(t, server.ScriptFlush(t.Context()).Err())
	}
	keys, err := server.Keys(t.Context(), "*rate*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.Regexp(t, `^fc:\{\w+\}:rate:crm$`, keys[0])
	ttl, err := server.PTTL(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.InDelta(t, 20*time.Second, ttl, float64(10*time.Second), "it lasts until the budget is full")
}

func TestBudgetRefills(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	take := func(users int) capping.RateState {
		budget, err := s.Take(t.Context(), "crm", capping.Rate{UsersPerSecond: 1000, Burst: 500}, users)
		require.NoError(t, err)
		return budget
	}
	require.Equal(t, capping.RateState{Allowed: true, Remaining: 500}, take(0), "asked without taking")
	budget := take(500)
	require.True(t, budget.Allowed)
	require.LessOrEqual(t, budget.Remaining, 100)
	testkit.Eventually(t, func() bool { return take(300).Allowed })
	// A smaller burst, or a clock that went back, locks nobody out.
	partition := s.keyspace.PartitionOf("crm")
	ahead := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
	client := admin(t, s.top.Route(partition).Addr())
	require.NoError(t, client.Set(t.Context(), s.rateKey(partition, "crm"), ahead, time.Hour).Err())
	budget = take(500)
	require.False(t, budget.Allowed)
	require.LessOrEqual(t, budget.RetryAfter, 500*time.Millisecond)
	_, err := s.Take(t.Context(), "crm", capping.Rate{Burst: 500}, 1)
	require.ErrorContains(t, err, "BADARG")
}
