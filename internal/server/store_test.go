package server_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/redisstore"
	"capper/internal/server"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// openStore returns an embedded store in a directory of the test.
func openStore(t testing.TB, clock func() time.Time) capping.Store {
	t.Helper()
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), Clock: clock,
		ClockBound: math.MaxInt64, CacheBytes: 16 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// openRedis returns a store on the test cluster, with windows exact to the millisecond.
func openRedis(t testing.TB, clock func() time.Time, namespace string) capping.Store {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{
		Addrs: testcluster.Shared(t), Namespace: namespace, Clock: clock, AttemptTimeout: 10 * time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// onBothStores runs the test with the embedded store and with a Redis Cluster.
func onBothStores(t *testing.T, test func(t *testing.T, s *service), change ...func(*server.Config)) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, newService(t, change...))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		clock := testkit.NewClockAt(startOfTest)
		test(t, newServiceOver(t, openRedis(t, clock.Now, testkit.Namespace()), clock, change...))
	})
}
