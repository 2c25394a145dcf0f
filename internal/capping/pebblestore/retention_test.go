package pebblestore

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

const (
	hour = time.Hour
	day  = 24 * hour
	week = 7 * day
)

// under filters users with a policy that allows at most most sends per window.
func under(t *testing.T, s *Store, message string, most int, users []capping.UserID,
	windows ...time.Duration) []capping.Verdict {
	t.Helper()
	batch := benchBatch(message, users)
	batch.Rules, batch.Retention = [][]capping.Rule{nil}, 0
	for _, window := range windows {
		limit := capping.Limit{Max: most, Window: window}
		batch.Rules[0] = append(batch.Rules[0], limit.Rule(0, 0))
		batch.Retention = max(batch.Retention, window)
	}
	verdicts := make([]capping.Verdict, len(users))
	require.NoError(t, s.Filter(context.Background(), batch, verdicts))
	return verdicts
}

func requireAll(t *testing.T, want capping.Outcome, verdicts []capping.Verdict) {
	t.Helper()
	for i, v := range verdicts {
		if v.Outcome != want {
			t.Fatalf("user %d: outcome %d, not %d", i, v.Outcome, want)
		}
	}
}

func manyUsers(n int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(i)
	}
	return users
}

// TestLimitGoneForAMoment removes the weekly limit for a moment, in which every user is filtered and the
// sweep runs. With the limit back, no user may receive a fourth send. Restarts in between must change
// nothing.
func TestLimitGoneForAMoment(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		clock := storetest.NewClock()
		config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: hour}
		s := reopen(t, config)
		again := func() {
			if restart {
				require.NoError(t, s.Close())
				s = reopen(t, config)
			}
		}
		users := manyUsers(20_000)
		requireAll(t, capping.Allowed, under(t, s, "monday", 2, users, day, week))
		clock.Advance(25 * hour)
		requireAll(t, capping.Allowed, under(t, s, "tuesday", 2, users, day, week))
		clock.Advance(25 * hour)
		requireAll(t, capping.Denied, under(t, s, "wednesday", 2, users, day, week))
		again()
		// While the limit is missing, new sends must be remembered as long as before.
		sent := users[:len(users)/2]
		requireAll(t, capping.Allowed, under(t, s, "thursday", 2, sent, day))
		require.Contains(t, strings.Join(s.Health(context.Background()).Warnings, "; "),
			"look back 24h, but earlier limits looked back 168h")
		sweepAll(t, s)
		again()
		sweepAll(t, s)
		requireAll(t, capping.Denied, under(t, s, "friday", 2, users, day, week))
		require.NotContains(t, strings.Join(s.Health(context.Background()).Warnings, "; "), "look back")
		log, err := s.Log(context.Background(), sent[0])
		require.NoError(t, err)
		require.Equal(t, 3, log.Len())
		requireAll(t, capping.Replayed, under(t, s, "monday", 2, users, day, week))
		require.NoError(t, s.Close())
	}
}

// TestRetentionFalls checks that the store deletes by the shorter retention exactly when the longer one has
// passed since it was last in force.
func TestRetentionFalls(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: hour})
	users := manyUsers(1000)
	requireAll(t, capping.Allowed, under(t, s, "first", 1000, users, week))
	for range 7 {
		clock.Advance(day - hour)
		requireAll(t, capping.Allowed, under(t, s, clock.Now().String(), 1000, users[:1], day))
	}
	sweepAll(t, s)
	require.Len(t, logOf(t, s, 0), 8)
	require.Len(t, logOf(t, s, 999), 1)
	clock.Advance(8 * hour)
	sweepAll(t, s)
	require.Empty(t, logOf(t, s, 999), "a week and the hour by which it is noted ahead")
	requireAll(t, capping.Allowed, under(t, s, "last", 1000, users[:1], day))
	require.Len(t, logOf(t, s, 0), 2)
	require.NoError(t, s.Close())
}

func logOf(t *testing.T, s *Store, user capping.UserID) []capping.Entry {
	t.Helper()
	log, err := s.Log(context.Background(), user)
	require.NoError(t, err)
	return log.Entries()
}

// TestRetentionOfEarlierVersion opens a store with the note of a single retention, using a policy with a
// shorter one.
func TestRetentionOfEarlierVersion(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: hour}
	s := reopen(t, config)
	users := manyUsers(1000)
	requireAll(t, capping.Allowed, under(t, s, "first", 1, users, week))
	require.NoError(t, s.db.Delete(retentionsKey, pebble.Sync))
	value, err := s.db.Lookup(retentionKey)
	require.NoError(t, err)
	require.Equal(t, encodeRetention(week.Milliseconds()), value, "as earlier versions read it")
	require.NoError(t, s.Close())

	s = reopen(t, config)
	clock.Advance(3 * day)
	requireAll(t, capping.Allowed, under(t, s, "second", 1, users, day))
	requireAll(t, capping.Denied, under(t, s, "third", 1, users, week))
	require.Len(t, logOf(t, s, 0), 2)
	require.NoError(t, s.Close())
}

// TestRetentions compares the noted retentions with a list of all that were in force.
func TestRetentions(t *testing.T) {
	t.Parallel()
	const h = capping.Instant(time.Hour / time.Millisecond)
	var noted retentions
	inForce := make(map[int64]capping.Instant) // the last time in force
	for i := range capping.Instant(10_000) {
		now := i * h / 3
		millis := int64(i*i*7919%40+1) * int64(h)
		if i > 5000 {
			millis = int64(i%3+1) * int64(h)
		}
		if !noted.inForce(millis, now) {
			noted = noted.with(millis, now)
		}
		inForce[millis] = now
		for other, at := range inForce {
			if at+capping.Instant(other) > now {
				require.GreaterOrEqual(t, noted.longest(now).millis, other)
			}
		}
		require.LessOrEqual(t, noted.longest(now).millis, int64(40*h))
		require.LessOrEqual(t, len(noted), maxRetentions)
		again, err := decodeRetentions(encodeRetentions(noted))
		require.NoError(t, err)
		require.Equal(t, noted, again)
		if i > 6000 {
			require.LessOrEqual(t, noted.longest(now).millis, int64(3*h))
		}
	}
	for _, bad := range [][]byte{{1}, make([]byte, 16), bytes.Repeat([]byte{255}, 16),
		encodeRetentions(retentions{{5, 1}, {5, 2}}), make([]byte, 16*(maxRetentions+1))} {
		_, err := decodeRetentions(bad)
		require.Error(t, err)
	}
}
