package gate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestABudgetIsFullAgainAfterAPause(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	limiter := NewLimiter(func() time.Time { return now })
	rate := capping.Rate{UsersPerSecond: 3, Burst: 10}
	take := func(users int) capping.RateState {
		state, err := limiter.Take(context.Background(), "engine", rate, users)
		require.NoError(t, err)
		return state
	}
	require.Equal(t, capping.RateState{Allowed: true, Remaining: 1, ResetAfter: 3 * time.Second}, take(9))
	refused := take(3)
	require.Equal(t, capping.RateState{Remaining: 1, RetryAfter: 2 * time.Second / 3, ResetAfter: 3 * time.Second},
		refused)
	now = now.Add(refused.RetryAfter - 2*time.Nanosecond)
	require.False(t, take(3).Allowed)
	now = now.Add(3 * time.Nanosecond)
	require.Equal(t, 0, take(3).Remaining)
	now = now.Add(-time.Hour) // a clock that is set back adds no tokens
	require.False(t, take(1).Allowed)
	now = now.Add(2 * time.Hour)
	require.Equal(t, capping.RateState{Allowed: true, ResetAfter: 10 * time.Second / 3}, take(10))
}

// TestAChangedRateIsInForceAtOnce checks that a larger burst applies at once, and that earlier use counts against it.
func TestAChangedRateIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	limiter := NewLimiter(func() time.Time { return now })
	for _, step := range []struct {
		rate  capping.Rate
		users int
		want  capping.RateState
	}{
		{capping.Rate{UsersPerSecond: 10}, 4, capping.RateState{Allowed: true, Remaining: 6,
			ResetAfter: 400 * time.Millisecond}},
		{capping.Rate{UsersPerSecond: 10, Burst: 100}, 90, capping.RateState{Allowed: true, Remaining: 6,
			ResetAfter: 9400 * time.Millisecond}},
		{capping.Rate{UsersPerSecond: 1, Burst: 20}, 1, capping.RateState{RetryAfter: time.Second,
			ResetAfter: 20 * time.Second}},
	} {
		state, err := limiter.Take(context.Background(), "engine", step.rate, step.users)
		require.NoError(t, err)
		require.Equal(t, step.want, state)
	}
}
