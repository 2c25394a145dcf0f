//go:build storms

package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// laggingReplica loses every send that a store allows before a replica holds it. The test also cuts the replica's
// link, because sent data would otherwise wait in the replica's socket.
var laggingReplica = breakage{"kill -9 of a master whose replica lags", otherShards, func(f *field, s shard) {
	require.NoError(f, f.cluster.Pause(s.replica))
	require.NoError(f, f.admins[s.master].Do(f.Context(), "client", "kill", "type", "replica").Err())
	f.written(s.master, 8<<10) // what only the master has
	require.NoError(f, f.cluster.Kill(s.master))
	require.NoError(f, f.cluster.Resume(s.replica))
	f.until("the replica takes over", func() bool { return f.role(s.replica) == "master" })
	f.storming.answered(f, 40)
	require.NoError(f, f.cluster.Restart(s.master))
}}

// The storms find a store that does not wait for replicas: it loses sends, or exceeds limits, and grants permits
// twice.
func TestStormsBiteAMissingWait(t *testing.T) {
	t.Parallel()
	f := newField(t, func(c *Config) { c.ReplicaAcks = FixedAcks(0) })
	lost, again := false, false
	for attempt := range 6 {
		s := f.storm(attempt, laggingReplica)
		found, paced := s.judge(s.logsOf(t, f.stores[0])), f.pacing.faults(t)
		t.Logf("%v: %+v; %v: %v", s.tally, found, f.pacing, paced)
		lost, again = lost || found.missing+found.over > 0, again || len(paced) > 0
		if lost && again {
			return
		}
	}
	t.Fatalf("a storm lost a send: %t; permits: %t", lost, again)
}
