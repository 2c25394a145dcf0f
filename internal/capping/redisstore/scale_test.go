package redisstore

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testcluster"
)

// A million users at once need memory for their order only; commands in flight are limited.
func TestMillionUsersAtOnce(t *testing.T) {
	s := openShared(t, nil)
	for name, users := range map[string][]capping.UserID{
		"ascending": everyNth(1_000_000, 27), "random": shuffled(everyNth(1_000_000, 27)),
	} {
		t.Run(name, func(t *testing.T) {
			b := batchOf(name, users, rolling(5, time.Hour))
			verdicts := make([]capping.Verdict, len(users))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			require.NoError(t, s.Filter(background(t, time.Minute), b, verdicts))
			runtime.ReadMemStats(&after)
			require.Equal(t, len(users), count(verdicts, capping.Allowed))
			allocated := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(users))
			t.Logf("%.1f bytes a user", allocated)
			require.Less(t, allocated, 60.0, "the order is 8 bytes a user, 16 when it has to be sorted")
		})
	}
}

// A script stops early at long logs, another call continues, and every user is decided.
func TestLongLogsAreSpreadOverCalls(t *testing.T) {
	t.Parallel()
	for channels, leastCalls := range map[int]int{1: 50, 3: 150} {
		t.Run(fmt.Sprint(channels, " channels"), func(t *testing.T) {
			t.Parallel()
			longLogs(t, channels, leastCalls)
		})
	}
}

// longLogs judges the users of one bucket whose logs are full in each of the channels.
func longLogs(t *testing.T, channels, leastCalls int) {
	server := testcluster.Single(t, testcluster.Options{Settings: []string{"slowlog-log-slower-than 0",
		"slowlog-max-len 10000"}})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	users := everyNth(int(script.Standard.BucketSize), 1)
	var log capping.Log
	var rules []capping.Rule
	first := capping.InstantOf(time.Now()) - 2_000_000
	for i := range channels * capping.LogBound {
		at := first + capping.Instant(i*1_800_000/(channels*capping.LogBound))
		log = log.Record(nil, capping.Entry{At: at, Channel: capping.Channel(i % channels),
			Token: capping.Message{ID: fmt.Sprint(i)}.Token()}, 0)
	}
	for channel := range capping.Channel(channels) {
		// Half of the sends are older: the rule has to look at each and allows.
		rules = append(rules, capping.Rule{Max: 1000, Hold: 1_000_000, Channels: capping.ChannelSetOf(channel)})
	}
	for _, user := range users {
		copy(log[6:], fmt.Sprintf("%06d", user)) // no two alike
		put(t, s, user, log)
	}
	require.NoError(t, client.SlowLogReset(t.Context()).Err())
	b := batchOf("a", users, rules...)
	b.Channel = 1
	require.Equal(t, len(users), count(filter(t, s, b), capping.Allowed))
	require.GreaterOrEqual(t, scriptCalls(t, client), leastCalls)
	want := log.Len()
	if channels == 1 {
		want++ // the first of its channel
	}
	for user, log := range readLogs(t, s) {
		require.NoError(t, log.Check())
		require.Equal(t, want, log.Len(), "user %d", user)
	}
	require.NoError(t, client.SlowLogReset(t.Context()).Err())
	released := make([]capping.Released, len(users))
	require.NoError(t, s.Release(t.Context(), b.Token, 0, users, released))
	require.NotContains(t, released, capping.ReleaseAbsent)
	require.GreaterOrEqual(t, scriptCalls(t, client), len(users)*len(log)/400_000)
}

// scriptCalls returns the number of script calls in the slow log, and logs the longest.
func scriptCalls(t *testing.T, client *redis.Client) (calls int) {
	logs, err := client.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	longest := time.Duration(0)
	for _, log := range logs {
		if log.Args[0] == "evalsha" {
			calls++
			longest = max(longest, log.Duration)
		}
	}
	t.Logf("%d script calls, the longest %v", calls, longest)
	return calls
}

func TestChangedLimitsApplyToRecordedSends(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	users := spread(50)
	for i := range 3 {
		require.Equal(t, 50, count(filter(t, s, batchOf(fmt.Sprint(i), users, rolling(3, time.Hour))), capping.Allowed))
	}
	require.Equal(t, 50, count(filter(t, s, batchOf("x", users, rolling(3, time.Hour))), capping.Denied))
	require.Equal(t, 50, count(filter(t, s, batchOf("x", users, rolling(4, time.Hour))), capping.Allowed), "raised")
	require.Equal(t, 50, count(filter(t, s, batchOf("y", users, rolling(2, time.Hour))), capping.Denied), "lowered")
	email := capping.Rule{Max: 1, Hold: 3_600_000, Channels: capping.ChannelSetOf(200)}
	y := batchOf("y", users, rolling(9, 2*time.Hour), email)
	y.Channel = 200
	require.Equal(t, 50, count(filter(t, s, y), capping.Allowed), "a limit and a channel that are new")
	z := batchOf("z", users, rolling(9, 2*time.Hour), email)
	z.Channel = 200
	require.Equal(t, 50, count(filter(t, s, z), capping.Denied))
}
