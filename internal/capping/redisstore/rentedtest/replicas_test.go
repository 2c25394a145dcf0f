//go:build storms

package rentedtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// TestAReplicaAsTheOnlyAddress checks that the address of a cluster's replica leads to the
// cluster's masters. For the replica of a single server, the error names the replica and its
// master.
func TestAReplicaAsTheOnlyAddress(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1})
	decides(t, open(t, redisstore.Config{Addrs: c.Addrs[5:]}))

	one := testcluster.Single(t, testcluster.Options{Replicas: 2})
	text, _ := refused(t, redisstore.Config{Addrs: one.Addrs[1:2]})
	require.Contains(t, text, "node "+one.Addrs[1]+" must be a master, but is a replica of "+one.Addrs[0])
	text, _ = refused(t, redisstore.Config{Addrs: one.Addrs[1:]})
	require.Contains(t, text, "node "+one.Addrs[2]+" must be a master, but is a replica of "+one.Addrs[0])
	decides(t, open(t, redisstore.Config{Addrs: []string{one.Addrs[2], one.Addrs[0]}}))
}

// TestTwoNamesOfOneServer checks that the read endpoint of a master without replicas leads to the
// master itself.
func TestTwoNamesOfOneServer(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	_, port, _ := strings.Cut(c.Addrs[0], ":")
	names.Point("primary.rented.test", "127.0.0.1")
	names.Point("reader.rented.test", "127.0.0.1")
	s := open(t, redisstore.Config{Addrs: []string{"primary.rented.test:" + port, "reader.rented.test:" + port},
		ReplicaAcks: alone})
	decides(t, s)
	storetest.IsOK(t, s)
}

// TestReplicasThatAreNeverPromoted checks that replicas that never become masters can confirm
// sends. If a shard has no other replicas, the status warns operators.
func TestReplicasThatAreNeverPromoted(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, Settings: []string{"cluster-replica-no-failover yes",
		"replica-priority 0"}})
	s := open(t, redisstore.Config{Addrs: c.Addrs})
	decides(t, s)
	require.Contains(t, strings.Join(s.Health(t.Context()).Warnings, "\n"), "no replica may become a master")

	one := testcluster.Single(t, testcluster.Options{Replicas: 1, Settings: []string{"replica-priority 0"}})
	decides(t, open(t, redisstore.Config{Addrs: one.Addrs[:1]}))
}

// TestAReplicaThatIsAlwaysBehind checks that a replica that is always behind blocks every user,
// because the replica might become a master. All users are allowed after the replica is removed.
func TestAReplicaThatIsAlwaysBehind(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 2, Settings: []string{"repl-timeout 3600"}})
	s := open(t, redisstore.Config{Addrs: c.Addrs[:1], AttemptTimeout: 400 * time.Millisecond})
	require.NoError(t, c.Pause(c.Addrs[2]))
	testkit.FailsWith(t, "1 of 2 replicas confirmed in time", func() error {
		require.Equal(t, map[capping.Outcome]int{capping.Unavailable: 640}, decide(t, s, "first"))
		return errors.New(s.Health(t.Context()).Error)
	})
	require.NoError(t, c.Kill(c.Addrs[2]))
	testkit.Eventually(t, func() bool { return decide(t, s, "first")[capping.Unavailable] == 0 })
	stillDecides(t, s)
}
