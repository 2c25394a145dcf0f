package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestIdleKeyspaceEmpties(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	records, err := client.DBSize(t.Context()).Result()
	require.NoError(t, err)
	b := batchOf("a", spread(1000), rolling(1, time.Second))
	b.Retention = time.Second
	var began time.Time
	testkit.Eventually(t, func() bool { // before they expire
		began = time.Now()
		filter(t, s, b)
		size, err := client.DBSize(t.Context()).Result()
		return err == nil && size > 1000
	}, "logs, the message id and the records")
	testkit.Eventually(t, func() bool {
		size, err := client.DBSize(t.Context()).Result()
		// that of the retention, and counts, which are kept for a day
		return err == nil && size == records+1+int64(s.keyspace.Partitions)
	})
	require.Greater(t, time.Since(began), time.Second)
	for _, key := range client.Keys(t.Context(), "*").Val() { // which expire a month after the last instance is gone
		require.Positive(t, client.PTTL(t.Context(), key).Val(), key)
	}
}

// A key's TTL outlives its newest entry by the retention, whatever the order of sends, and also after the retention
// grew.
func TestTTLOutlivesNewestEntry(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openShared(t, func(config *Config) { config.Clock = c.now })
	client := owner(t, s, 1)
	_, key, _ := s.key(1)
	send := func(i int, user capping.UserID, retention time.Duration) {
		b := batchOf(fmt.Sprint("m", i), []capping.UserID{user})
		b.Retention = retention
		filter(t, s, b)
		ttl, err := client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		// The server's clock went on by what the test took, ours only as told.
		require.Greater(t, ttl, retention-time.Minute)
		require.Less(t, ttl, retention+retention/32+time.Minute)
	}
	const hours = time.Hour
	// The server's TTL runs on real time: each step's user is new, so that the
	// step sets what the real key lacks.
	send(0, 1, 24*hours)
	send(1, 2, 24*hours)
	send(2, 1, 168*hours)
	send(3, 3, 168*hours)
}

func TestRepeatedSendsDoNotTouchTheTTL(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openShared(t, func(config *Config) { config.Clock = c.now })
	client := owner(t, s, 1)
	_, key, _ := s.key(1)
	extended := func(message string) bool {
		require.NoError(t, client.PExpire(t.Context(), key, time.Minute).Err())
		filter(t, s, batchOf(message, []capping.UserID{1}))
		ttl, err := client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		return ttl > time.Hour
	}
	filter(t, s, batchOf("a", []capping.UserID{1}))
	c.advance(time.Hour)
	require.False(t, extended("b"), "the slack of 2.6 hours is not used up")
	c.advance(2 * time.Hour)
	require.True(t, extended("c"))
}

// Sends to a busy bucket also remove the logs of its idle users.
func TestIdleUsersOfBusyBucketsArePruned(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, idleUsersArePruned)
}

func idleUsersArePruned(t *testing.T, l layout) {
	c := newClock()
	s := openShared(t, l.with(func(config *Config) { config.Clock = c.now }))
	users := l.neighbours(0, 8)
	idle, busy := users[1:6], users[7]
	filter(t, s, batchOf("a", idle))
	var last []capping.UserID
	for day := range 14 {
		c.advance(24 * time.Hour)
		filter(t, s, batchOf(fmt.Sprint("day ", day), []capping.UserID{busy}))
		last = nil
		for user := range readLogs(t, s) {
			last = append(last, user)
		}
	}
	require.Equal(t, []capping.UserID{busy}, last)
	log, err := s.Log(t.Context(), busy)
	require.NoError(t, err)
	require.LessOrEqual(t, log.Len(), 7, "and a busy user's own old sends")
}

// The field "" only saves work: damage to the field affects no user, and the next send writes it again.
func TestDamagedTTLFieldIsWrittenAnew(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	_, key, _ := s.key(1)
	client := owner(t, s, 1)
	for i, damaged := range []string{"", "abc", "seven bytes"} {
		require.NoError(t, client.HSet(t.Context(), key, "", damaged).Err())
		// the last in another bucket of the partition
		users := []capping.UserID{1, 2, capping.UserID(64 * script.Standard.BucketSize)}
		require.Equal(t, len(users), count(filter(t, s, batchOf(fmt.Sprint(i), users)), capping.Allowed))
		field, err := client.HGet(t.Context(), key, "").Result()
		require.NoError(t, err)
		require.Len(t, field, 6)
		require.Greater(t, client.PTTL(t.Context(), key).Val(), time.Hour)
	}
}

// A send that is stamped later than now, like the log's newest entry, extends its key's TTL, also when a neighbour
// has the same log.
func TestTTLOutlivesStampsAheadOfTheClock(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openShared(t, func(config *Config) { config.Clock = c.now })
	users := []capping.UserID{1, capping.UserID(64*script.Standard.BucketSize + 1)} // two buckets, one call
	ahead := capping.Entry{At: c.instant() + 40*60*60*1000, Token: capping.Message{ID: "ahead"}.Token()}
	for _, user := range users {
		put(t, s, user, capping.Log(nil).Record(nil, ahead, 0))
	}
	b := batchOf("a", users)
	b.Retention = 24 * time.Hour
	require.Equal(t, len(users), count(filter(t, s, b), capping.Allowed))
	for _, user := range users {
		_, key, _ := s.key(user)
		ttl := owner(t, s, user).PTTL(t.Context(), key).Val()
		require.Greater(t, ttl, 63*time.Hour, "user %d", user)
	}
}
