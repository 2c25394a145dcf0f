package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// LateRelease checks that a release removes no send that was certainly recorded after the call. If the first attempt
// arrives late, it must not undo a send that was recorded after the answer to the repeated call. The store must check
// clocks.
func LateRelease(t *testing.T, open Open) {
	f := newFixture(t, open)
	users, id := f.users(300), f.message()
	token := capping.Message{ID: id}.Token()
	asked := f.clock.Instant()
	before := func(by time.Duration) []capping.Released {
		f.Helper()
		released := make([]capping.Released, len(users))
		caller := capping.Caller{Asked: asked - capping.Instant(by.Milliseconds())}
		ctx := capping.WithCaller(context.Background(), caller)
		require.NoError(f, f.store.Release(ctx, token, 0, users, released))
		return released
	}
	f.all(f.filter(f.batch(id, users)), capping.Allowed)
	tolerated := 2 * f.store.ClockTolerance()
	for _, result := range before(tolerated + time.Millisecond) {
		require.Equal(f, capping.ReleaseAbsent, result)
	}
	require.Equal(f, 1, f.live(users[7]), "the send is later than the call")
	f.all(f.filter(f.batch(id, users)), capping.Replayed)
	for _, result := range before(tolerated) {
		require.Equal(f, capping.ReleaseDone, result)
	}
	require.Zero(f, f.live(users[7]))
}

// callerWhoHasGone checks that a store begins nothing for a caller who no longer waits.
func callerWhoHasGone(f *fixture) {
	users, id := f.users(300), f.message()
	gone := make(chan struct{})
	ctx := capping.WithCaller(context.Background(), capping.Caller{Gone: gone})
	verdicts, released := make([]capping.Verdict, len(users)), make([]capping.Released, len(users))
	require.NoError(f, f.store.Filter(ctx, f.batch(id, users), verdicts))
	f.all(verdicts, capping.Allowed)
	close(gone)
	clear(verdicts)
	require.ErrorIs(f, f.store.Filter(ctx, f.batch(f.message(), users), verdicts), capping.ErrCallerGone)
	f.all(verdicts, capping.Unavailable)
	require.ErrorIs(f, f.store.Release(ctx, capping.Message{ID: id}.Token(), 0, users, released), capping.ErrCallerGone)
	for _, result := range released {
		require.Equal(f, capping.ReleaseUnavailable, result)
	}
	require.ErrorIs(f, f.store.Erase(ctx, users[7]), capping.ErrCallerGone)
	require.Equal(f, 1, f.live(users[7]))
}
