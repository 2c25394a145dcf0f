//go:build storms

package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A FLUSHALL while capper runs lets no user exceed a limit. All users are unavailable until capper restarts and
// reports the loss.
func TestFlushAllUnderLoadAllowsNobody(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
	registry := prometheus.NewRegistry()
	config := Config{Addrs: c.Addrs, Username: leastUser, Password: leastUser}
	s := openTest(t, Config{Addrs: c.Addrs, Registerer: registry})
	users := spread(20_000)
	require.Equal(t, len(users), count(filter(t, s, batchOf("first", users, rolling(1, week))), capping.Allowed))
	p := press(s, users)
	defer p.stop()
	p.pressed(t, &p.denied, 50_000)
	for _, addr := range c.Addrs[:3] {
		require.NoError(t, admin(t, addr).FlushAll(t.Context()).Err())
	}
	p.pressed(t, &p.unavailable, 50_000)
	health := func() capping.Health { return s.Health(t.Context()) }
	testkit.Eventually(t, func() bool {
		return health().State == "down" && strings.Contains(health().Error,
			"the records of the store are gone from Redis (for example after FLUSHALL)") &&
			strings.Contains(health().Error, "64 of 64 partitions: the server was emptied")
	})
	testkit.Eventually(t, func() bool {
		return sample(t, registry, "capper_store_barred_partitions", "gone") == 64 &&
			sample(t, registry, "capper_store_records_gone") == 1
	})
	_, err := s.Log(t.Context(), users[0])
	require.ErrorContains(t, err, "the server was emptied", "nothing is said of a user of whom nothing is known")
	p.stop()
	require.Zero(t, p.allowed.Load())

	config.MustExist = true
	_, err = openInTime(t, config)
	require.ErrorContains(t, err, "no store exists in Redis for namespace fc: the namespace is new, or its records "+
		"are lost: set store.redis.create: true to create an empty store")
	config.MustExist = false
	again := openTest(t, config)
	require.WithinDuration(t, time.Now(), again.Health(t.Context()).Fleet.Made, time.Minute)
	anew := filter(t, again, batchOf("anew", users, rolling(1, week)))
	require.Equal(t, len(users), count(anew, capping.Allowed)+count(anew, capping.Denied),
		"some were recorded while they were unavailable")
	require.NotZero(t, count(anew, capping.Allowed))
	s.fleet.beatSoon()
	testkit.Eventually(t, func() bool {
		return health().State == "ok" || strings.Contains(health().Error,
			"within the last")
	})
	require.Equal(t, len(users), count(filter(t, s, batchOf("more", users, rolling(1, week))), capping.Denied),
		"one restart is enough for all instances")
}
