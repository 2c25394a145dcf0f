//go:build storms

package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// Redis Sentinel promotes a replica by its latest information, so each working replica must hold a send. With
// replica_acks: 1 the other replica may be promoted.
func TestStoreBehindSentinelsFollowsTheMaster(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 2})
	s := openTest(t, Config{
		Addrs: []string{sentinel(t, c.Addrs[0])}, SentinelMaster: "logs", AttemptTimeout: 500 * time.Millisecond,
	})
	users := spread(300)
	daily := rolling(1, time.Hour)
	require.Equal(t, 300, count(filter(t, s, batchOf("a", users, daily)), capping.Allowed))
	require.NoError(t, c.Kill(c.Addrs[0]))
	verdicts := make([]capping.Verdict, len(users))
	require.Eventually(t, func() bool {
		clear(verdicts)
		return s.Filter(background(t, time.Second), batchOf("b", users, daily), verdicts) == nil
	}, testkit.Patience, 50*time.Millisecond, "the promoted replica has to be found")
	require.Equal(t, 300, count(verdicts, capping.Denied), "what was allowed outlived its master")
	require.Equal(t, 300, count(filter(t, s, batchOf("a", users, daily)), capping.Replayed))
}
