//go:build storms

package pebblestore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/pacing"
)

// TestDamagedPacerBlocks flips bytes in the tables of a store with the logs of many pacers.
func TestDamagedPacerBlocks(t *testing.T) {
	t.Parallel()
	const all = 120
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	asks := make([]*pacing.Ask, all)
	for i := range asks {
		asks[i] = hundred(1, 0)
		asks[i].Targets[0].Pacer = fmt.Sprintf("pacer-%03d", i)
		asks[i].Targets[0].Limits[0].Window = time.Hour
		for n := range 31 {
			asks[i].Permits = 1 + n%2
			take(t, s, asks[i])
			clock.Advance(time.Duration(n+1) * time.Millisecond)
		}
	}
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.db.Compact(context.Background(), []byte{database.KeyPacer}, []byte{database.PacerEnd}, true))
	require.NoError(t, s.Close())
	tables, err := filepath.Glob(filepath.Join(config.Path, "*.sst"))
	require.NoError(t, err)
	flips := 0
	for _, table := range tables {
		content, err := os.ReadFile(table)
		require.NoError(t, err)
		for at := 23_000; at < len(content)-5_000; at += 25_000 {
			content[at] ^= 1
			flips++
		}
		require.NoError(t, os.WriteFile(table, content, 0o600))
	}
	require.Greater(t, flips, 2)

	s = reopen(t, config)
	var damaged []int
	for i, ask := range asks {
		ask.Permits = 1000
		grant, err := s.TakePermits(context.Background(), ask)
		if err != nil {
			require.ErrorContains(t, err, ask.Targets[0].Pacer)
			damaged = append(damaged, i)
			continue
		}
		require.Equal(t, 100-46, grant.Granted)
	}
	require.Greater(t, len(damaged), flips)
	require.Less(t, len(damaged), all/2)
	require.Contains(t, s.Health(context.Background()).Error, fmt.Sprintf("%d logs of pacers "+
		"(rate limiters) cannot be read", len(damaged)))
	for _, i := range damaged {
		pacer := asks[i].Targets[0].Pacer
		require.NoError(t, s.ForgetPacer(context.Background(), pacer, ""))
		grant, err := s.TakePermits(context.Background(), asks[i])
		require.NoError(t, err)
		require.Equal(t, 100, grant.Granted)
	}
	require.Equal(t, "ok", s.Health(context.Background()).State)
	clock.Advance(25 * time.Hour)
	sweepPacers(t, s, 1000)
	require.Contains(t, s.Health(context.Background()).Error, "block with pacer logs")
	clock.Advance(-25 * time.Hour)
	for _, i := range damaged {
		require.Equal(t, 100, take(t, s, asks[i]).Granted, "what was placed since is swept")
	}
	require.NoError(t, s.Close())
	s = reopen(t, config)
	for _, i := range damaged {
		grant, err := s.TakePermits(context.Background(), asks[i])
		require.NoError(t, err)
		require.Equal(t, 0, grant.Granted)
	}
	require.NoError(t, s.Close())
}
