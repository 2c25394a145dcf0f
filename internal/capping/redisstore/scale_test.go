package redisstore

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
)

// A million users at once take memory for their order, not for their commands:
// those are bounded by what may be in flight.
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

// Long logs make a script stop early: the rest is another call's, and everybody
// is decided.
func TestLongLogsAreSpreadOverCalls(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	now := capping.InstantOf(time.Now())
	users := everyNth(250, 1) // one bucket, one call
	for _, user := range users {
		var log capping.Log
		for i := range capping.LogBound {
			log = log.Record(log[:0:0], capping.Entry{At: now - 2_000_000 + capping.Instant(i), Token: capping.TokenOf(fmt.Sprint(i))}, 0)
		}
		put(t, s, user, log)
	}
	require.NoError(t, client.ConfigResetStat(t.Context()).Err())
	b := batchOf("a", users, capping.Rule{Max: 900, Hold: 3_600_000, Channels: capping.ChannelSetOf(1)})
	verdicts := filter(t, s, b)
	require.Equal(t, len(users), count(verdicts, capping.Allowed))
	stats, err := client.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	calls := int64(0)
	_, evalsha, _ := strings.Cut(parseInfo(stats)["cmdstat_evalsha"], "calls=")
	_, err = fmt.Sscanf(evalsha, "%d,", &calls)
	require.NoError(t, err)
	require.GreaterOrEqual(t, calls, int64(8), "3 MB of logs in calls of 200 kB and some")
	for user, log := range readLogs(t, s) {
		require.NoError(t, log.Check())
		require.Equal(t, capping.LogBound, log.Len(), "user %d", user)
	}
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
