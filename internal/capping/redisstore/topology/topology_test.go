package topology

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.NoLeaks(testcluster.Run(m))) }

// start returns a topology of three partitions, one on each master of a running cluster.
func start(t *testing.T, addrs []string) *Topology {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addrs[0], Protocol: 2, DisableIdentity: true})
	defer func() { require.NoError(t, client.Close()) }()
	namespace := testkit.Namespace()
	var partitions []Partition
	for _, tag := range []string{"a", "b", "c"} {
		slot, err := client.ClusterKeySlot(t.Context(), tag).Result()
		require.NoError(t, err)
		partitions = append(partitions, Partition{Slot: int(slot), Prefix: fmt.Sprintf("%s:{%s}:", namespace, tag)})
	}
	top := New(Config{
		Options:     Options{Addrs: addrs, AttemptTimeout: 5 * time.Second, Connections: 6},
		ReplicaAcks: FixedAcks(0), Namespace: namespace, Partitions: partitions, Clock: time.Now,
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { require.NoError(t, top.Close()) })
	require.NoError(t, testkit.InTime(func() error { _, err := top.Discover(t.Context()); return err }))
	require.NoError(t, testkit.InTime(func() error { _, err := top.Check(t.Context()); return err }))
	return top
}

// TestRoutesAreTheServersOwn checks that the topology returns the same node for a partition as the
// servers do.
func TestRoutesAreTheServersOwn(t *testing.T) {
	t.Parallel()
	top := start(t, testcluster.Start(t, testcluster.Options{}).Addrs)
	require.Len(t, top.Masters(), 3)
	for p, partition := range top.config.Partitions {
		require.ErrorIs(t, top.Route(p).Client().Get(t.Context(), partition.signKey()).Err(), redis.Nil,
			"and not MOVED")
	}
}

// TestPartitionsOfAnEmptiedServerAreBarred checks that an emptied server's partitions stay in
// quarantine until they start again.
func TestPartitionsOfAnEmptiedServerAreBarred(t *testing.T) {
	t.Parallel()
	top := start(t, testcluster.Start(t, testcluster.Options{}).Addrs)
	have := func(want int) {
		t.Helper()
		signs, asked := top.CountSigns(t.Context(), time.Hour)
		require.Equal(t, want, signs)
		require.Equal(t, 3, asked)
	}
	have(0)
	look := Look{Life: time.Hour, Make: true}
	require.True(t, top.LookAtSigns(t.Context(), look))
	have(3)
	look.Make = false
	require.True(t, top.LookAtSigns(t.Context(), look))
	require.Empty(t, top.Lost())

	require.NoError(t, top.Route(1).Client().FlushAll(t.Context()).Err())
	have(2)
	require.Nil(t, top.Bar(1), "to count bars nothing")
	require.True(t, top.LookAtSigns(t.Context(), look))
	have(2)
	require.Nil(t, top.Bar(0))
	require.Equal(t, gone, top.Bar(1).Reason)
	require.ErrorContains(t, top.Bar(1), "the server was emptied")
	require.Len(t, top.Lost(), 1)

	look.Accept = map[int]bool{1: true}
	require.True(t, top.LookAtSigns(t.Context(), look))
	have(3)
	require.Nil(t, top.Bar(1))
}

// TestTheSignOfAPipelineIsJudged checks that the replies of a pipeline with a missing sentinel key
// are rejected.
func TestTheSignOfAPipelineIsJudged(t *testing.T) {
	t.Parallel()
	top := start(t, testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 15 * time.Second}).Addrs)
	n := top.Route(0)
	ask := func() error {
		var faults [2]error
		for i, awaited := range []bool{false, true} {
			pipe := n.Client().Pipeline()
			sign := n.AskSign(t.Context(), pipe, 0, awaited)
			_, _ = pipe.Exec(t.Context())
			faults[i] = n.JudgeSign(sign, 0)
		}
		require.Equal(t, faults[0], faults[1])
		return faults[0]
	}
	require.NoError(t, ask(), "signs are not made yet")
	top.LookAtSigns(t.Context(), Look{Make: true, Life: time.Hour})
	top.SetSigned(true)
	offset := func() int64 {
		text, err := n.Client().Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		return ParseInfo(text).Number("master_repl_offset")
	}
	before := offset()
	require.NoError(t, ask())
	require.Greater(t, offset(), before, "replicas have a write to confirm")
	require.NoError(t, n.Client().FlushAll(t.Context()).Err())
	require.ErrorIs(t, ask(), barGone)
	require.Equal(t, gone, top.Bar(0).Reason)
	<-top.Doubts()
}

// TestAFaultIsLookedAtAgainSoon checks that a server with a problem is examined again within
// seconds, so that its repair shows.
func TestAFaultIsLookedAtAgainSoon(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		broken, warned bool
		ago            time.Duration
		due            bool
	}{
		"nothing found, lately":    {ago: 4 * time.Second},
		"nothing found, long ago":  {ago: time.Minute, due: true},
		"a promise broken, lately": {broken: true, ago: time.Second},
		"a promise broken":         {broken: true, ago: 4 * time.Second, due: true},
		"a warning":                {warned: true, ago: 4 * time.Second, due: true},
	} {
		n := &Node{top: &Topology{watchful: true}}
		if test.broken {
			n.breach = "node a: maxmemory-policy is allkeys-lru"
		}
		if test.warned {
			n.warned = []string{"node a: may not run role"}
		}
		n.vetted.Store(time.Now().Add(-test.ago).UnixMilli())
		require.Equal(t, test.due, n.vetDue(), name)
	}
}

// TestPartitionsThatANodeTakesOverAreLookedAtFirst checks that a believed node must have its
// sentinel keys checked for partitions that it takes over later.
func TestPartitionsThatANodeTakesOverAreLookedAtFirst(t *testing.T) {
	t.Parallel()
	top := start(t, testcluster.Start(t, testcluster.Options{}).Addrs)
	require.True(t, top.LookAtSigns(t.Context(), Look{Life: time.Hour, Make: true}))
	n := top.Route(0)
	belief, err := n.Believe([]int{0})
	require.NoError(t, err)
	require.NoError(t, belief.Judge())
	_, err = n.Believe(nil)
	require.NoError(t, err, "keys that are moved to it")

	top.Redirect(1, n, n.Addr()) // like the reply of a node that is about to take over the slot
	for range 3 {
		_, err = n.Believe([]int{0, 1})
		require.ErrorIs(t, err, errUnseen{})
		require.Nil(t, n.lookAtSigns(t.Context(), []int{1}, top.look.Load()))
	}
	_, err = n.Believe([]int{0})
	require.NoError(t, err)

	n.forgetLooks() // as after a time as a replica
	_, err = n.Believe([]int{0})
	require.ErrorIs(t, err, errUnseen{})
	testkit.Eventually(t, func() bool { _, err := n.Believe([]int{0}); return err == nil })
}

// TestAnswersOfANodeThatIsNotExaminedAreNotBelieved checks that replies are rejected if the node
// was listed as a replica while the pipeline was running.
func TestAnswersOfANodeThatIsNotExaminedAreNotBelieved(t *testing.T) {
	t.Parallel()
	top := start(t, testcluster.Start(t, testcluster.Options{}).Addrs)
	n := top.Route(0)
	require.NoError(t, n.Examined(t.Context()))
	ask := func() *evictedQuestion {
		pipe := n.Client().Pipeline()
		asked := n.AskEvicted(t.Context(), pipe, 128)
		require.NotNil(t, asked)
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
		return asked
	}
	first := ask()
	require.NotNil(t, n.AskEvicted(t.Context(), n.Client().Pipeline(), 1),
		"the answer to the first one is not judged yet")
	require.NoError(t, n.JudgeEvicted(first))
	n.standing.Store(nil)
	require.ErrorIs(t, n.JudgeEvicted(ask()), errNotExamined)
	require.NoError(t, n.Examined(t.Context()))
	require.NoError(t, n.JudgeEvicted(ask()))
}
