//go:build storms

package pebblestore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

// TestSweepBesideCalls sweeps expired logs while calls write new ones.
func TestSweepBesideCalls(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour})
	users := make([]capping.UserID, 2000)
	for i := range users {
		users[i] = capping.UserID(i)
	}
	for round := range uint64(8) {
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			sweepAll(t, s)
		}()
		_, err := filterAll(s, crashMessage(round), users...)
		require.NoError(t, err)
		<-swept
		for _, user := range users {
			log, err := s.Log(context.Background(), user)
			require.NoError(t, err)
			require.Equal(t, 1, log.Len())
		}
		clock.Advance(8 * 24 * time.Hour)
	}
	require.NoError(t, s.Close())
}
