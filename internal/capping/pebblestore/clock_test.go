package pebblestore

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
)

const year = 365 * day

// TestClockJumpsAhead sets the clock far ahead while the store is open. The store must stamp and delete
// nothing with that clock, show the problem in its status, and block no user after the clock is right again.
func TestClockJumpsAhead(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, ClockBound: day, SweepInterval: time.Millisecond})
	users := manyUsers(20_000)
	requireAll(t, capping.Allowed, under(t, s, "first", 2, users, week))
	clock.Advance(23 * hour) // like after a machine's sleep
	requireAll(t, capping.Allowed, under(t, s, "second", 2, users, week))
	clock.Advance(5 * year)
	verdicts, err := filterAll(s, "jumped", users...)
	require.ErrorContains(t, err, "more than 24h ahead of the file system")
	requireAll(t, capping.Unavailable, verdicts)
	health := s.Health(context.Background())
	require.Equal(t, "down", health.State)
	require.Contains(t, health.Error, "correct the clock, or restart the service if the clock is right")
	_, err = s.sweepStep(context.Background(), []byte{database.KeyLog})
	require.Error(t, err)
	require.NoError(t, s.db.Mark())
	clock.Advance(-5 * year)
	require.Equal(t, "ok", s.Health(context.Background()).State)
	requireAll(t, capping.Denied, under(t, s, "third", 2, users, week))
	clock.Advance(-23*hour + 12*hour)
	requireAll(t, capping.Denied, under(t, s, "fourth", 2, users, week))
	require.Len(t, logOf(t, s, 7), 2)
	require.NoError(t, s.Close())
}

// TestClockAtStart compares the clock at a start with the clock of the last use.
func TestClockAtStart(t *testing.T) {
	t.Parallel()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db"), ClockBound: farAhead}
	at := func(offset time.Duration) Config {
		c := config
		c.Clock = func() time.Time { return time.Now().Add(offset) }
		return c
	}
	used(t, at(3*day), "ahead") // with a clock that was wrong from the start
	config.ClockBound = day
	refused(t, at(0), "was last used at", "sends may have expired too early", config.Path+".id")
	used(t, at(2*day+hour), "near")
	config.ClockBound = 3 * year
	used(t, at(2*year), "later")
	config.ClockBound = day
	refused(t, at(5*year), "would block users", config.Path+".id")
	refused(t, at(0), "sends may have expired too early")
}
