package server_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// TestTwoInstancesShareLimits uses two instances with separate connections to one cluster.
func TestTwoInstancesShareLimits(t *testing.T) {
	t.Parallel()
	clock, namespace := testkit.NewClockAt(startOfTest), testkit.Namespace()
	a := newServiceOver(t, openRedis(t, clock.Now, namespace), clock)
	b := newServiceOver(t, openRedis(t, clock.Now, namespace), clock)
	require.Len(t, a.filter(`{"message_id": "m1", "user_ids": [7]}`).Allowed, 1)
	require.Empty(t, b.filter(`{"message_id": "m2", "user_ids": [7]}`).Allowed)
	require.Equal(t, []uint32{7}, b.filter(`{"message_id": "m1", "user_ids": [7]}`).Replayed)

	var granted [500]atomic.Int64
	var calls sync.WaitGroup
	for i, s := range []*service{a, b, a, b, a, b} {
		calls.Go(func() {
			for _, user := range s.filter(fields{"message_id": fmt.Sprint("race-", i),
				"user_ids": span(1000, 1500)}).Allowed {
				granted[user-1000].Add(1)
			}
		})
	}
	calls.Wait()
	for user := range granted {
		require.EqualValues(t, 1, granted[user].Load(), "user %d", 1000+user)
	}
}
