//go:build storms

package redisstore

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// promiseTrial is a cluster with two stores. All its users have reached their limit, so no user may be allowed again.
type promiseTrial struct {
	testing.TB
	cluster *testcluster.Cluster
	config  Config
	stores  []*Store
	node    *redis.Client // the master that breaks its promise
	addr    string
	users   []capping.UserID
	sent    atomic.Int64
}

func newPromiseTrial(t *testing.T) *promiseTrial {
	t.Helper()
	f := &promiseTrial{TB: t, cluster: testcluster.Start(t,
		testcluster.Options{Replicas: 1, NodeTimeout: steady, Settings: []string{writesAtOnce}})}
	f.config = Config{Addrs: f.cluster.Addrs, Timeout: testkit.Patience}
	f.stores = []*Store{openTest(t, f.config), openTest(t, f.config)}
	f.addr = f.cluster.Addrs[0]
	f.node = admin(t, f.addr)
	for id := range capping.UserID(40_000) {
		f.users = append(f.users, id)
	}
	verdicts, err := f.ask(f.stores[0], f.users)
	require.NoError(t, err)
	require.Equal(t, len(f.users), count(verdicts, capping.Allowed))
	return f
}

// ask sends a new message to users who may get one message in total.
func (f *promiseTrial) ask(s *Store, users []capping.UserID) ([]capping.Verdict, error) {
	verdicts := make([]capping.Verdict, len(users))
	b := batchOf("blast-"+strconv.FormatInt(f.sent.Add(1), 10), users, rolling(1, 24*time.Hour))
	err := s.Filter(f.Context(), b, verdicts)
	return verdicts, err
}

// split returns the verdicts of the node's users, and those of the others.
func (f *promiseTrial) split(s *Store, verdicts []capping.Verdict) (own, others []capping.Verdict) {
	for i, v := range verdicts {
		if s.top.Route(s.keyspace.Partition(f.users[i])).Addr() == f.addr {
			own = append(own, v)
		} else {
			others = append(others, v)
		}
	}
	return own, others
}

// barred requires that the store decides every user except the users of the node.
func (f *promiseTrial) barred(s *Store, why string) {
	f.Helper()
	testkit.Eventually(f, func() bool {
		verdicts, err := f.ask(s, f.users)
		require.Zero(f, count(verdicts, capping.Allowed))
		return err != nil && strings.Contains(err.Error(), why)
	})
	verdicts, err := f.ask(s, f.users)
	require.ErrorContains(f, err, why)
	own, others := f.split(s, verdicts)
	require.Equal(f, len(own), count(own, capping.Unavailable))
	require.Equal(f, len(others), count(others, capping.Denied))
	require.Contains(f, s.Health(f.Context()).Error, why)
}

// decided waits until the store decides every user, and returns how many users it allows.
func (f *promiseTrial) decided(s *Store) (allowed int) {
	f.Helper()
	testkit.Eventually(f, func() bool {
		verdicts, err := f.ask(s, f.users)
		allowed += count(verdicts, capping.Allowed)
		return err == nil
	})
	return allowed
}

func (f *promiseTrial) set(setting, value string) {
	f.Helper()
	require.NoError(f, f.node.ConfigSet(f.Context(), setting, value).Err())
}

func (f *promiseTrial) info(name string) int64 {
	text, err := f.node.Info(f.Context()).Result()
	require.NoError(f, err)
	return topology.ParseInfo(text).Number(name)
}

// evict makes the node evict the given number of keys under the policy, and then restores the settings.
func (f *promiseTrial) evict(policy string, keys int64) {
	f.Helper()
	before := f.info("evicted_keys")
	f.set("maxmemory-policy", policy)
	f.set("maxmemory", strconv.FormatInt(f.info("used_memory")*8/10, 10))
	require.Eventually(f, func() bool {
		_ = f.node.Set(f.Context(), "filler", "x", time.Minute).Err() // a write makes room for itself
		return f.info("evicted_keys") >= before+keys
	}, testkit.Patience, time.Millisecond)
	f.set("maxmemory", "0")
	f.set("maxmemory-policy", "noeviction")
}

// accept lets the first store accept the loss, and requires that all stores decide every user.
func (f *promiseTrial) accept(lost bool) {
	f.Helper()
	losses, err := f.stores[0].AcceptLoss(f.Context(), "the logs were compared with the audit")
	require.NoError(f, err)
	require.NotEmpty(f, losses)
	require.Equal(f, f.addr, losses[0].Node)
	allowed := 0
	for _, s := range f.stores {
		allowed += f.decided(s)
		require.Contains(f, strings.Join(warningsOf(f.TB.(*testing.T), s), "\n"),
			"the logs were compared with the audit")
	}
	if !lost { // else evicted logs may, by chance, be of nobody who is asked for here
		require.Zero(f, allowed, "users were allowed again")
	}
	losses, err = f.stores[0].AcceptLoss(f.Context(), "again")
	require.NoError(f, err)
	require.Empty(f, losses)
}

// A server that evicts keys during blasts breaks no limit. From the first evicted key on, its users are unavailable
// in every instance, also after a restart, until an operator accepts the loss.
func TestEvictionUnderBlastsBarsItsUsers(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			f := newPromiseTrial(t)
			stop, blasts := make(chan struct{}), sync.WaitGroup{}
			var allowed, asked atomic.Int64
			for _, s := range f.stores {
				blasts.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						verdicts, _ := f.ask(s, f.users)
						allowed.Add(int64(count(verdicts, capping.Allowed)))
						asked.Add(int64(len(verdicts)))
					}
				})
			}
			f.evict(policy, 20)
			for _, s := range f.stores {
				f.barred(s, "until an operator accepts the loss") // whatever was seen first
			}
			close(stop)
			blasts.Wait()
			require.Zero(t, allowed.Load(), "of %d decisions", asked.Load())
			t.Logf("%d decisions, %d keys evicted, nobody allowed", asked.Load(), f.info("evicted_keys"))

			f.set("maxmemory-policy", policy)
			_, err := f.stores[0].AcceptLoss(t.Context(), "hurry")
			var refused *capping.LossError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, "'maxmemory-policy' is still '"+policy+"': set it to 'noeviction'")
			f.set("maxmemory-policy", "noeviction")

			f.stores = append(f.stores, openTest(t, f.config))
			for _, s := range f.stores { // also one that has just started
				f.barred(s, "node "+f.addr)
			}
			f.accept(true)
			f.decided(openTest(t, f.config))
		})
	}
}

// A start detects evictions from a time without instances. They stay detected after the server restarts and counts
// from 0.
func TestEvictionWhileNobodyRuns(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	for _, s := range f.stores {
		require.NoError(t, s.Close())
	}
	f.evict("allkeys-random", 20)
	f.stores = []*Store{openTest(t, f.config)}
	f.barred(f.stores[0], "the server has evicted")
	require.NoError(t, f.stores[0].Close())

	require.NoError(t, f.cluster.Kill(f.addr))
	require.NoError(t, f.cluster.Restart(f.addr))
	testkit.Eventually(t, func() bool {
		state, err := f.node.ClusterInfo(t.Context()).Result()
		return err == nil && topology.ParseInfo(state)["cluster_state"] == "ok"
	})
	require.Zero(t, f.info("evicted_keys"))
	f.stores = []*Store{openPatiently(t, f.config)}
	f.barred(f.stores[0], "the server has evicted")
	f.accept(true)
}

// Instances restore the ledger of broken promises when the store loses copies.
func TestTheRecordOfBrokenPromisesIsBroughtBack(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	f.evict("allkeys-random", 20)
	for _, s := range f.stores {
		f.barred(s, "until an operator accepts the loss") // whatever was seen first
	}
	s := f.stores[0]
	copies := func(count func(*redis.Client, string) int64) (n int64) {
		for _, p := range ledgerCopies(s.keyspace) {
			key := s.marker.Key + ":-promises"
			if p < len(s.prefixes) {
				key = s.prefixes[p] + "-promises"
			}
			n += count(s.top.Route(p).Client(), key)
		}
		return n
	}
	written := func() bool {
		return copies(func(c *redis.Client, key string) int64 {
			fields, err := c.HGetAll(t.Context(), key).Result()
			require.NoError(t, err)
			if strings.Contains(strings.Join(values(fields), " "), `"node":"`+f.addr+`","what"`) {
				return 1
			}
			return 0
		}) == int64(len(ledgerCopies(s.keyspace)))
	}
	testkit.Eventually(t, written)
	copies(func(c *redis.Client, key string) int64 { return c.Del(t.Context(), key).Val() })
	testkit.Eventually(t, written)
}

func values(fields map[string]string) (texts []string) {
	for _, text := range fields {
		texts = append(texts, text)
	}
	return texts
}

// A master without an append-only file forgets everything at its next start. Its users wait for an operator, even
// after the file is switched on again.
func TestAnAppendOnlyFileThatIsSwitchedOffBarsItsUsers(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	f.set("appendonly", "no")
	for _, s := range f.stores {
		f.barred(s, "appendonly is no")
	}
	_, err := f.stores[0].AcceptLoss(t.Context(), "hurry")
	require.ErrorContains(t, err, "'appendonly' is still 'no'")
	f.set("appendonly", "yes")
	for _, s := range f.stores {
		f.barred(s, "appendonly is no")
	}
	f.accept(false)
}

// Where sends need no replicas, a server without an append-only file is configured that way. When a server's file is
// switched off later, its users wait for an operator, also in instances that start afterwards.
func TestAnAppendOnlyFileThatIsSwitchedOffWithoutReplicas(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	config := Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Timeout: testkit.Patience}
	node, users := admin(t, c.Addrs[0]), spread(600)
	s := openTest(t, config)
	require.Equal(t, len(users), count(filter(t, s, batchOf("first", users, rolling(1, week))), capping.Allowed))
	ask := func(s *Store) error {
		verdicts := make([]capping.Verdict, len(users))
		err := s.Filter(background(t, testkit.Patience), batchOf("again", users, rolling(1, week)), verdicts)
		require.Zero(t, count(verdicts, capping.Allowed))
		return err
	}
	const why = "appendonly is no"
	require.NoError(t, ask(s))
	require.NoError(t, node.ConfigSet(t.Context(), "appendonly", "no").Err())
	testkit.FailsWith(t, why, func() error { return refreshed(ask(s)) })
	require.Equal(t, 1, strings.Count(ask(s).Error(), "node "+c.Addrs[0]), "%v", ask(s))
	require.NoError(t, s.Close())
	config.MustExist = true
	s = openTest(t, config)
	require.ErrorContains(t, ask(s), why)
	_, err := s.AcceptLoss(t.Context(), "hurry")
	require.ErrorContains(t, err, "'appendonly' is still 'no'")
	require.NoError(t, node.ConfigSet(t.Context(), "appendonly", "yes").Err())
	losses, err := s.AcceptLoss(t.Context(), "it never restarted")
	require.NoError(t, err)
	require.Len(t, losses, 1)
	require.Equal(t, "append_only", losses[0].Reason)
	require.Equal(t, 64, losses[0].Partitions, "of 64")
	testkit.Eventually(t, func() bool { return ask(s) == nil })

	without := testcluster.Single(t, testcluster.Options{Settings: []string{"appendonly no"}})
	plain := openTest(t, Config{Addrs: without.Addrs, ReplicaAcks: FixedAcks(0), Timeout: testkit.Patience})
	require.Equal(t, len(users), count(filter(t, plain, batchOf("first", users, rolling(1, week))), capping.Allowed))
	require.NoError(t, plain.top.LookAtPromises(t.Context()))
	require.NoError(t, ask(plain))
	require.Empty(t, plain.top.BrokenPromises(), "it is configured so")
}

// refreshed returns the error err, or an error of its own when err is nil.
func refreshed(err error) error {
	if err == nil {
		return errors.New("decided")
	}
	return err
}

// Evicted keys are reported together with the policy that evicted them, whichever is seen first.
func TestEvictionsAndPoliciesAreToldOfTogether(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	s := f.stores[0]
	f.set("maxmemory-policy", "allkeys-lru")
	f.barred(s, "maxmemory-policy is allkeys-lru, which silently deletes recorded sends, since")
	require.Equal(t, "policy", s.top.BrokenPromises()[0].Reason)
	f.set("maxmemory", strconv.FormatInt(f.info("used_memory")*8/10, 10))
	testkit.Eventually(t, func() bool {
		_ = f.node.Set(t.Context(), "filler", "x", time.Minute).Err()
		return f.info("evicted_keys") >= 20
	})
	f.set("maxmemory", "0")
	evicted := f.info("evicted_keys")
	want := "the server has evicted " + strconv.FormatInt(evicted, 10) +
		" keys; maxmemory-policy is allkeys-lru, which silently deletes recorded sends"
	for _, s := range f.stores {
		f.barred(s, want)
		broken := s.top.BrokenPromises()
		require.Len(t, broken, 1)
		require.Equal(t, "evicted", broken[0].Reason)
		require.Equal(t, len(f.own()), broken[0].Partitions, "as the status counts them")
		require.Contains(t, s.Health(t.Context()).Error, strconv.Itoa(broken[0].Partitions)+" of 64 partitions: node ")
		require.NotContains(t, s.Health(t.Context()).Error, "node "+f.addr+": node ")
	}
	f.set("maxmemory-policy", "noeviction")
	losses, err := s.AcceptLoss(t.Context(), "looked at")
	require.NoError(t, err)
	require.Equal(t, "evicted", losses[0].Reason)
	require.Equal(t, want, losses[0].What)
	require.Contains(t, strings.Join(warningsOf(t, s), "\n"), want)
}

// Evictions from before the store began do not concern its keys.
func TestEvictionsBeforeTheStoreBarNobody(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
	node := admin(t, c.Addrs[0])
	require.NoError(t, node.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err())
	write := func() {
		for i := range 50 {
			_ = node.Set(t.Context(), "old-"+strconv.Itoa(i), "x", 0).Err() // slots of others are refused
		}
	}
	write()
	require.NoError(t, node.ConfigSet(t.Context(), "maxmemory", "1").Err())
	write()
	info, err := node.Info(t.Context(), "stats").Result()
	require.NoError(t, err)
	require.NotZero(t, topology.ParseInfo(info).Number("evicted_keys"))
	require.NoError(t, node.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.NoError(t, node.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	for range 2 {
		s := openTest(t, Config{Addrs: c.Addrs})
		require.Equal(t, 600, count(filter(t, s, batchOf(namespace(), spread(600))), capping.Allowed))
		require.Empty(t, s.top.BrokenPromises())
	}
}

// A replica that evicts may become master, so the store checks it before it sends commands to it.
func TestAReplicaThatEvictsIsNotDecidedOn(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	s := f.stores[0]
	replica := admin(t, f.replica())
	require.NoError(t, replica.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	require.Eventually(t, func() bool { // the master may give a failover up that comes too soon
		_ = replica.ClusterFailover(t.Context()).Err()
		text, err := replica.Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		return topology.ParseInfo(text)["role"] == "master"
	}, testkit.Patience, 50*time.Millisecond)
	testkit.FailsWith(t, "maxmemory-policy is allkeys-lru", func() error {
		verdicts, err := f.ask(s, f.users)
		require.Zero(t, count(verdicts, capping.Allowed))
		return err
	})
}

// replica returns the node's replica.
func (f *promiseTrial) replica() string {
	f.Helper()
	text, err := f.node.ClusterNodes(f.Context()).Result()
	require.NoError(f, err)
	self := ""
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); strings.Contains(w[2], "myself") {
			self = w[0]
		}
	}
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); w[3] == self {
			at, _, _ := strings.Cut(w[1], "@")
			return at
		}
	}
	f.Fatal("no replica")
	return ""
}
