//go:build storms

package pebblestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/storetest"
	"capper/internal/pacing"
)

// TestManyRuns checks that a merged log is equal after a restart.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "fcm",
		Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}}}, Permits: 1}
	for n := range 10_000 {
		clock.Advance(time.Duration(n%7+n%11+1) * time.Microsecond)
		require.Equal(t, 1, take(t, s, ask).Granted)
	}
	look := &pacing.Ask{Targets: ask.Targets}
	before := take(t, s, look)
	require.Equal(t, 10_000, before.States[0].Used[0])
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Equal(t, before, take(t, s, look))
	require.LessOrEqual(t, keys(t, s), pacing.MostRuns+1)
	require.NoError(t, s.Close())
}
