//go:build storms

package redisstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestHealthTellsWhoIsMissing(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1})
	s := openTest(t, unhurried(Config{Addrs: c.Addrs}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h := s.Health(t.Context())
		require.WithinDuration(c, time.Now(), h.Fleet.Made, time.Minute)
		require.Equal(c, capping.Health{
			Kind: "redis", State: "ok", Fleet: &capping.Fleet{Instances: 1, Made: h.Fleet.Made},
			Warnings: []string{"the store was created at this start without records: every user may receive a message"},
		}, h)
	}, 30*time.Second, 10*time.Millisecond)
	is := func(state, problem string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			h := s.Health(t.Context())
			require.Equal(c, state, h.State)
			require.Contains(c, h.Error, problem)
		}, 30*time.Second, 50*time.Millisecond)
	}
	require.NoError(t, c.Kill(c.Addrs[3]))
	is("degraded", "0 of the 1 replicas that replica_acks: healthy requires")
	require.NoError(t, c.Restart(c.Addrs[3]))
	is("ok", "")
	for _, addr := range c.Addrs {
		require.NoError(t, c.Pause(addr))
	}
	is("down", "read the hash slots of the Redis cluster: no node answers")
	for _, addr := range c.Addrs {
		require.NoError(t, c.Resume(addr))
	}
	is("ok", "")
}

// An instance that restarts after a failover serves the users of the other masters. The promoted master has no replica
// until the failed master returns.
func TestAStoreOpensAfterAFailover(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1})
	config := unhurried(Config{Addrs: c.Addrs, Namespace: namespace()})
	first := openTest(t, config)
	users, daily := spread(300), rolling(1, time.Hour)
	require.Equal(t, 300, count(filter(t, first, batchOf("a", users, daily)), capping.Allowed))
	require.NoError(t, c.Kill(c.Addrs[0]))
	testkit.Eventually(t, func() bool {
		failed := func(n *topology.Node) bool { return n.Addr() == c.Addrs[0] }
		return len(first.top.Masters()) == 3 && !slices.ContainsFunc(first.top.Masters(), failed)
	})

	s := openTest(t, config)
	require.Contains(t, strings.Join(s.warnings, "\n"),
		"has 0 replicas, but replica_acks: healthy needs 1: its users are unavailable until a replica joins it")
	verdicts := make([]capping.Verdict, len(users))
	require.Error(t, s.Filter(background(t, time.Second), batchOf("b", users, daily), verdicts))
	require.Positive(t, count(verdicts, capping.Denied))
	require.Positive(t, count(verdicts, capping.Unavailable))
	require.Zero(t, count(verdicts, capping.Allowed))

	require.NoError(t, c.Restart(c.Addrs[0]))
	testkit.Eventually(t, func() bool {
		_ = s.Filter(background(t, time.Second), batchOf("b", users, daily), verdicts)
		return count(verdicts, capping.Denied) == len(users)
	})
}

// Without the records that all instances share, a store does not open, and the error names the reason.
func TestAStoreNeedsItsRecordsToOpen(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Settings: []string{"cluster-require-full-coverage no"}})
	config := unhurried(Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Namespace: namespace()})
	s := openTest(t, config)
	holder := s.top.Route(s.keyspace.FormatPartition()).Addr()
	require.NoError(t, c.Kill(holder))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := Open(ctx, config)
	require.ErrorContains(t, err,
		"the records that all instances share cannot be read, so no instance can start: node "+holder)
	require.NoError(t, c.Restart(holder))
	testkit.Eventually(t, func() bool { return s.Health(t.Context()).State == "ok" })
	openTest(t, config)
}
