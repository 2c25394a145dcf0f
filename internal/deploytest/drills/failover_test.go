//go:build storms

package drills

import (
	"capper/internal/testcluster"
	"capper/internal/testkit"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The drills of a cluster whose masters have two replicas each: a planned failover and the loss of a replica
// are not noticed, and the loss of a master is over when its replica has taken over: with a short cluster-node-timeout
// calls wait for that.
func TestFailovers(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.Options{Replicas: 2, NodeTimeout: 6 * time.Second})
	place := newPlace(t, cluster.Addrs)
	load := newLoad(t, "http://"+place.start(freeAddr(t), "", "").addr)
	load.goOn(100)

	master, replicas := shard(t, cluster.Addrs)
	testkit.Eventually(t, func() bool {
		command(t, replicas[0], "cluster", "failover") // a server that stands still for the 5 s of it lets it run out
		for asked := time.Now(); time.Since(asked) < 6*time.Second; {
			if strings.Contains(info(t, replicas[0]), "role:master") {
				return true
			}
		}
		return false
	})
	load.goOn(200)
	require.Empty(t, load.failures(), "while a replica was made master")

	require.NoError(t, cluster.Kill(replicas[1]))
	load.goOn(200)
	require.Empty(t, load.failures(), "after a replica was lost")
	require.NoError(t, cluster.Restart(replicas[1]))
	require.Eventually(t, func() bool { return strings.Count(info(t, replicas[0]), "state=online") == 2 },
		2*time.Minute, 50*time.Millisecond)

	require.NoError(t, cluster.Kill(replicas[0])) // the master by now
	load.goOn(200)
	load.quietFor(2*time.Second, time.Minute)
	failed := load.failures() // some, where the cluster took longer than a call
	t.Logf("a master lost: %d calls without a whole answer: %q", len(failed), failed)
	require.NoError(t, cluster.Restart(replicas[0]))
	require.Eventually(t, func() bool { return strings.Contains(info(t, replicas[0]), "master_link_status:up") },
		testkit.Patience, 50*time.Millisecond)
	load.goOn(100)
	require.Empty(t, load.failures(), "after the lost master came back as a replica")
	require.NotEqual(t, master, replicas[0])
	load.settle()
}

// shard is a master and its replicas.
func shard(t testing.TB, addrs []string) (master string, replicas []string) {
	t.Helper()
	master = addrs[0]
	id := nodeID(t, master)
	for line := range strings.Lines(command(t, master, "cluster", "nodes")) {
		words := strings.Fields(line)
		if addr, _, _ := strings.Cut(words[1], "@"); words[3] == id {
			replicas = append(replicas, addr)
		}
	}
	require.Len(t, replicas, 2)
	return master, replicas
}
