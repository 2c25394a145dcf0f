package pebblestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// Leases outlive the process, and an unreadable one is none.
func TestLeasesAfterARestart(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	ctx, live, over, bad := t.Context(), pacing.Request{1}, pacing.Request{2}, pacing.Request{3}
	keep := func(r pacing.Request, lasts time.Duration) pacing.LeaseState {
		state, err := s.KeepLease(ctx, "", r, lasts, []byte{r[0], 0xFF})
		require.NoError(t, err)
		return state
	}
	require.Equal(t, pacing.LeaseBegun, keep(live, time.Minute))
	require.Equal(t, pacing.LeaseBegun, keep(over, time.Second))
	batch := s.db.NewBatch()
	require.NoError(t, batch.Set(leaseKey(bad), []byte("?"), nil))
	s.db.Commit(batch)
	require.NoError(t, batch.Close())
	require.NoError(t, s.db.Sync(ctx))
	require.NoError(t, s.Close())
	clock.Advance(2 * time.Second)
	s = reopen(t, config)
	ended, err := s.EndedLeases(ctx, "", 10)
	require.NoError(t, err)
	require.Equal(t, []pacing.Lease{{Request: over, Ended: time.Second, Call: []byte{2, 0xFF}}}, ended)
	require.Equal(t, pacing.LeaseExtended, keep(live, time.Minute))
	require.Equal(t, pacing.LeaseEnded, keep(over, time.Minute))
	require.Equal(t, pacing.LeaseBegun, keep(bad, time.Minute))
	require.NoError(t, s.RemoveLease(ctx, "", over))
	require.NoError(t, s.RemoveLease(ctx, "", live))
	ended, err = s.EndedLeases(ctx, "", 10)
	require.NoError(t, err)
	require.Empty(t, ended)
	require.Equal(t, pacing.LeaseBegun, keep(over, time.Second))
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Len(t, s.pacers.leases.ends, 3)
	clock.Advance(time.Hour)
	for most := range 5 {
		ended, err = s.EndedLeases(ctx, "", most)
		require.NoError(t, err)
		require.Len(t, ended, min(most, 3))
	}
	require.NoError(t, s.Close())
}
