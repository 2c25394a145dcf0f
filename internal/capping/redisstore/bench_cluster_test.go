//go:build storms

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
)

func (b *bench) onCluster() {
	b.clock = newClock()
	c := testcluster.Start(b.T, testcluster.Options{Settings: benchSettings, NodeTimeout: time.Minute})
	var servers []*redis.Client
	for _, addr := range c.Addrs {
		servers = append(servers, admin(b, addr))
	}
	ours := openTest(b, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: b.clock.now})
	plain := b.usual(redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs, DisableIdentity: true, ReadTimeout: time.Minute, PoolSize: 100,
	}))
	b.prefer(servers)
	users := everyNth(b.scaled(1_000_000, 20_000), 1)
	for _, d := range []decider{plain, ours} {
		b.fill(d, users, shared)
	}
	b.clock.advance(apart)
	many := b.alternately(plain, ours, func(d decider) float64 { return b.manyRandom(d, users) })
	single := b.alternately(plain, ours, func(d decider) float64 { return b.oneAtATime(d, users) })
	b.rows = append(b.rows,
		row{"3 masters, 10,000 random users a call, 4 callers", many[0], many[1], "users/s", "2.5, aim 4"},
		row{"3 masters, one user a call, 64 callers", single[0], single[1], "users/s", "1, aim 1.5"})
}

// prefer raises the servers' scheduling priority as far as the system allows, so that wall times are the servers'
// own.
func (b *bench) prefer(servers []*redis.Client) {
	for _, server := range servers {
		text, err := server.Info(b.Context(), "server").Result()
		require.NoError(b, err)
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, int(topology.ParseInfo(text).Number("process_id")), -20)
	}
}

// alternately measures both designs in many short turns and returns the medians, so that other load affects both.
func (b *bench) alternately(usual, ours decider, rate func(decider) float64) (medians [2]float64) {
	var rates [2][]float64
	for range 3 * b.rounds {
		for i, d := range []decider{usual, ours} {
			rates[i] = append(rates[i], rate(d))
		}
	}
	for i := range rates {
		slices.Sort(rates[i])
		medians[i] = rates[i][len(rates[i])/2]
	}
	return medians
}

func (b *bench) manyRandom(d decider, users []capping.UserID) float64 {
	return b.concurrently(4, b.scaled(5, 1), 10_000, func(rng *rand.Rand) {
		audience := make([]capping.UserID, 10_000)
		first := rng.IntN(len(users))
		for i := range audience { // a stride that is prime to any population: distinct, in no order
			audience[i] = users[(first+i*7_654_321)%len(users)]
		}
		require.NoError(b, d.Filter(context.Background(), b.batch(fmt.Sprint(rng.Uint64()), audience),
			make([]capping.Verdict, len(audience))))
	})
}

func (b *bench) oneAtATime(d decider, users []capping.UserID) float64 {
	return b.concurrently(64, b.scaled(700, 50), 1, func(rng *rand.Rand) {
		audience := []capping.UserID{users[rng.IntN(len(users))]}
		require.NoError(b, d.Filter(context.Background(), b.batch(fmt.Sprint(rng.Uint64()), audience),
			make([]capping.Verdict, 1)))
	})
}

// concurrently returns the users per second of concurrent callers that make several calls each.
func (b *bench) concurrently(callers, calls, users int, call func(*rand.Rand)) float64 {
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		all.Go(func() {
			for range calls {
				call(rng)
			}
		})
	}
	all.Wait()
	return float64(callers*calls*users) / time.Since(began).Seconds()
}
