//go:build storms

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/baseline"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
)

// TestPermitsComparedWithASortedSet measures the Redis time of a permit: one a call through HTTP, with replicas that
// confirm it, beside the usual sorted set, whose callers ask Redis themselves and wait for no replica. It takes turns
// and prints a table. CAPPER_BENCH_FACTOR scales the calls.
func TestPermitsComparedWithASortedSet(t *testing.T) {
	b := &permitCosts{factor: benchFactor(t), cluster: testcluster.Start(t, testcluster.Options{Replicas: 1,
		Settings: []string{"appendonly yes", "appendfsync everysec"}})}
	dir := t.TempDir()
	publish(t, filepath.Join(dir, "segments"), "new=1-10")
	file := filepath.Join(dir, "capper.yaml")
	config := strings.Replace(embedded(dir, "{default: {daily: 1}}"), fmt.Sprintf("embedded: {path: %s/log.db}", dir),
		fmt.Sprintf("kind: redis, redis: {addrs: [%s]}", strings.Join(b.cluster.Addrs, ",")), 1)
	write(t, file, config+"pacers: {provider: {limits: [{max: 10000000, window: 1m}]}}\n")
	b.addr = strings.TrimPrefix(serve(t, file).url, "http://")
	for _, addr := range b.cluster.Addrs {
		node := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, PoolSize: 64})
		t.Cleanup(func() { require.NoError(t, node.Close()) })
		b.nodes = append(b.nodes, node)
	}
	all := redis.NewClusterClient(&redis.ClusterOptions{Addrs: b.cluster.Addrs, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, all.Close()) })
	var err error
	b.usual, err = baseline.NewPacer(t.Context(), all)
	require.NoError(t, err)
	for _, callers := range []int{8, 64} {
		b.compare(t, callers)
	}
	t.Logf("factor %g\n| callers | side                | µs/permit | ratio |\n|---|---|---|---|\n%s", b.factor,
		strings.Join(b.lines, "\n"))
}

// permitCosts compares what permits cost the masters of a cluster.
type permitCosts struct {
	factor  float64
	cluster *testcluster.Cluster
	nodes   []*redis.Client
	usual   *baseline.Pacer
	addr    string // of the service
	lines   []string
}

// compare adds the lines for so many callers: medians of five turns.
func (b *permitCosts) compare(t *testing.T, callers int) {
	t.Helper()
	calls := max(10, int(20_000*b.factor)/callers)
	sides := []struct {
		name string
		take func()
	}{
		{"sorted set", func() { b.takeUsual(t, callers, calls) }},
		{"capper", func() { b.takeOurs(t, callers, calls, false) }},
		{"capper, request ids", func() { b.takeOurs(t, callers, calls, true) }},
	}
	costs := make([][]float64, len(sides))
	for range 5 {
		for i := range sides {
			before := b.busy(t)
			sides[i].take()
			costs[i] = append(costs[i], busiest(before, b.busy(t))/float64(callers*calls)*1e6)
		}
	}
	for i := range sides {
		slices.Sort(costs[i])
		b.lines = append(b.lines, fmt.Sprintf("| %7d | %-19s | %9.1f | %5.2f |", callers, sides[i].name, costs[i][2],
			costs[i][2]/costs[0][2]))
	}
}

func (b *permitCosts) takeUsual(t *testing.T, callers, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				if _, err := b.usual.Request(t.Context(), "provider", 10_000_000, time.Minute); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func (b *permitCosts) takeOurs(t *testing.T, callers, calls int, ids bool) {
	t.Helper()
	load := permitLoad{addr: b.addr, clients: callers, calls: calls, permits: 1, ids: ids}
	load.run(t)
}

// busy returns the processor time of each node, in seconds.
func (b *permitCosts) busy(t *testing.T) (seconds []float64) {
	t.Helper()
	for _, node := range b.nodes {
		text, err := node.Info(t.Context(), "cpu").Result()
		require.NoError(t, err)
		sum := 0.0
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			x, err := strconv.ParseFloat(topology.ParseInfo(text)[name], 64)
			require.NoError(t, err)
			sum += x
		}
		seconds = append(seconds, sum)
	}
	return seconds
}

// busiest returns the largest difference: the master with the keys of the turn.
func busiest(before, after []float64) (most float64) {
	for i := range before {
		most = max(most, after[i]-before[i])
	}
	return most
}
