//go:build storms

package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// With round trips of 600 ms an attempt of one second could not even log in.
func TestFarServersGetMoreTime(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
	d := &distance{roundTrip: 600 * time.Millisecond}
	defer d.open.Wait()
	s, err := openInTime(t, Config{
		Addrs: c.Addrs[:3], Username: leastUser, Password: leastUser, dial: d.dial, ClockSkew: time.Second,
		Timeout: 30 * time.Second,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	users := spread(2000)
	require.Equal(t, 2000, count(filter(t, s, batchOf("a", users, rolling(1, time.Hour))), capping.Allowed))
	require.Equal(t, 2000, count(filter(t, s, batchOf("b", users, rolling(1, time.Hour))), capping.Denied))
	for range 3 {
		refreshes(t, s)
		storetest.IsOK(t, s)
	}
	far := map[string]time.Duration{}
	for _, n := range s.top.Masters() {
		far[n.Addr()] = n.AttemptTime()
	}
	testkit.Eventually(t, func() bool { // a connection that was slow once looks far
		near := openTest(t, Config{Addrs: c.Addrs[:3]})
		filter(t, near, batchOf("c", users))
		return !slices.ContainsFunc(near.top.Masters(),
			func(n *topology.Node) bool { return n.AttemptTime() >= far[n.Addr()] })
	}, "near servers get less")
}
