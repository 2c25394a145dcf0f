//go:build storms

package redisstore

import (
	"context"
	"slices"
	"strings"
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

// writesAtOnce makes servers write the append-only file before they reply. With everysec a slow disk delays the
// write, and a killed server would come back without it.
const writesAtOnce = "appendfsync no"

// field is a cluster that tests break on purpose, with the stores on it.
type field struct {
	testing.TB
	cluster  *testcluster.Cluster
	admins   map[string]*redis.Client
	stores   []*Store
	ahead    *atomic.Int64 // nanoseconds that the first store's clock is ahead
	storming *storm        // the load on the stores
	pacing   *pacingStorm  // beside it, the load on pacers
}

func newField(t testing.TB, change func(*Config)) *field {
	f := &field{TB: t, admins: map[string]*redis.Client{}, ahead: &atomic.Int64{}}
	f.cluster = testcluster.Start(t, testcluster.Options{
		Replicas: 1, NodeTimeout: 2500 * time.Millisecond, // more than a busy machine stalls a node, mostly
		Settings: append(operated, writesAtOnce),
	})
	for _, addr := range f.cluster.Addrs {
		f.admins[addr] = admin(t, addr)
	}
	for i := range 3 {
		config := Config{
			Addrs: f.cluster.Addrs, Namespace: "fc", AttemptTimeout: 500 * time.Millisecond,
			ClockSkew: 250 * time.Millisecond,
		}
		if i == 0 {
			config.Clock = func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
		}
		if change != nil {
			change(&config)
		}
		f.stores = append(f.stores, openTest(t, config))
	}
	return f
}

func (f *field) deciders() (deciders []decider) {
	for _, s := range f.stores {
		deciders = append(deciders, s)
	}
	return deciders
}

// shard is the current master and the current replica of a shard.
type shard struct{ master, replica string }

// shards reads the shards from CLUSTER NODES of the first node that answers.
func (f *field) shards() (shards []shard) {
	for _, addr := range f.cluster.Addrs {
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		text, err := f.admins[addr].ClusterNodes(ctx).Result()
		cancel()
		if err != nil {
			continue
		}
		masters, replicas := map[string]string{}, map[string]string{}
		for line := range strings.Lines(text) {
			w := strings.Fields(line)
			at, _, _ := strings.Cut(w[1], "@")
			flags := strings.Split(w[2], ",")
			switch {
			case slices.Contains(flags, "fail"):
			case slices.Contains(flags, "master") && len(w) > 8:
				masters[w[0]] = at
			case slices.Contains(flags, "slave"):
				replicas[w[3]] = at
			}
		}
		for id, master := range masters {
			shards = append(shards, shard{master, replicas[id]})
		}
		slices.SortFunc(shards, func(a, b shard) int { return strings.Compare(a.master, b.master) })
		return shards
	}
	f.Fatal("no node answers")
	return nil
}

// partitions returns the partitions whose slots the master claims. A store's routes may be a second old.
func (f *field) partitions(master string) (held []int) {
	f.Helper()
	parts, err := slotsOf(f.Context(), f.admins[master])
	require.NoError(f, err)
	l := f.stores[0].keyspace
	for p := range l.Partitions {
		if masterOf(parts, l.Slot(p)) == master {
			held = append(held, p)
		}
	}
	return held
}

// slotsOf returns the slots with their nodes, as one node sees them.
func slotsOf(ctx context.Context, node redis.Cmdable) ([]redis.ClusterSlot, error) {
	return node.ClusterSlots(ctx).Result()
}

// masterOf returns the address of the slot's master; "" when the slot has none.
func masterOf(parts []redis.ClusterSlot, slot int) string {
	for _, part := range parts {
		if part.Start <= slot && slot <= part.End {
			return part.Nodes[0].Addr
		}
	}
	return ""
}

// healed reports whether every node serves and every master feeds a replica.
func (f *field) healed() bool {
	ctx, cancel := context.WithTimeout(f.Context(), time.Second)
	defer cancel()
	masters := 0
	for _, addr := range f.cluster.Addrs {
		info, err := f.admins[addr].ClusterInfo(ctx).Result()
		if err != nil || topology.ParseInfo(info)["cluster_state"] != "ok" {
			return false
		}
		text, err := f.admins[addr].Info(ctx, "replication").Result()
		facts := topology.ParseInfo(text)
		switch {
		case err != nil:
			return false
		case facts["role"] == "master":
			masters++
			if !strings.Contains(facts["slave0"], "state=online") {
				return false
			}
		case facts["master_link_status"] != "up":
			return false
		}
	}
	if masters != 3 || slices.ContainsFunc(f.shards(), func(s shard) bool { return s.replica == "" }) {
		return false // a replica may be held for dead still by whom faults ask next
	}
	for _, s := range f.stores {
		if state, _ := s.top.State(); state != "ok" { // Health also remembers what was
			return false
		}
	}
	return true
}

func (f *field) heal() {
	f.Helper()
	require.Eventually(f, f.healed, 5*time.Minute, 50*time.Millisecond, "the cluster has to heal")
}

// until waits for a condition of the cluster.
func (f *field) until(what string, condition func() bool) {
	f.Helper()
	require.Eventually(f, condition, 5*time.Minute, 20*time.Millisecond, what)
}

// manualFailover is longer than the 5 s after which a master gives up a CLUSTER FAILOVER to a slow replica. No node
// retries the failover by itself.
const manualFailover = 6 * time.Second

// role returns the role that the node reports; "" when the node does not answer.
func (f *field) role(addr string) string {
	ctx, cancel := context.WithTimeout(f.Context(), 300*time.Millisecond)
	defer cancel()
	text, err := f.admins[addr].Info(ctx, "replication").Result()
	if err != nil {
		return ""
	}
	return topology.ParseInfo(text)["role"]
}

// flagged reports whether the asked node sees the given flag on the other node.
func (f *field) flagged(asked, other, flag string) bool {
	text, err := f.admins[asked].ClusterNodes(f.Context()).Result()
	require.NoError(f, err)
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if at, _, _ := strings.Cut(w[1], "@"); at == other {
			return slices.Contains(strings.Split(w[2], ","), flag)
		}
	}
	return false
}

// written waits until the node has written the given number of bytes more.
func (f *field) written(addr string, bytes int64) {
	f.Helper()
	offset := func() int64 {
		text, err := f.admins[addr].Info(f.Context(), "replication").Result()
		require.NoError(f, err)
		return topology.ParseInfo(text).Number("master_repl_offset")
	}
	want := offset() + bytes
	f.until("writes", func() bool { return offset() >= want })
}

// breakage is one way to break a cluster; inflict breaks and repairs the cluster.
type breakage struct {
	name    string
	spares  spares
	inflict func(f *field, s shard)
}

// spares returns which users a breakage of the shard leaves untouched.
type spares func(f *field, s shard) spared

func everybody(*field, shard) spared {
	return func(decider, capping.UserID) bool { return true }
}

func nobody(*field, shard) spared {
	return func(decider, capping.UserID) bool { return false }
}

func otherShards(f *field, s shard) spared {
	held, l := f.partitions(s.master), f.stores[0].keyspace
	return func(_ decider, user capping.UserID) bool { return !slices.Contains(held, l.Partition(user)) }
}

func otherStores(f *field, _ shard) spared {
	return func(asked decider, _ capping.UserID) bool { return asked != decider(f.stores[0]) }
}

var breakages = []breakage{
	// first, because slots with many keys take long to move
	{"slots moved under load", everybody, moveSlots},
	{"slots held half-moved", everybody, holdSlotsHalfMoved},
	{"kill -9 of a master, failover", otherShards, func(f *field, s shard) {
		require.NoError(f, f.cluster.Kill(s.master))
		f.until("the replica takes over", func() bool { return f.role(s.replica) == "master" })
		f.storming.answered(f, 40)
		require.NoError(f, f.cluster.Restart(s.master))
	}},
	laggingReplica,
	{"kill -9 of a replica", otherShards, func(f *field, s shard) {
		require.NoError(f, f.cluster.Kill(s.replica))
		f.until("the replica is given up", func() bool { return f.flagged(s.master, s.replica, "fail") })
		f.storming.answered(f, 40)
		require.NoError(f, f.cluster.Restart(s.replica))
	}},
	{"kill -9 of all of one shard", otherShards, func(f *field, s shard) {
		require.NoError(f, f.cluster.Kill(s.replica))
		require.NoError(f, f.cluster.Kill(s.master))
		f.storming.leavesOpen(f)
		require.NoError(f, f.cluster.Restart(s.master))
		require.NoError(f, f.cluster.Restart(s.replica))
	}},
	{"restart quicker than the node time-out", otherShards, func(f *field, s shard) {
		require.NoError(f, f.cluster.Kill(s.master))
		require.NoError(f, f.cluster.Restart(s.master))
		f.storming.answered(f, 40)
	}},
	{"SIGSTOP longer than the node time-out", otherShards, func(f *field, s shard) {
		require.NoError(f, f.cluster.Pause(s.master))
		f.until("the replica takes over", func() bool { return f.role(s.replica) == "master" })
		f.storming.answered(f, 40)
		require.NoError(f, f.cluster.Resume(s.master))
	}},
	{"SCRIPT FLUSH on all nodes", everybody, func(f *field, s shard) {
		for range 5 {
			for _, addr := range f.cluster.Addrs {
				require.NoError(f, f.admins[addr].ScriptFlush(f.Context()).Err())
			}
			f.storming.answered(f, 10)
		}
	}},
	{"CLUSTER FAILOVER", otherShards, func(f *field, s shard) {
		require.NoError(f, f.admins[s.replica].ClusterFailover(f.Context()).Err())
		asked := time.Now()
		f.until("the replica takes over", func() bool {
			if time.Since(asked) > manualFailover {
				f.admins[s.replica].ClusterFailover(f.Context())
				asked = time.Now()
			}
			return f.role(s.replica) == "master"
		})
	}},
	{"a stalled node", otherShards, func(f *field, s shard) {
		require.NoError(f, f.admins[s.master].Do(f.Context(), "debug", "sleep", "1.2").Err())
		f.storming.answered(f, 20)
	}},
	fullServer,
	wrongTypes,
	skewedClock,
	wrongPassword,
}

// tears reports whether the breakage splits the keys of slots over two nodes.
func tears(b breakage) bool { return strings.HasPrefix(b.name, "slots") }

// storm loads the stores while one master after another breaks. It returns when every user is decided.
func (f *field) storm(i int, b breakage) *storm {
	f.Helper()
	return f.stormAt(capping.UserID(i+1)*100_000_000, i, b)
}

// stormAt is like storm, with its own users from base on.
func (f *field) stormAt(base capping.UserID, i int, b breakage) *storm {
	f.Helper()
	f.heal()
	victim := f.victim(i)
	s := newStorm(base, f.deciders()...)
	s.spared, s.torn = b.spares(f, victim), tears(b)
	if s.torn {
		s.patience = 4 * time.Second // on a busy machine, a slot that moves may answer late
	}
	f.storming = s
	s.begin(uint64(i))
	defer s.end()
	f.pace(uint64(i))
	defer f.pacing.end()
	s.answered(f, 40)
	b.inflict(f, victim)
	f.heal()
	s.answered(f, 40)
	s.end()
	s.settle(f)
	f.pacing.settle(f)
	return s
}

func TestNeverWrongWhenNodesBreak(t *testing.T) {
	t.Parallel()
	neverWrong(t, newField(t, nil), breakages)
}

func TestNeverWrongWhenConnectionsBreak(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	neverWrong(t, newField(t, func(c *Config) { c.dial = between.dial }), wireBreakages(between))
}

func neverWrong(t *testing.T, f *field, breakages []breakage) {
	t.Helper()
	for i, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			f := *f
			f.TB = t
			try := 0
			testkit.Steadily(t, mostTries, func() bool {
				s := f.stormAt(capping.UserID(i+1)*100_000_000+capping.UserID(try)*30_000_000, i, b)
				try++
				t.Log(s.tally)
				t.Log(f.pacing)
				require.Zero(t, s.verify(t, f.stores[0]))
				require.Empty(t, f.pacing.faults(t))
				require.Less(t, s.tally.overdue, testkit.Patience, "a call that hangs")
				require.NotZero(t, s.tally.grants)
				require.NotZero(t, s.tally.denials)
				return s.sparedHealthy(t)
			}, "users of healthy nodes became unavailable")
		})
	}
}

// sparedHealthy reports whether all users of healthy nodes were decided, and otherwise logs why not.
func (s *storm) sparedHealthy(t testing.TB) bool {
	if s.tally.spoilt > 0 {
		t.Logf("%d users of healthy nodes became unavailable: %v", s.tally.spoilt, s.tally.lastError)
	}
	return s.tally.spoilt == 0
}

// mostTries is how often a load is repeated in which users were undecided without a fault. On a busy machine a
// healthy node may be late once; a faulty store fails every time.
const mostTries = 4
