//go:build storms

package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
)

// With a full log, and an import of the maximum size for one user, no call uses 5 ms of the server's CPU time. The
// minimum of several calls counts.
func TestUnionScriptStaysShort(t *testing.T) {
	t.Parallel()
	const bearable = 5 * time.Millisecond
	server := testcluster.Single(t, testcluster.Options{Settings: []string{"slowlog-log-slower-than 0",
		"slowlog-max-len 10000"}})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client, now := admin(t, server.Addrs[0]), capping.InstantOf(time.Now())
	bound := func(of byte, phase int) (log capping.Log) {
		for i := range capping.LogBound {
			at := now - capping.Instant(10*(capping.LogBound-i)+phase)
			log = log.Record(nil, capping.Entry{At: at, Channel: 9, Token: capping.Token{of, byte(i >> 8), byte(i)}}, 0)
		}
		return log
	}
	for name, brought := range map[string]capping.Log{"others, in between": bound(2, 5), "the same once more": bound(1,
		0)} {
		var took []time.Duration
		for user := capping.UserID(0); !shown(took, bearable); user++ {
			require.NoError(t, s.Erase(t.Context(), user))
			put(t, s, user, bound(1, 0))
			m := &capping.Merge{Users: []capping.UserID{user}, Logs: []capping.Log{brought},
				Retention: 7 * 24 * time.Hour}
			took = append(took, usedByCalls(t, s.scripts.Union, client, func() {
				require.NoError(t, s.Merge(t.Context(), m, make([]capping.Merged, 1)))
			}))
		}
		t.Logf("%s: %v to %v", name, slices.Min(took), slices.Max(took))
		require.Less(t, slices.Min(took), bearable, name)
	}
}
