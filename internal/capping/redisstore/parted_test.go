//go:build storms

package redisstore

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A master that fails while one of its slots is being moved gets a successor that does not know the moved keys. Their
// users stay unavailable until the slot is repaired, and are not allowed a second time. The slot may be the first one
// of its new node.
func TestAFailoverInTheMiddleOfAMoveAllowsNobody(t *testing.T) {
	t.Parallel()
	for name, firstSlot := range map[string]bool{"to a master": false, "to a new master without slots": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 4 * time.Second})
			registry := prometheus.NewRegistry()
			config := Config{Addrs: c.Addrs[:1], Registerer: registry}
			if firstSlot {
				config.ReplicaAcks = FixedAcks(0) // the new master has no replica
			}
			s := openTest(t, config)
			f := &field{TB: t, cluster: c, stores: []*Store{s}, admins: map[string]*redis.Client{}}
			for _, addr := range c.Addrs {
				f.admins[addr] = admin(t, addr)
			}
			victim := f.shards()[0]
			to := f.other(victim).master
			if firstSlot {
				to = f.newMaster(c)
			}
			slot := s.keyspace.Slot(f.partitions(victim.master)[0])
			m := slotMove{f, slot, f.admins[victim.master], f.admins[to]}
			users := inSlot(s, slot)
			require.Equal(t, len(users), count(filter(t, s, batchOf("first", users, rolling(1, week))),
				capping.Allowed))

			m.begin()
			for range m.keys() / 2 {
				require.Equal(t, 1, m.carry(1))
			}
			require.Equal(t, len(users), count(filter(t, s, batchOf("moving", users, rolling(1, week))),
				capping.Denied), "a move costs nobody anything")
			p := slotPartition(s.keyspace, slot)
			refreshes(t, s) // the move is known
			pressed := press(s, users)
			defer pressed.stop()
			pressed.pressed(t, &pressed.denied, 200)
			require.NoError(t, c.Kill(victim.master))
			f.until("the replica takes over", func() bool { return f.role(victim.replica) == "master" })
			testkit.Eventually(t, func() bool { return s.top.Bar(p) != nil && s.top.Bar(p).Reason == topology.Torn })
			pressed.pressed(t, &pressed.unavailable, 200)
			require.EventuallyWithT(t, func(c *assert.CollectT) { // a refresh may have been late
				h := s.Health(t.Context())
				require.Contains(c, h.Error, "1 of 64 partitions: a hash slot is split: a master failed while the "+
					"slot was being moved")
				require.Equal(c, "degraded", h.State)
			}, 30*time.Second, 10*time.Millisecond)
			pressed.stop()
			require.Zero(t, pressed.allowed.Load())
			s.fleet.beatSoon()
			testkit.Eventually(t, func() bool {
				return sample(t, registry, "capper_store_barred_partitions",
					"parted") == 1
			})

			require.NoError(t, c.Restart(victim.master)) // a replica now, so that acks are possible
			fix := func() string {
				out, _ := exec.Command("redis-cli", "--cluster", "fix", victim.replica).CombinedOutput()
				return string(out)
			}
			told := ""
			require.Eventually(t, func() bool {
				told = fix()
				s.top.RefreshSoon()
				return s.top.Bar(p) == nil
			}, 60*time.Second, 500*time.Millisecond, told)
			verdicts := make([]capping.Verdict, len(users))
			require.Eventually(t, func() bool {
				_ = s.Filter(t.Context(), batchOf(fmt.Sprint(time.Now()), users, rolling(1, week)), verdicts)
				return count(verdicts, capping.Unavailable) == 0
			}, testkit.Patience, 50*time.Millisecond)
			require.Equal(t, len(users), count(verdicts, capping.Denied), "nothing was lost:\n%s", told)
		})
	}
}

// inSlot returns users of forty buckets whose keys are in the slot.
func inSlot(s *Store, slot int) (users []capping.UserID) {
	p := slotPartition(s.keyspace, slot)
	for i := range 40 {
		users = append(users, capping.UserID(i*s.keyspace.Partitions+p)*capping.UserID(s.keyspace.BucketSize))
	}
	return users
}

// slotPartition returns the partition with the slot.
func slotPartition(l script.Keyspace, slot int) int {
	for p := range l.Partitions {
		if l.Slot(p) == slot {
			return p
		}
	}
	return -1
}

// newMaster adds a node without slots to the cluster.
func (f *field) newMaster(c *testcluster.Cluster) string {
	f.Helper()
	extra := testcluster.Start(f, testcluster.Options{Masters: 3}).Addrs[0]
	f.admins[extra] = admin(f, extra)
	client := f.admins[extra]
	require.NoError(f, client.Do(f.Context(), "cluster", "reset", "hard").Err())
	host, port, _ := strings.Cut(c.Addrs[0], ":")
	require.NoError(f, client.ClusterMeet(f.Context(), host, port).Err())
	f.until("everybody knows the new node", func() bool {
		for _, addr := range append(c.Addrs[:len(c.Addrs):len(c.Addrs)], extra) {
			text, err := f.admins[addr].ClusterNodes(f.Context()).Result()
			if err != nil || strings.Count(text, " connected") != len(c.Addrs)+1 ||
				strings.Contains(text, "handshake") {
				return false
			}
		}
		info, err := client.ClusterInfo(f.Context()).Result()
		return err == nil && topology.ParseInfo(info)["cluster_state"] == "ok"
	})
	return extra
}
