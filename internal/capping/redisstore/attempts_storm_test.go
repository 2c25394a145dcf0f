//go:build storms

package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A delayed attempt must not remove sends that were recorded after its retry was answered.
func TestLateReleasesAndErasuresRemoveNothing(t *testing.T) {
	t.Parallel()
	s := openShared(t, func(c *Config) { c.ClockSkew = 250 * time.Millisecond })
	user := capping.UserID(5)
	require.Equal(t, 1, count(filter(t, s, batchOf("a", []capping.UserID{user})), capping.Allowed))
	partition, key, field := s.key(user)
	release := &releaseOperation{store: s, users: []capping.UserID{user}, token: capping.Message{ID: "a"}.Token(),
		until: capping.Never}
	erase := &eraseOperation{script: s.scripts.Erase, key: key, field: field, skew: 250 * time.Millisecond}
	for _, op := range []dispatch.Operation{release, erase} {
		c := &dispatch.Command{Partition: partition, Items: []uint64{s.keyspace.Item(user, 0)}}
		op.Encode(c)
		send := func(ago time.Duration) error {
			op.Stamp(c, dispatch.Stamp{Now: capping.InstantOf(time.Now().Add(-ago)), Since: capping.Never})
			return owner(t, s, user).Do(t.Context(), c.Args.Values()...).Err()
		}
		require.ErrorContains(t, send(time.Hour), "CLOCKSKEW 3")
		require.ErrorContains(t, send(-time.Hour), "CLOCKSKEW -3")
		require.Equal(t, 1, readLogs(t, s)[user].Len())
		testkit.Eventually(t, func() bool { return send(0) == nil }, "it may be late itself")
		require.Empty(t, readLogs(t, s))
		require.Equal(t, 1, count(filter(t, s, batchOf("a", []capping.UserID{user})), capping.Allowed))
	}
}

// A replica in a full resynchronization confirms nothing; the other replicas are enough.
func TestReplicasThatCopyEverythingAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 2, Settings: []string{"repl-backlog-size 16384"}})
	a := newAcksTrial(t, c)
	copying := a.replicas(t)[0]
	require.NoError(t, c.Kill(copying))
	a.allows(t, a.healthy)
	master := admin(t, a.master)
	// for which it waits with the copy
	require.NoError(t, master.ConfigSet(t.Context(), "repl-diskless-sync-delay", "120").Err())
	tag := a.healthy.prefixes[a.healthy.keyspace.Partition(a.users[0])]
	// more than its backlog
	require.NoError(t, master.Set(t.Context(), tag+"filler", make([]byte, 100_000), time.Minute).Err())
	require.NoError(t, c.Restart(copying))
	state := func() string {
		text, err := master.Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		return text
	}
	testkit.Eventually(t, func() bool { return strings.Contains(state(), "state=wait_bgsave") })
	refreshes(t, a.healthy)
	a.allows(t, a.healthy)
	require.Contains(t, state(), "state=wait_bgsave", "it was still copying")
}
