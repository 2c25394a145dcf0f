//go:build storms

package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/baseline"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/pacing"
	"capper/internal/testcluster"
)

// TestPacingComparedWithOthers measures designs of pacing in turns on one server, and prints a table.
// CAPPER_BENCH_FACTOR scales it like the other benchmarks.
func TestPacingComparedWithOthers(t *testing.T) {
	b := &pacingBench{bench: newBench(t)}
	c := testcluster.Single(t, testcluster.Options{Settings: benchSettings})
	b.server = admin(t, c.Addrs[0])
	b.store = openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	shared := baseline.Share(redis.NewClient(&redis.Options{Addr: c.Addrs[0], DisableIdentity: true,
		ReadTimeout: time.Minute}))
	t.Cleanup(func() { require.NoError(t, shared.Close()) })
	var err error
	b.usual, err = baseline.NewPacer(t.Context(), shared)
	require.NoError(t, err)
	b.rate = redis_rate.NewLimiter(shared)
	b.prefer([]*redis.Client{b.server})
	for _, w := range paced {
		for _, callers := range []int{8, 64} {
			b.measure(w, callers)
		}
	}
	usual, ours := b.minute()
	t.Logf("factor %g, medians of %d rounds\n%s\n"+
		"| a minute's permits in memory: sorted set %d bytes, capper %d, %.5f of it |\n"+
		"| longest script call at the bound: %.2f ms |",
		b.factor, b.rounds, b.pacingTable(), usual, ours, float64(ours)/float64(usual), b.bound())
}

type pacingBench struct {
	*bench
	server *redis.Client
	store  *Store
	usual  *baseline.Pacer
	rate   *redis_rate.Limiter
	turn   atomic.Int64 // of pacers, one after the other
	lines  []string
}

// pacedWork describes how callers take permits. There are enough pacers that every design grants nearly all requested
// permits.
type pacedWork struct {
	name   string
	short  string // in the names of pacers
	limit  pacing.Limit
	rate   redis_rate.Limit
	pacers int
	wait   time.Duration // that ours may give slots in; the others only know now
}

var paced = []pacedWork{
	{"600,000 a minute", "m", pacing.Limit{Max: 600_000, Window: time.Minute}, redis_rate.PerMinute(600_000), 1, 0},
	{"100 a second", "s", pacing.Limit{Max: 100, Window: time.Second}, redis_rate.PerSecond(100), 1_000, 0},
	{"250/s, evenly spaced", "r", pacing.Limit{Max: 1, Window: 4 * time.Millisecond},
		redis_rate.Limit{Rate: 250, Burst: 1, Period: time.Second}, 1_000, time.Minute},
}

// pacingSide takes permits of a pacer and returns how many it was granted.
type pacingSide struct {
	name    string
	permits int // of a call
	take    func(w pacedWork, pacer string, permits int) int
}

func (b *pacingBench) sides() []pacingSide {
	return []pacingSide{
		{"sorted set", 1, b.takeUsual},
		{"redis_rate", 1, b.takeRate},
		{"capper", 1, b.takeOurs},
		{"capper, request ids", 1, b.takeOursWithID},
		{"redis_rate", 100, b.takeRate},
		{"capper", 100, b.takeOurs},
		{"capper, request ids", 100, b.takeOursWithID},
	}
}

func (b *pacingBench) takeUsual(w pacedWork, pacer string, _ int) int {
	ok, err := b.usual.Request(context.Background(), pacer, w.limit.Max, w.limit.Window)
	require.NoError(b, err)
	if ok {
		return 1
	}
	return 0
}

func (b *pacingBench) takeRate(w pacedWork, pacer string, permits int) int {
	result, err := b.rate.AllowAtMost(context.Background(), pacer, w.rate, permits)
	require.NoError(b, err)
	return result.Allowed
}

func (b *pacingBench) takeOurs(w pacedWork, pacer string, permits int) int {
	return b.takeAs(w, pacer, permits, pacing.Request{})
}

func (b *pacingBench) takeOursWithID(w pacedWork, pacer string, permits int) int {
	var request pacing.Request
	_, _ = rand.Read(request[:])
	return b.takeAs(w, pacer, permits, request)
}

func (b *pacingBench) takeAs(w pacedWork, pacer string, permits int, request pacing.Request) int {
	grant, err := b.store.TakePermits(context.Background(), &pacing.Ask{
		Targets: []pacing.Target{{Pacer: pacer, Limits: []pacing.Limit{w.limit}}}, Permits: permits, MaxWait: w.wait,
		Request: request,
	})
	require.NoError(b, err)
	return grant.Granted
}

// pacingCost is the Redis time of a permit and of a script call within it, in µs.
type pacingCost struct{ permit, call float64 }

// measure measures the designs in turns and adds the lines of the table.
func (b *pacingBench) measure(w pacedWork, callers int) {
	sides := b.sides()
	rounds := make([][]pacingCost, len(sides))
	for round := -1; round < b.rounds; round++ { // before the first one, there is nothing of a pacer
		for i, side := range sides {
			cost := b.pacingRound(w, side, fmt.Sprintf("p%d-%d-", callers, i), callers)
			if round < 0 {
				continue
			}
			rounds[i] = append(rounds[i], cost)
		}
	}
	usual := medianOf(rounds[0], func(c pacingCost) float64 { return c.permit })
	for i, side := range sides {
		permit := medianOf(rounds[i], func(c pacingCost) float64 { return c.permit })
		call := medianOf(rounds[i], func(c pacingCost) float64 { return c.call })
		b.lines = append(b.lines, fmt.Sprintf("| %-20s | %7d | %7d | %-19s | %10.3f | %8.4f | %8.1f |",
			w.name, callers, side.permits, side.name, permit, permit/usual, call))
	}
}

func medianOf(rounds []pacingCost, of func(pacingCost) float64) float64 {
	values := make([]float64, len(rounds))
	for i, c := range rounds {
		values[i] = of(c)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// pacingRound lets callers take permits of the pacers with the name prefix, one after the other.
func (b *pacingBench) pacingRound(w pacedWork, side pacingSide, prefix string, callers int) pacingCost {
	calls, pacers := b.scaled(20_000, 640), int64(w.pacers)
	if side.permits > 1 {
		calls = b.scaled(1_000, 64) // in five rounds no more than 600,000 permits in a minute
		if pacers > 1 {
			pacers *= 10 // a call may take all that one has
		}
	}
	require.NoError(b, b.server.ConfigResetStat(b.Context()).Err())
	var granted atomic.Int64
	before := redisCPU(b, b.server)
	b.concurrently(callers, calls/callers, 1, func(*mathrand.Rand) {
		pacer := prefix + w.short + strconv.FormatInt(b.turn.Add(1)%pacers, 10)
		granted.Add(int64(side.take(w, pacer, side.permits)))
	})
	used := redisCPU(b, b.server) - before
	return pacingCost{used / float64(granted.Load()) * 1e6, b.scriptTime()}
}

// scriptTime returns the mean server time of the script calls since the last reset of the statistics, in µs.
func (b *pacingBench) scriptTime() float64 {
	text, err := b.server.Info(b.Context(), "commandstats").Result()
	require.NoError(b, err)
	line := topology.ParseInfo(text)["cmdstat_evalsha"]
	_, mean, _ := strings.Cut(line, "usec_per_call=")
	var µs float64
	_, err = fmt.Sscanf(mean, "%g", &µs)
	require.NoError(b, err, line)
	return µs
}

// minute returns the memory in bytes of one minute of permits that were taken one by one.
func (b *pacingBench) minute() (usual, ours int64) {
	permits := b.scaled(600_000, 2000)
	for _, side := range b.sides()[:3] {
		b.concurrently(64, permits/64, 1, func(*mathrand.Rand) { side.take(paced[0], "minute", 1) })
	}
	keys, err := b.server.Keys(b.Context(), "fc:*minute").Result()
	require.NoError(b, err)
	require.Len(b, keys, 1)
	return b.memoryOf(baseline.ProviderKey("minute")), b.memoryOf(keys[0])
}

func (b *pacingBench) memoryOf(key string) int64 {
	size, err := b.server.MemoryUsage(b.Context(), key, 0).Result()
	require.NoError(b, err)
	return size
}

// bound returns the duration of a script call at the bounds: eight pacers with five limits each, logs full of
// irregular runs, and a hundred thousand permits in separate slots.
func (b *pacingBench) bound() (longest float64) {
	ask := func(permits, most int) *pacing.Ask {
		ask := &pacing.Ask{Permits: permits, MaxWait: pacing.MaxWait}
		for t := range pacing.MaxPacers {
			target := pacing.Target{Pacer: fmt.Sprint("bound", t)}
			for l := range pacing.MaxLimits + 1 {
				target.Limits = append(target.Limits, pacing.Limit{Max: most + 100*(t+l), Window: time.Duration(60+t+
					l) * time.Second})
			}
			ask.Targets = append(ask.Targets, target)
		}
		return ask
	}
	for range 2 * pacing.MostRuns {
		_, err := b.store.TakePermits(b.Context(), ask(1, 1_000_000))
		require.NoError(b, err)
	}
	require.NoError(b, b.server.ConfigSet(b.Context(), "slowlog-log-slower-than", "0").Err())
	for range 50 {
		_, err := b.store.TakePermits(b.Context(), ask(pacing.MaxPermits, 3000))
		require.NoError(b, err)
	}
	_, longest = b.slowest(b.server)
	return longest
}

func (b *pacingBench) pacingTable() string {
	return fmt.Sprintf("| %-20s | %7s | %7s | %-19s | %10s | %8s | %8s |\n|---|---|---|---|---|---|---|\n",
		"limit", "callers", "permits", "side", "µs/permit", "ratio", "µs/call") + strings.Join(b.lines, "\n")
}
