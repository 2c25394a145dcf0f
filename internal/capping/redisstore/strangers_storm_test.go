//go:build storms

package redisstore

import (
	"context"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// promote makes the replica a master without replicas.
func promote(t *testing.T, replica string) {
	t.Helper()
	require.NoError(t, admin(t, replica).ReplicaOf(t.Context(), "no", "one").Err())
}

// replicated waits until one replica has all earlier writes of the server. It sends a write of its own after them.
func replicated(t *testing.T, master string) {
	t.Helper()
	conn := admin(t, master).Conn()
	defer conn.Close()
	require.NoError(t, conn.Set(t.Context(), "replicated", "", 0).Err())
	acks, err := conn.Wait(t.Context(), 1, 15*time.Second).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, acks)
}

// follows waits until the store sends everything to the server.
func follows(t *testing.T, s *Store, addr string) {
	t.Helper()
	testkit.Eventually(t, func() bool { return s.top.Route(0).Addr() == addr }, "%v", healthOf{s})
}

// healthOf prints the health of a store at the time of a failure.
type healthOf struct{ *Store }

func (h healthOf) String() string {
	health := h.Health(context.Background())
	return health.State + ": " + health.Error
}

// restart starts the server again and waits until the store reaches it. After many failed dials the Redis library
// dials once a second only and repeats its last error meanwhile, so some refreshes miss the server.
func restart(t *testing.T, c *testcluster.Cluster, s *Store, addr string) {
	t.Helper()
	require.NoError(t, c.Restart(addr))
	for _, n := range s.top.Nodes() {
		if n.Addr() == addr {
			testkit.Eventually(t, func() bool { return n.Client().Info(t.Context()).Err() == nil })
		}
	}
}

// A master that was never a replica lacks the recorded sends: it would allow users again.
func TestOnlyHeirsBecomeTheMaster(t *testing.T) {
	t.Parallel()
	ours, stranger := testcluster.Single(t, testcluster.Options{Replicas: 1, Settings: []string{writesAtOnce}}),
		testcluster.Single(t, testcluster.Options{})
	require.NoError(t, stranger.Kill(stranger.Addrs[0]))
	master, replica := ours.Addrs[0], ours.Addrs[1]
	s := openTest(t, Config{
		Addrs: []string{stranger.Addrs[0], master, replica}, ReplicaAcks: FixedAcks(0),
		AttemptTimeout: 400 * time.Millisecond,
	})
	users, daily := spread(40), rolling(1, time.Hour)
	require.Equal(t, 40, count(filter(t, s, batchOf("a", users, daily)), capping.Allowed))

	restart(t, stranger, s, stranger.Addrs[0])
	testkit.Eventually(t, func() bool {
		h := s.Health(t.Context())
		return h.State == "degraded" && strings.Contains(h.Error,
			"node "+stranger.Addrs[0]+" is a master, but lacks the sends")
	})
	require.Equal(t, 40, count(filter(t, s, batchOf("b", users, daily)), capping.Denied))

	replicated(t, master)
	require.NoError(t, ours.Kill(master))
	verdicts := make([]capping.Verdict, len(users))
	require.Error(t, s.Filter(background(t, 2*time.Second), batchOf("c", users, daily), verdicts))
	require.Equal(t, 40, count(verdicts, capping.Unavailable), "the stranger is not asked")

	promote(t, replica)
	follows(t, s, replica)
	require.Equal(t, 40, count(filter(t, s, batchOf("c", users, daily)), capping.Denied))

	// The old master comes back, as it was: it lacks what was recorded meanwhile.
	restart(t, ours, s, master)
	more := spread(80)[40:]
	require.Equal(t, 40, count(filter(t, s, batchOf("d", more, daily)), capping.Allowed))
	refreshes(t, s)
	require.Equal(t, replica, s.top.Route(0).Addr())
	require.NoError(t, ours.Kill(replica))
	require.Error(t, s.Filter(background(t, 2*time.Second), batchOf("e", more, daily),
		make([]capping.Verdict, len(more))))

	// Made a replica, it has everything, and may take over.
	restart(t, ours, s, replica)
	host, port, err := net.SplitHostPort(replica)
	require.NoError(t, err)
	back := admin(t, master)
	require.NoError(t, back.ReplicaOf(t.Context(), host, port).Err())
	testkit.Eventually(t, func() bool {
		text, err := back.Info(t.Context(), "replication").Result()
		return err == nil && topology.ParseInfo(text)["master_link_status"] == "up"
	})
	follows(t, s, replica)
	refreshes(t, s)
	replicated(t, replica)
	require.NoError(t, ours.Kill(replica))
	promote(t, master)
	follows(t, s, master)
	require.Equal(t, 40, count(filter(t, s, batchOf("e", more, daily)), capping.Denied))
}

// A replica that is detached from a running master lacks all later sends, until the master becomes its replica.
func TestDetachedReplicasDoNotBecomeTheMaster(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1, Settings: []string{writesAtOnce}})
	master, replica := c.Addrs[0], c.Addrs[1]
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), AttemptTimeout: 400 * time.Millisecond})
	users, daily := spread(40), rolling(1, time.Hour)
	promote(t, replica)
	refreshes(t, s)
	require.Equal(t, master, s.top.Route(0).Addr())
	testkit.Eventually(t, func() bool {
		return strings.Contains(s.Health(t.Context()).Error, "node "+replica+" is a master, but lacks the sends")
	})
	require.Equal(t, 40, count(filter(t, s, batchOf("a", users, daily)), capping.Allowed))
	require.NoError(t, c.Kill(master))
	verdicts := make([]capping.Verdict, len(users))
	require.Error(t, s.Filter(background(t, 2*time.Second), batchOf("b", users, daily), verdicts))
	require.Equal(t, 40, count(verdicts, capping.Unavailable))

	restart(t, c, s, master)
	follows(t, s, master)
	require.Equal(t, 40, count(filter(t, s, batchOf("b", users, daily)), capping.Denied))
	host, port, err := net.SplitHostPort(replica)
	require.NoError(t, err)
	require.NoError(t, admin(t, master).ReplicaOf(t.Context(), host, port).Err(), "somebody wants it so")
	follows(t, s, replica)
}

// A silent server with open connections must not keep the store from finding the new master.
func TestSilentServersHoldUpNoFailover(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	config := Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), AttemptTimeout: 400 * time.Millisecond}
	s := openTest(t, config)
	replicated(t, c.Addrs[0]) // else the signs may be missing where it is promoted
	require.NoError(t, c.Pause(c.Addrs[0]))
	promote(t, c.Addrs[1])
	follows(t, s, c.Addrs[1])
	filter(t, s, batchOf("a", spread(20)))
	testkit.Eventually(t, func() bool { // on a busy machine the other may be late as well
		again := openTest(t, config)
		filter(t, again, batchOf("b", spread(20)))
		return len(again.warnings) == 2
	}, "the silent address, and replica_acks")
	require.NoError(t, c.Resume(c.Addrs[0]))
}

func TestNodesOfAnotherClusterAreIgnored(t *testing.T) {
	t.Parallel()
	ours, others := testcluster.Start(t, testcluster.Options{}), testcluster.Start(t, testcluster.Options{})
	stranger := others.Addrs[0]
	require.NoError(t, others.Kill(stranger))
	s := openTest(t, Config{Addrs: []string{stranger, ours.Addrs[0]}, ReplicaAcks: FixedAcks(0),
		AttemptTimeout: 400 * time.Millisecond})
	restart(t, others, s, stranger)
	testkit.Eventually(t, func() bool {
		_, problem := s.top.State()
		return problem != ""
	})
	for range 20 { // whose view is taken is chance
		refreshes(t, s)
		for _, n := range s.top.Masters() {
			require.True(t, slices.Contains(ours.Addrs, n.Addr()), n.Addr())
		}
	}
	testkit.Eventually(t, func() bool {
		_, problem := s.top.State()
		return strings.Contains(problem, "node "+stranger+" belongs to another Redis cluster")
	})
	filter(t, s, batchOf("a", spread(200)))
}

// A node that was removed from the cluster on purpose raises no alarm, whether the configuration still names it or
// not.
func TestNodesThatWereTakenOutAreNoAlarm(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
	s := openTest(t, Config{Addrs: c.Addrs})
	taken := c.Addrs[5]
	id, err := admin(t, taken).Do(t.Context(), "cluster", "myid").Text()
	require.NoError(t, err)
	out, err := exec.Command("redis-cli", "--cluster", "del-node", taken, id).CombinedOutput()
	require.NoError(t, err, string(out))
	for range 5 {
		refreshes(t, s)
		_, problem := s.top.State()
		require.NotContains(t, problem, taken)
		require.NotContains(t, problem, "another cluster")
	}
}
