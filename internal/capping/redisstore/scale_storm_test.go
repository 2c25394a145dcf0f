//go:build storms

package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testcluster"
)

// At the bounds of a call's rules, with shadow rules that all would have denied, no call uses 5 ms of the server's
// CPU time. CPU time counts because other programs may interrupt the thread, and the minimum of several calls counts.
func TestFilterScriptStaysShort(t *testing.T) {
	t.Parallel()
	const bearable = 5 * time.Millisecond
	server := testcluster.Single(t, testcluster.Options{Settings: []string{"slowlog-log-slower-than 0",
		"slowlog-max-len 10000"}})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	// of one partition, each in a bucket of its own
	users := everyNth(512, int(script.Standard.BucketSize)*script.Standard.Partitions)
	for i := range 9 {
		filter(t, s, batchOf(fmt.Sprint(i), users))
	}
	for name, bound := range map[string]struct {
		groups, rules int
		kind          capping.Rule
	}{
		"rules of many groups": {256, 4, capping.Rule{Max: 9, Hold: 3_600_000}},
		"judgements":           {1, 8, capping.Rule{Max: 9, Hold: 3_600_000}},
		"channels":             {1, 8, capping.Rule{Max: 9, Hold: 3_600_000, Channels: capping.ChannelSetOf(0)}},
		"max 0":                {1, 32, capping.Rule{Hold: 3_600_000}},
		"groups and rules":     {256, 32, capping.Rule{Max: 9, Hold: 3_600_000, Channels: capping.ChannelSetOf(0)}},
	} {
		bound.kind.Shadow = true
		var took []time.Duration
		for i := 0; !shown(took, bearable); i++ {
			b := batchOf(fmt.Sprint(name, i), users)
			b.Rules = slices.Repeat([][]capping.Rule{slices.Repeat([]capping.Rule{bound.kind}, bound.rules)},
				bound.groups)
			for i := range b.Groups {
				b.Groups[i] = uint8(i % bound.groups)
			}
			took = append(took, usedByCalls(t, s.scripts.Filter, client, func() {
				require.Equal(t, len(users), count(filter(t, s, b), capping.Allowed))
			}))
		}
		t.Logf("%s: a call of each batch %v to %v", name, slices.Min(took), slices.Max(took))
		require.Less(t, slices.Min(took), bearable, name)
	}
}

// shown reports whether there are enough calls to judge the shortest one: 20 of them, or 200 on a busy machine, where
// each call takes longer.
func shown(took []time.Duration, bearable time.Duration) bool {
	return len(took) >= 200 || len(took) >= 20 && slices.Min(took) < bearable
}

// usedByCalls returns the server's CPU time per call of the script during work.
func usedByCalls(t *testing.T, of *script.Script, client *redis.Client, work func()) time.Duration {
	t.Helper()
	require.NoError(t, client.SlowLogReset(t.Context()).Err())
	before := redisCPU(t, client)
	work()
	used := time.Duration((redisCPU(t, client) - before) * float64(time.Second))
	logs, err := client.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	calls := 0
	for _, log := range logs {
		if log.Args[0] == "evalsha" && log.Args[1] == of.SHA {
			calls++
		}
	}
	require.Positive(t, calls)
	return used / time.Duration(calls)
}
