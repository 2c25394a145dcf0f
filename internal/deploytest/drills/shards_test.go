//go:build storms

package drills

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A shard is added to a cluster of three, and taken out again, by redis-cli under load: nobody is unavailable,
// and no send is lost or doubled.
func TestShardsAreAddedAndRemovedUnderLoad(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 10 * time.Second})
	spare := testcluster.Spare(t, testcluster.Options{Masters: 2, NodeTimeout: 10 * time.Second}).Addrs
	place := newPlace(t, cluster.Addrs)
	at := cluster.Addrs[0]
	load := newLoad(t, "http://"+place.start(freeAddr(t), "", "").addr)
	load.goOn(100)

	cli(t, "--cluster", "add-node", spare[0], at)
	known(t, cluster.Addrs, spare[0])
	id, replica := nodeID(t, spare[0]), nodeID(t, spare[1])
	cli(t, "--cluster", "add-node", spare[1], at, "--cluster-slave", "--cluster-master-id", id)
	known(t, cluster.Addrs, spare[1])
	require.Eventually(t, func() bool { return strings.Contains(info(t, spare[0]), "state=online") }, 2*time.Minute,
		50*time.Millisecond)
	require.Empty(t, load.failures(), "while the shard was added")

	// a small share: each slot takes its time
	cli(t, "--cluster", "rebalance", at, "--cluster-use-empty-masters", "--cluster-weight", id+"=0.2")
	require.Greater(t, keys(t, spare[0]), 5, "the new shard has its share")
	load.goOn(100)
	require.Empty(t, load.failures(), "while slots were moved to the new shard")

	cli(t, "--cluster", "rebalance", at, "--cluster-weight", id+"=0")
	require.Empty(t, slots(t, at, id), "the shard is empty")
	load.goOn(100)
	require.Empty(t, load.failures(), "while slots were moved away again")

	// without slots they are others' replicas, and do not answer while they load their data
	deleted(t, at, replica)
	deleted(t, at, id)
	load.goOn(100)
	require.Empty(t, load.failures(), "after the shard was taken out")
	load.settle()
}

// cli runs redis-cli as an operator does.
func cli(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput()
	require.NoError(t, err, "redis-cli %v\n%s", args, out)
	return string(out)
}

// command runs one command on a server.
func command(t testing.TB, addr string, args ...string) string {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	out, err := exec.Command("redis-cli", append([]string{"-h", host, "-p", port}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func info(t testing.TB, addr string) string   { return command(t, addr, "info", "replication") }
func nodeID(t testing.TB, addr string) string { return command(t, addr, "cluster", "myid") }

func keys(t testing.TB, addr string) (n int) {
	t.Helper()
	for _, c := range command(t, addr, "dbsize") {
		n = n*10 + int(c-'0')
	}
	return n
}

// slots are those that a server says a node has.
func slots(t testing.TB, addr, id string) []string {
	t.Helper()
	for line := range strings.Lines(command(t, addr, "cluster", "nodes")) {
		if words := strings.Fields(line); words[0] == id {
			return words[8:]
		}
	}
	require.Fail(t, "not known: "+id)
	return nil
}

// deleted takes a node out of the cluster. redis-cli refuses as long as a node of the cluster does not answer.
func deleted(t testing.TB, at, id string) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		out, err := exec.Command("redis-cli", "--cluster", "del-node", at, id).CombinedOutput()
		refused := err != nil && strings.Contains(string(out), "Unable to load info for node")
		require.True(t, err == nil || refused, "%v: %s", err, out)
		return err == nil
	}, "the node %s is taken out", id)
}

// known waits until every node of the cluster has heard of the server: one that has not refuses to give it a slot.
func known(t testing.TB, nodes []string, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, node := range nodes {
			if !strings.Contains(command(t, node, "cluster", "nodes"), addr) {
				return false
			}
		}
		return strings.Count(command(t, addr, "cluster", "nodes"), " connected") > len(nodes)
	}, testkit.Patience, 50*time.Millisecond)
}
