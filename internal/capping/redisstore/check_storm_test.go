//go:build storms

package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
)

func TestHealthTellsWhoIsMissing(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1})
	s := openTest(t, unhurried(Config{Addrs: c.Addrs}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h := s.Health(t.Context())
		require.WithinDuration(c, time.Now(), h.Fleet.Made, time.Minute)
		require.Equal(c, capping.Health{
			Kind: "redis", State: "ok", Fleet: &capping.Fleet{Instances: 1, Made: h.Fleet.Made},
			Warnings: []string{"the store was created at this start without records: every user may receive a message"},
		}, h)
	}, 30*time.Second, 10*time.Millisecond)
	is := func(state, problem string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			h := s.Health(t.Context())
			require.Equal(c, state, h.State)
			require.Contains(c, h.Error, problem)
		}, 30*time.Second, 50*time.Millisecond)
	}
	require.NoError(t, c.Kill(c.Addrs[3]))
	is("degraded", "0 of the 1 replicas that replica_acks: healthy requires")
	require.NoError(t, c.Restart(c.Addrs[3]))
	is("ok", "")
	for _, addr := range c.Addrs {
		require.NoError(t, c.Pause(addr))
	}
	is("down", "read the hash slots of the Redis cluster: no node answers")
	for _, addr := range c.Addrs {
		require.NoError(t, c.Resume(addr))
	}
	is("ok", "")
}
