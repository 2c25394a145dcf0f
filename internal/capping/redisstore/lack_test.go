//go:build storms

package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// lackTrial is a store whose calls have no deadline: a call that waits for a failing shard never returns.
type lackTrial struct {
	*field
	store  *Store
	shard  shard
	spares spared // users of the other shards
	sent   int
}

func newLackTrial(t *testing.T, acks Acks, nodeTimeout time.Duration) *lackTrial {
	t.Helper()
	f := &field{TB: t, admins: map[string]*redis.Client{}, cluster: testcluster.Start(t, testcluster.Options{
		Replicas: 1, NodeTimeout: nodeTimeout, Settings: []string{"repl-timeout 600"},
	})}
	for _, addr := range f.cluster.Addrs {
		f.admins[addr] = admin(t, addr)
	}
	l := &lackTrial{field: f, shard: f.shards()[0]}
	l.store = openTest(t, Config{Addrs: f.cluster.Addrs, ReplicaAcks: acks, Timeout: time.Hour})
	l.stores = []*Store{l.store}
	l.spares = otherShards(f, l.shard)
	l.decidesAll()
	return l
}

// ask calls for users of all shards, and returns the verdicts of the shard's users and of the others.
func (l *lackTrial) ask(record bool) (own, others []capping.Verdict, err error) {
	l.Helper()
	l.sent++
	b := batchOf("lack-"+strconv.Itoa(l.sent), spread(600))
	b.Record = record
	verdicts := make([]capping.Verdict, len(b.Users))
	err = l.store.Filter(l.Context(), b, verdicts)
	for i, v := range verdicts {
		if l.spares(l.store, b.Users[i]) {
			others = append(others, v)
		} else {
			own = append(own, v)
		}
	}
	require.NotEmpty(l, own)
	require.NotEmpty(l, others)
	return own, others, err
}

// decidesAll waits until every user is decided.
func (l *lackTrial) decidesAll() {
	l.Helper()
	l.until("everybody is decided", func() bool {
		own, others, err := l.ask(true)
		return err == nil && count(own, capping.Allowed) == len(own) && count(others, capping.Allowed) == len(others)
	})
}

// failsFast waits until the status reports the fault and calls return at once, and then runs many calls.
func (l *lackTrial) failsFast(status string) {
	l.Helper()
	l.until("status says "+status, func() bool { return strings.Contains(l.store.Health(l.Context()).Error, status) })
	ask := func() error {
		own, others, err := l.ask(true)
		require.Equal(l, len(own), count(own, capping.Unavailable), "nobody is allowed without confirmation")
		require.Equal(l, len(others), count(others, capping.Allowed), "the others are decided")
		return err
	}
	testkit.FailsWith(l, status, ask)    // calls wait for a moment: the replica may be back in it
	testkit.Steadily(l, 4, func() bool { // on a busy machine, a state may be older than a call
		for range 50 {
			err := ask()
			require.Error(l, err)
			if !strings.Contains(err.Error(), status) {
				l.Log(err)
				return false
			}
		}
		return true
	}, "a call did not fail at once")
}

// A shard that cannot confirm sends answers at once. The other shards decide their users, and calls that need no
// confirmation succeed.
func TestAShardThatCannotConfirmFailsFast(t *testing.T) {
	t.Parallel()
	for name, acks := range map[string]Acks{"healthy": Healthy, "1": FixedAcks(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLackTrial(t, acks, 2500*time.Millisecond)
			for fault, way := range map[string]struct {
				breaks, mends func(string) error
			}{
				"killed": {l.cluster.Kill, l.cluster.Restart}, "paused": {l.cluster.Pause, l.cluster.Resume},
			} {
				t.Log(fault)
				require.NoError(t, way.breaks(l.shard.replica))
				l.failsFast("0 of the 1 replicas that replica_acks: " + name + " requires")
				own, others, err := l.ask(false)
				require.NoError(t, err, "a preview needs no confirmation")
				require.Equal(t, len(own)+len(others), count(own, capping.Allowed)+count(others, capping.Allowed))
				require.NoError(t, way.mends(l.shard.replica))
				l.decidesAll()
			}
		})
	}
}

// The cluster flags a silent replica only after its node timeout, which may be long. The store does not wait for
// that: it fails fast when the replica is silent for longer than a call takes.
func TestASilentReplicaThatIsNotGivenUpFailsFast(t *testing.T) {
	t.Parallel()
	for name, acks := range map[string]Acks{"healthy": Healthy, "1": FixedAcks(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLackTrial(t, acks, 10*time.Minute)
			require.NoError(t, l.cluster.Pause(l.shard.replica))
			l.failsFast("0 of the 1 replicas that replica_acks: " + name +
				" requires have confirmed a write within 3s")
			require.NoError(t, l.cluster.Resume(l.shard.replica))
			l.decidesAll()
		})
	}
}

// A shard without any running server fails fast too, and the other shards do not wait for it.
func TestAShardThatIsAwayFailsFast(t *testing.T) {
	t.Parallel()
	l := newLackTrial(t, Healthy, 2500*time.Millisecond)
	require.NoError(t, l.cluster.Kill(l.shard.replica))
	require.NoError(t, l.cluster.Kill(l.shard.master))
	testkit.FailsWith(t, "connection refused", func() error {
		own, others, err := l.ask(true)
		require.Equal(t, len(own), count(own, capping.Unavailable))
		require.Equal(t, len(others), count(others, capping.Allowed))
		return err
	})
	require.NoError(t, l.cluster.Restart(l.shard.master))
	require.NoError(t, l.cluster.Restart(l.shard.replica))
	l.decidesAll()
}
