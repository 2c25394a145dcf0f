//go:build storms

package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/baseline"
)

// The storms find faults in the usual design on the library's own pipeline, so they are able to find faults. The
// pipeline repeats a whole batch when a node is slow. When a node stays away longer than a call waits, the caller's
// own retry doubles the recorded sends, because there are no tokens.
func TestStormsBiteTheUsualDesign(t *testing.T) {
	t.Parallel()
	f := newField(t, nil)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: f.cluster.Addrs, ReadTimeout: 300 * time.Millisecond, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	client, err := baseline.New(t.Context(), cluster, time.Now, baseline.CountingSource)
	require.NoError(t, err)
	for _, admin := range f.admins { // replicas too, for when they are promoted
		require.NoError(t, admin.ScriptLoad(t.Context(), baseline.CountingSource).Err())
	}
	for i, b := range breakages {
		byItself := b.name == "a stalled node"
		if !byItself && b.name != "SIGSTOP longer than the node time-out" {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			f := *f
			f.TB = t
			// Whether a call is under way when a node stalls is luck: a few storms have it.
			for attempt := range 6 {
				f.heal()
				s := newStorm(capping.UserID(i+1)*400_000_000/capping.UserID(len(breakages))+
					capping.UserID(attempt)*500_000_000, client)
				s.kinds, s.shadows = []identity{{}}, nil // the usual design knows no others
				s.begin(uint64(i + attempt))
				s.answered(t, 40)
				f.storming = s
				b.inflict(&f, f.shards()[0])
				f.heal()
				s.answered(t, 40)
				s.end()
				found := s.judge(f.sortedSets(s))
				s.settle(t)
				retried := s.judge(f.sortedSets(s))
				t.Logf("%v: %+v, and after retries %+v", s.tally, found, retried)
				if byItself && found.doubled > 0 || !byItself && retried.doubled > 0 {
					return
				}
			}
			t.Fatal("no storm doubled a send")
		})
	}
}

// sortedSets reads the logs of the usual design.
func (f *field) sortedSets(s *storm) map[capping.UserID]map[identity]int {
	f.Helper()
	names := s.messageNames()
	logs := map[capping.UserID]map[identity]int{}
	for _, shard := range f.shards() {
		client := f.admins[shard.master]
		for cursor := uint64(0); ; {
			keys, next, err := client.ScanType(f.Context(), cursor, "fc:*", 1000, "zset").Result()
			require.NoError(f, err)
			sets := make([]*redis.StringSliceCmd, len(keys))
			_, err = client.Pipelined(f.Context(), func(p redis.Pipeliner) error {
				for i, key := range keys {
					sets[i] = p.ZRange(f.Context(), key, 0, -1)
				}
				return nil
			})
			require.NoError(f, err)
			for i, key := range keys {
				user, err := strconv.ParseUint(strings.TrimPrefix(key, "fc:"), 10, 32)
				require.NoError(f, err)
				logs[capping.UserID(user)] = sendsOf(sets[i].Val(), names)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return logs
}

// sendsOf counts the sends of each named message in a log of the usual design.
func sendsOf(members []string, names map[capping.Token]capping.Message) map[identity]int {
	sends := map[identity]int{}
	for _, member := range members {
		if message, ok := names[capping.Token([]byte(member[:6]))]; ok {
			sends[identity{message: message}]++
		}
	}
	return sends
}
