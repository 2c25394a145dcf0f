package redisstore

import (
	"encoding"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
	"capper/internal/testcluster"
)

const usualPacer = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
local n = redis.call('ZCARD', KEYS[1])
if n >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2] / 1000)
return 1`

func evalCost(t *testing.T, client *redis.Client, calls int, call func(pipe redis.Pipeliner, i int)) float64 {
	require.NoError(t, client.ConfigResetStat(t.Context()).Err())
	for i := 0; i < calls; {
		pipe := client.Pipeline()
		for range 16 {
			call(pipe, i)
			i++
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
	}
	info := client.Info(t.Context(), "commandstats").Val()
	for _, line := range strings.Split(info, "\n") {
		if strings.HasPrefix(line, "cmdstat_evalsha:") {
			var n, usec int
			var per float64
			fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,usec=%d,usec_per_call=%f", &n, &usec, &per)
			return per
		}
	}
	return 0
}

func TestPaceCost(t *testing.T) {
	if os.Getenv("PACE_COST") == "" {
		return
	}
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, c.Addrs[0])
	sha := client.ScriptLoad(t.Context(), usualPacer).Val()
	for name, limits := range map[string][]pacing.Limit{
		"600k/m":         {{Max: 600_000, Window: time.Minute}},
		"100/s":          {{Max: 100, Window: time.Second}},
		"1000/20ms":          {{Max: 1000, Window: 20*time.Millisecond}},
		"100k/s+10M/24h": {{Max: 100_000, Window: time.Second}, {Max: 10_000_000, Window: 24 * time.Hour}},
	} {
		usual := evalCost(t, client, 16000, func(pipe redis.Pipeliner, i int) {
			for j, l := range limits {
				pipe.EvalSha(t.Context(), sha, []string{fmt.Sprint("z", j, name)}, l.Max, l.Window.Microseconds(), fmt.Sprintf("%016x", i))
			}
		}) * float64(len(limits))
		ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "c" + name, Limits: limits}}, Permits: 1}
		var a script.Args
		keys := script.PacerKeys{Prefix: "x:"}
		a.Pace(s.scripts.Pace, keys, ask)
		a.StampPace(capping.InstantOf(time.Now()), 0)
		var args []string
		for _, v := range a.Values() {
			text, _ := v.(encoding.BinaryMarshaler).MarshalBinary()
			args = append(args, string(text))
		}
		ours := evalCost(t, client, 2900, func(pipe redis.Pipeliner, i int) {
			pipe.EvalSha(t.Context(), args[1], []string{args[3]}, args[4], args[5])
		})
		t.Logf("%-16s usual %.2f ours %.2f ratio %.2f runs %d", name, usual, ours, ours/usual, client.StrLen(t.Context(), args[3]).Val()/21)
	}
}
