package redisstore

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology/connect"
	"capper/internal/testcluster"
)

// acksTrial is a master that loses its two replicas one after the other, seen
// by a store for each count that differs then.
type acksTrial struct {
	cluster           *testcluster.Cluster
	master            string
	users             []capping.UserID // whom the master holds
	healthy, one, two *Store
	sent              int
}

func newAcksTrial(t *testing.T, c *testcluster.Cluster) *acksTrial {
	t.Helper()
	with := func(acks Acks) *Store {
		return openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: acks, AttemptTimeout: 400 * time.Millisecond})
	}
	a := &acksTrial{cluster: c, master: c.Addrs[0], healthy: with(Healthy), one: with(FixedAcks(1)), two: with(FixedAcks(2))}
	for _, user := range spread(600) {
		if a.one.top.Route(a.one.keyspace.Partition(user)).Addr() == a.master {
			a.users = append(a.users, user)
		}
	}
	require.NotEmpty(t, a.users)
	return a
}

// send is the outcome that the users share for a message of their own, which
// no limit holds back.
func (a *acksTrial) send(t *testing.T, s *Store) (capping.Outcome, error) {
	t.Helper()
	a.sent++
	verdicts := make([]capping.Verdict, len(a.users))
	err := s.Filter(background(t, time.Second), batchOf("message-"+strconv.Itoa(a.sent), a.users), verdicts)
	require.Equal(t, len(a.users), count(verdicts, verdicts[0].Outcome), "they are on one master")
	return verdicts[0].Outcome, err
}

func (a *acksTrial) allows(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		outcome, err := a.send(t, s)
		return outcome == capping.Allowed && err == nil
	}, 40*time.Second, 50*time.Millisecond)
}

func (a *acksTrial) lacks(t *testing.T, s *Store, why string) {
	t.Helper()
	outcome, err := a.send(t, s)
	require.Equal(t, capping.Unavailable, outcome)
	require.ErrorContains(t, err, why)
}

// knows waits until the store has counted the replicas that are left.
func (a *acksTrial) knows(t *testing.T, s *Store, problem string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(s.Health(t.Context()).Error, problem)
	}, 40*time.Second, 50*time.Millisecond, problem)
}

// replicas are the addresses of the master's replicas.
func (a *acksTrial) replicas(t *testing.T) (addrs []string) {
	t.Helper()
	text, err := admin(t, a.master).Info(t.Context(), "replication").Result()
	require.NoError(t, err)
	info := connect.ParseInfo(text)
	for _, name := range []string{"slave0", "slave1"} {
		fields := strings.Split(info[name], ",") // ip=…,port=…,state=…
		require.Greater(t, len(fields), 1, "%s of %q", name, text)
		addrs = append(addrs, net.JoinHostPort(strings.TrimPrefix(fields[0], "ip="), strings.TrimPrefix(fields[1], "port=")))
	}
	return addrs
}

func (a *acksTrial) run(t *testing.T) {
	replicas := a.replicas(t)
	for _, s := range []*Store{a.healthy, a.one, a.two} {
		a.allows(t, s)
	}

	// Silent, but not given up by the master: as good as a replica that lags.
	require.NoError(t, a.cluster.Pause(replicas[0]))
	a.lacks(t, a.healthy, "1 of 2 replicas confirmed in time")
	a.lacks(t, a.two, "1 of 2 replicas confirmed in time")
	a.allows(t, a.one)

	require.NoError(t, a.cluster.Kill(replicas[0]))
	a.knows(t, a.two, "1 of the 2 replicas that replica_acks: 2 asks for")
	a.allows(t, a.healthy)
	a.allows(t, a.one)
	a.lacks(t, a.two, "1 of 2 replicas confirmed in time")

	require.NoError(t, a.cluster.Kill(replicas[1]))
	for _, s := range []*Store{a.healthy, a.one, a.two} { // before the count, if it takes long
		a.lacks(t, s, "0 of ")
	}
	a.knows(t, a.healthy, "0 of the 1 replicas that replica_acks: healthy asks for")
	a.lacks(t, a.healthy, "0 of 1 replicas confirmed in time")
	a.lacks(t, a.one, "0 of 1 replicas confirmed in time")
	a.lacks(t, a.two, "0 of 2 replicas confirmed in time")
}

// Nothing is allowed that fewer replicas hold than replica_acks asks for.
func TestAcksOfAServerThatLosesItsReplicas(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 2, Settings: []string{"repl-timeout 60"}})
	c.Addrs = c.Addrs[:1]
	newAcksTrial(t, c).run(t)
}

func TestAcksOfAShardThatLosesItsReplicas(t *testing.T) {
	t.Parallel()
	newAcksTrial(t, testcluster.Start(t, testcluster.Options{
		Replicas: 2, NodeTimeout: 4 * time.Second, // for what happens before the replica is given up
		Settings: []string{"repl-timeout 60", "cluster-allow-replica-migration no"}, // nobody lends a replica
	})).run(t)
}
