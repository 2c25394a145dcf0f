//go:build storms

package redisstore

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// acksTrial is a master that loses its two replicas one after the other, with one store for each relevant value of
// replica_acks.
type acksTrial struct {
	cluster           *testcluster.Cluster
	master            string
	users             []capping.UserID // whom the master holds
	healthy, one, two *Store
	patience          time.Duration // of each call
	sent              int
}

func newAcksTrial(t *testing.T, c *testcluster.Cluster) *acksTrial {
	t.Helper()
	with := func(acks Acks) *Store {
		return openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: acks, AttemptTimeout: 400 * time.Millisecond})
	}
	a := &acksTrial{cluster: c, master: c.Addrs[0], patience: time.Second, healthy: with(Healthy),
		one: with(FixedAcks(1)), two: with(FixedAcks(2))}
	a.findUsers(t)
	return a
}

func (a *acksTrial) findUsers(t *testing.T) {
	t.Helper()
	for _, user := range spread(600) {
		if a.healthy.top.Route(a.healthy.keyspace.Partition(user)).Addr() == a.master {
			a.users = append(a.users, user)
		}
	}
	require.NotEmpty(t, a.users)
}

// mixed stands for users with several outcomes: some commands of a call on a busy machine were not answered in time.
const mixed = capping.Outcome(255)

// send sends a new message to the users, whom no limit holds back, and returns the outcome that they share, or mixed.
func (a *acksTrial) send(t *testing.T, s *Store) (capping.Outcome, error) {
	t.Helper()
	return a.sendIn(background(t, a.patience), t, s)
}

func (a *acksTrial) sendIn(ctx context.Context, t *testing.T, s *Store) (capping.Outcome, error) {
	t.Helper()
	a.sent++
	verdicts := make([]capping.Verdict, len(a.users))
	err := s.Filter(ctx, batchOf("message-"+strconv.Itoa(a.sent), a.users), verdicts)
	if count(verdicts, verdicts[0].Outcome) != len(verdicts) {
		return mixed, err
	}
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
	testkit.FailsWith(t, why, func() error {
		outcome, err := a.send(t, s)
		require.Equal(t, capping.Unavailable, outcome)
		return err
	})
}

// knows waits until the store has counted the remaining replicas.
func (a *acksTrial) knows(t *testing.T, s *Store, problem string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(s.Health(t.Context()).Error, problem)
	}, 40*time.Second, 50*time.Millisecond, problem)
}

// replicas returns the addresses of the master's replicas.
func (a *acksTrial) replicas(t *testing.T) (addrs []string) {
	t.Helper()
	text, err := admin(t, a.master).Info(t.Context(), "replication").Result()
	require.NoError(t, err)
	info := topology.ParseInfo(text)
	for _, name := range []string{"slave0", "slave1"} {
		fields := strings.Split(info[name], ",") // ip=…,port=…,state=…
		require.Greater(t, len(fields), 1, "%s of %q", name, text)
		addrs = append(addrs, net.JoinHostPort(strings.TrimPrefix(fields[0], "ip="), strings.TrimPrefix(fields[1],
			"port=")))
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
	a.knows(t, a.two, "1 of the 2 replicas that replica_acks: 2 requires")
	a.allows(t, a.healthy)
	a.allows(t, a.one)
	a.lacks(t, a.two, "1 of the 2 replicas that replica_acks: 2 requires")

	require.NoError(t, a.cluster.Kill(replicas[1]))
	for _, s := range []*Store{a.healthy, a.one, a.two} { // before the count, if it takes long
		a.lacks(t, s, "0 of ")
	}
	a.knows(t, a.healthy, "0 of the 1 replicas that replica_acks: healthy requires")
	a.lacks(t, a.healthy, "0 of the 1 replicas that replica_acks: healthy requires")
	a.lacks(t, a.one, "0 of the 1 replicas that replica_acks: 1 requires")
	a.lacks(t, a.two, "0 of the 2 replicas that replica_acks: 2 requires")
}

// The store allows no send that fewer replicas hold than replica_acks requires.
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

// A call may find entries that only the master has, whoever recorded them over whichever connection. A repeated
// erasure must wait for replicas too.
func TestWhatIsFoundIsHeldByReplicasToo(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	config := Config{Addrs: c.Addrs[:1], AttemptTimeout: 400 * time.Millisecond}
	first, second := openTest(t, config), openTest(t, config)
	filter(t, second, batchOf("before", spread(20))) // so that its connections have written
	require.NoError(t, c.Pause(c.Addrs[1]))
	for _, s := range []*Store{first, second, first} {
		verdicts := make([]capping.Verdict, 20)
		require.Error(t, s.Filter(background(t, time.Second), batchOf("a", spread(20), rolling(5, time.Hour)),
			verdicts))
		require.Equal(t, 20, count(verdicts, capping.Unavailable))
	}
	for _, s := range []*Store{first, second} {
		ctx := background(t, time.Second)
		require.Error(t, s.Erase(ctx, 0))
		require.Error(t, s.Release(ctx, capping.Message{ID: "a"}.Token(), 0, spread(20), make([]capping.Released, 20)))
	}
	require.NoError(t, c.Resume(c.Addrs[1]))
	testkit.Eventually(t, func() bool { return second.Erase(t.Context(), 0) == nil })
}

// uncountedTrial is a master with two replicas, and a store that a test can keep from counting the replicas.
type uncountedTrial struct {
	acksTrial
	counts holding
	back   string // the replica that goes and comes back
	admin  *redis.Client
}

func newUncountedTrial(t *testing.T, c *testcluster.Cluster) *uncountedTrial {
	t.Helper()
	u := &uncountedTrial{acksTrial: acksTrial{cluster: c, master: c.Addrs[0], patience: 8 * time.Second}}
	u.admin = admin(t, u.master)
	u.counts = holding{asked: make(chan struct{}), answered: make(chan struct{}), release: make(chan struct{}),
		only: "replication"}
	u.healthy = openTest(t, Config{Addrs: c.Addrs, AttemptTimeout: 20 * time.Second, dial: u.counts.dial("", u.master)})
	u.findUsers(t)
	u.allows(t, u.healthy)
	u.back = u.replicas(t)[0]
	return u
}

// counted waits until the store has counted n replicas.
func (u *uncountedTrial) counted(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, shard := range u.healthy.top.Shards() {
			if shard.Addr == u.master {
				return shard.Working == n
			}
		}
		return false
	}, 40*time.Second, 10*time.Millisecond)
}

// fed returns the master's INFO fields of the replica: ip=…,port=…,state=…,offset=…,lag=…. It returns nil when the
// master does not know the replica.
func (u *uncountedTrial) fed(t *testing.T) []string {
	t.Helper()
	text, err := u.admin.Info(t.Context(), "replication").Result()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(u.back)
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		if fields := strings.Split(line, ","); len(fields) > 3 && fields[1] == "port="+port {
			return fields
		}
	}
	return nil
}

// A replica that comes back may become master before the store counts it. A send that one other replica has confirmed
// would then be lost, although one confirmation was enough before.
func (u *uncountedTrial) run(t *testing.T, leave, comeBack func() error) {
	u.counted(t, 2)
	require.NoError(t, leave())
	u.counted(t, 1)
	u.allows(t, u.healthy)

	release := sync.OnceFunc(func() { u.counts.on.Store(false); close(u.counts.release) })
	defer release()
	u.counts.on.Store(true)
	<-u.counts.asked // the store counts no more
	u.healthy.fleet.cancel()
	u.healthy.fleet.wait.Wait() // the replica that is back is told of once: not to a look at the signs
	before := u.fed(t)
	require.NoError(t, comeBack())
	testkit.Eventually(t, func() bool {
		fed := u.fed(t)
		// it has confirmed something
		return len(fed) > 0 && fed[2] == "state=online" && (len(before) == 0 || fed[3] != before[3])
	})
	if len(before) == 0 {
		require.NoError(t, u.cluster.Pause(u.back), "being fed is enough: it need not have confirmed anything")
	}
	u.lacksTheUncounted(t)
	release()
	require.NoError(t, u.cluster.Resume(u.back))
	u.allows(t, u.healthy)
	u.counted(t, 2)
}

// lacksTheUncounted requires that a call fails because of the returned replica. The call then drops the count, and
// the held-up recount of its next attempt ends the call.
func (u *uncountedTrial) lacksTheUncounted(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t, testkit.Patience))
	defer cancel()
	failed := make(chan error, 1)
	counts := u.counts.held.Load()
	go func() {
		outcome, err := u.sendIn(ctx, t, u.healthy)
		assert.Equal(t, capping.Unavailable, outcome)
		failed <- err
	}()
	testkit.Eventually(t, func() bool { return u.counts.held.Load() > counts })
	cancel()
	require.ErrorContains(t, <-failed, "replica "+u.back+" has just returned and was skipped")
}

// loaded repeats a command while its server loads the data set.
func loaded(command func() error) (err error) {
	testkit.Poll(func() bool {
		err = command()
		return err == nil || !strings.HasPrefix(err.Error(), "LOADING ")
	})
	return err
}

func TestAReplicaOfAServerThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 2, Settings: []string{"repl-timeout 60"}})
	c.Addrs = c.Addrs[:1]
	u := newUncountedTrial(t, c)
	u.run(t, func() error { return c.Kill(u.back) }, func() error {
		host, port, err := net.SplitHostPort(u.master)
		return errors.Join(err, c.Restart(u.back), loaded(func() error {
			return admin(t, u.back).ReplicaOf(t.Context(), host, port).Err()
		}))
	})
}

func TestAReplicaOfAShardThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	options := testcluster.Options{Replicas: 2, Settings: []string{"repl-timeout 60",
		"cluster-allow-replica-migration no"}}
	t.Run("after its death", func(t *testing.T) {
		t.Parallel()
		u := newUncountedTrial(t, testcluster.Start(t, options))
		u.run(t, func() error { return u.cluster.Kill(u.back) }, func() error { return u.cluster.Restart(u.back) })
	})
	t.Run("after it hung", func(t *testing.T) { // its master feeds it all the time
		t.Parallel()
		u := newUncountedTrial(t, testcluster.Start(t, options))
		u.run(t, func() error { return u.cluster.Pause(u.back) }, func() error { return u.cluster.Resume(u.back) })
	})
}
