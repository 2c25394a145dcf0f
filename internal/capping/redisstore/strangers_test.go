package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// refreshes waits for the end of a refresh that begins now.
func refreshes(t *testing.T, s *Store) {
	t.Helper()
	ended := s.top.Refreshes() + 2 // the first may have begun before
	testkit.Eventually(t, func() bool {
		s.top.RefreshSoon()
		return s.top.Refreshes() >= ended
	})
}

func TestOpenRefusesServersThatDoNotBelongTogether(t *testing.T) {
	t.Parallel()
	one, other := testcluster.Single(t, testcluster.Options{}), testcluster.Single(t, testcluster.Options{})
	clusters := []*testcluster.Cluster{testcluster.Start(t, testcluster.Options{}),
		testcluster.Start(t, testcluster.Options{})}
	for name, test := range map[string]struct {
		addrs []string
		want  string
	}{
		"two masters": {[]string{one.Addrs[0], other.Addrs[0]}, "node " + other.Addrs[0] +
			" is a master, but lacks the sends"},
		"a server and a cluster": {[]string{one.Addrs[0], clusters[0].Addrs[1]},
			"must both be cluster nodes or both be single servers"},
		"nodes of two clusters": {[]string{clusters[0].Addrs[1], clusters[1].Addrs[2]},
			"must be nodes of one cluster, but belong to different clusters"},
		"an address that is none": {[]string{"127.0.0.1:1"}, "redis 127.0.0.1:1: dial tcp"},
	} {
		for range 3 { // who answers first is chance
			var err error
			for again := true; again; { // one that does not answer in time is not known to be a stranger
				began := time.Now()
				var s *Store
				if s, err = openInTime(t, Config{Addrs: test.addrs, ReplicaAcks: FixedAcks(0)}); err == nil {
					require.NoError(t, s.Close())
				}
				again = err == nil && time.Since(began) > 400*time.Millisecond
			}
			require.ErrorContains(t, err, test.want, name)
		}
	}
}

func TestAddressesThatDoNotAnswerAreWarnedOf(t *testing.T) {
	t.Parallel()
	addrs := []string{"127.0.0.1:1", testcluster.Shared(t)[0]}
	s := openShared(t, func(c *Config) { *c = unhurried(*c); c.Addrs = addrs })
	require.Len(t, s.warnings, 1)
	require.Contains(t, s.warnings[0], "redis 127.0.0.1:1: dial tcp")
}

// A master's settings may change while the store runs.
func TestSettingsThatBreakAPromiseShowInHealth(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, c.Addrs[0])
	set := func(policy string) {
		require.NoError(t, client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		s.top.Route(0).VetSoon() // as if half a minute had passed
		refreshes(t, s)
	}
	set("allkeys-lru")
	testkit.Eventually(t, func() bool {
		h := s.Health(t.Context())
		return h.State == "down" && strings.Contains(h.Error, "maxmemory-policy is allkeys-lru") // of all users
	})
	set("noeviction")
	require.Equal(t, "down", s.Health(t.Context()).State, "until somebody has looked at it")
	_, err := s.AcceptLoss(t.Context(), "nothing was evicted")
	require.NoError(t, err)
	storetest.IsOK(t, s)
	require.NoError(t, client.ConfigSet(t.Context(), "appendfsync", "no").Err())
	require.Contains(t, openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)}).warnings[1], "appendfsync is no")
}

// The store detects a replica that is set to evict before it becomes master.
func TestReplicasThatEvictAreSeen(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	s := openTest(t, Config{Addrs: c.Addrs[:1]})
	storetest.IsOK(t, s)
	set := func(policy string) {
		require.NoError(t, admin(t, c.Addrs[1]).ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		s.top.Route(0).VetSoon() // as if half a minute had passed
		refreshes(t, s)
	}
	set("allkeys-lru")
	testkit.Eventually(t, func() bool {
		h := s.Health(t.Context())
		return h.State == "degraded" && strings.Contains(h.Error, "replica "+c.Addrs[1]+
			": maxmemory-policy is allkeys-lru")
	})
	set("noeviction")
	storetest.IsOK(t, s)
}
