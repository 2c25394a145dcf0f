package pebblestore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/testkit"
)

// keys returns the number of keys in the database without meta records.
func keys(t *testing.T, s *Store) (n int) {
	it, err := s.db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		if it.Key()[0] != database.KeyMeta {
			n++
		}
	}
	require.NoError(t, it.Close())
	return n
}

// sweepAll runs one whole pass of the sweep and returns its number of steps.
func sweepAll(t *testing.T, s *Store) (steps int) {
	for from := []byte{database.KeyLog}; from != nil; steps++ {
		var err error
		from, err = s.sweepStep(context.Background(), from)
		require.NoError(t, err)
	}
	return steps
}

// TestSweep checks that the sweep empties an idle store in bounded steps and keeps what can still matter,
// also after a restart before any call.
func TestSweep(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	users := make([]capping.UserID, sweepKeys*5/2)
	for i := range users {
		users[i] = capping.UserID(i * 27)
	}
	_, err := filterAll(s, "old", users...)
	require.NoError(t, err)
	clock.Advance(time.Hour)
	_, err = filterAll(s, "young", users[:1000]...)
	require.NoError(t, err)
	require.Equal(t, len(users)+2, keys(t, s))
	clock.Advance(week - time.Hour - time.Millisecond)
	require.Equal(t, 3, sweepAll(t, s))
	require.Equal(t, len(users)+2, keys(t, s), "a millisecond before the first is forgotten")
	require.NoError(t, s.Close())

	s = reopen(t, config)
	clock.Advance(time.Millisecond)
	sweepAll(t, s)
	require.Equal(t, 1000+1, keys(t, s))
	verdicts, err := filterAll(s, "old", users[999], users[1000])
	require.NoError(t, err)
	require.Equal(t, capping.Allowed, verdicts[0].Outcome, "the old send is forgotten")
	require.Equal(t, capping.Allowed, verdicts[1].Outcome)
	log, err := s.Log(context.Background(), users[999])
	require.NoError(t, err)
	require.Equal(t, 2, log.Len(), "the young one is not")
	clock.Advance(week)
	sweepAll(t, s)
	require.Zero(t, keys(t, s))
	require.NoError(t, s.Close())
}

// TestSweepRunsByItself checks that the background goroutine runs the sweep.
func TestSweepRunsByItself(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Millisecond})
	_, err := filterAll(s, "m", 1, 2, 3)
	require.NoError(t, err)
	clock.Advance(8 * 24 * time.Hour)
	testkit.Eventually(t, func() bool { return keys(t, s) == 0 })
	require.NoError(t, s.Close())
}
