//go:build storms

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/baseline"
	"capper/internal/capping/redisstore/topology"
)

// TestComparedWithTheUsualDesign measures both designs in one run and prints a table. CAPPER_BENCH_FACTOR scales the
// populations: the documents show factor 1, and the default only checks that the benchmark works.
func TestComparedWithTheUsualDesign(t *testing.T) {
	b := newBench(t)
	if b.wanted("single") {
		b.onSingleServer()
	}
	if b.wanted("cluster") {
		b.onCluster()
	}
	t.Logf("factor %g, medians of %d rounds\n%s", b.factor, b.rounds, b.table())
}

type bench struct {
	*testing.T
	factor float64
	rounds int
	only   string // "single", "cluster" or "": both
	rows   []row
	clock  *clock
	seq    int
}

// newBench returns a benchmark at CAPPER_BENCH_FACTOR. Without the variable everything runs once, at a small size.
func newBench(t *testing.T) *bench {
	b := &bench{T: t, factor: 0.0005, rounds: 1, only: os.Getenv("CAPPER_BENCH_ONLY")}
	if text := os.Getenv("CAPPER_BENCH_FACTOR"); text != "" {
		var err error
		b.factor, err = strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		b.rounds = 5
	}
	return b
}

// row is one line of the table: a name, the costs of both sides, and their ratio.
type row struct {
	what        string
	usual, ours float64
	unit        string
	least       string // what the ratio has to be
}

func (b *bench) table() string {
	var s strings.Builder
	fmt.Fprintf(&s, "| %-58s | %10s | %10s | %6s | %-14s |\n|---|---|---|---|---|\n", "", "usual", "ours", "ratio",
		"at least")
	for _, r := range b.rows {
		usual, ratio := "–", "–"
		if r.usual > 0 {
			usual, ratio = fmt.Sprintf("%.4g", r.usual), fmt.Sprintf("%.2f", r.ours/r.usual)
		}
		fmt.Fprintf(&s, "| %-58s | %10s | %10.4g | %6s | %-14s |\n", r.what+", "+r.unit, usual, r.ours, ratio, r.least)
	}
	return s.String()
}

func (b *bench) wanted(what string) bool { return b.only == "" || b.only == what }

// scaled returns n times the factor, and at least the given minimum.
func (b *bench) scaled(n, least int) int { return max(least, int(float64(n)*b.factor)) }

// benchSettings turn off server features that would distort the measurement.
var benchSettings = []string{"appendonly no", "slowlog-log-slower-than -1", "slowlog-max-len 100000"}

// apart is the time between two sends. A week holds five sends, so a log stays at five entries: each allowed send
// writes one and drops one.
const apart = 34 * time.Hour

var benchRules = []capping.Rule{rolling(2, 24*time.Hour), rolling(5, 168*time.Hour)}

func (b *bench) batch(message string, users []capping.UserID) *capping.Batch {
	return batchOf(message, users, benchRules...)
}

func (b *bench) message() string {
	b.seq++
	return fmt.Sprint("bench-", b.seq)
}

// cost is the cost of one decision.
type cost struct{ redis, client float64 } // µs of CPU

// round measures one run of work, which returns how many users it decided.
func (b *bench) round(server *redis.Client, work func() int) cost {
	r0, c0 := redisCPU(b, server), clientCPU()
	n := float64(work())
	return cost{(redisCPU(b, server) - r0) / n * 1e6, (clientCPU() - c0) / n * 1e6}
}

// median returns the median of each cost.
func median(rounds []cost) cost {
	of := func(one func(cost) float64) float64 {
		values := make([]float64, len(rounds))
		for i, c := range rounds {
			values[i] = one(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{of(func(c cost) float64 { return c.redis }), of(func(c cost) float64 { return c.client })}
}

// redisCPU returns the CPU seconds that the server has used.
func redisCPU(t testing.TB, server *redis.Client) (seconds float64) {
	t.Helper()
	text, err := server.Info(t.Context(), "cpu").Result()
	require.NoError(t, err)
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		x, err := strconv.ParseFloat(topology.ParseInfo(text)[name], 64)
		require.NoError(t, err)
		seconds += x
	}
	return seconds
}

func clientCPU() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func (b *bench) memory(server *redis.Client) float64 {
	text, err := server.Info(b.Context(), "memory").Result()
	require.NoError(b, err)
	return float64(topology.ParseInfo(text).Number("used_memory"))
}

// pass filters the users in calls of the given size with one new message, and requires the same outcome for all
// users.
func (b *bench) pass(d decider, message string, users []capping.UserID, size int, want capping.Outcome) int {
	verdicts := make([]capping.Verdict, size)
	for start := 0; start < len(users); start += size {
		part := users[start:min(start+size, len(users))]
		clear(verdicts)
		require.NoError(b, d.Filter(context.Background(), b.batch(message, part), verdicts[:len(part)]))
		require.Equal(b, len(part), count(verdicts[:len(part)], want))
	}
	return len(users)
}

// past is the history of users' sends before the measurement.
type past int

const (
	shared past = iota // five blasts to all of them: neighbours have the same log
	own                // five sends at a time of each user's own: no two neighbours have the same log
)

// fill gives every user five sends. It writes those of the usual design directly.
func (b *bench) fill(d decider, users []capping.UserID, p past) {
	if client, ok := d.(usual); ok {
		b.clock.advance(5 * apart)
		b.fillUsual(client, users, p)
		return
	}
	order := slices.Clone(users)
	for range 5 {
		if p == shared {
			b.clock.advance(apart)
			b.pass(d, b.message(), users, 65_536, capping.Allowed)
			continue
		}
		// Within an hour, in calls of few users from all over.
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		const calls = 60
		b.clock.advance(apart - calls*time.Minute)
		for part := range slices.Chunk(order, max(1, (len(order)+calls-1)/calls)) {
			b.clock.advance(time.Minute)
			b.pass(d, b.message(), part, len(part), capping.Allowed)
		}
	}
}

func (b *bench) fillUsual(client usual, users []capping.UserID, p past) {
	for part := range slices.Chunk(users, 10_000) {
		pipe := client.redis.Pipeline()
		for _, user := range part {
			var sends []redis.Z
			for i := range 5 {
				at := b.clock.now().Add(-time.Duration(i) * apart)
				if p == own {
					at = at.Add(-rand.N(time.Hour))
				}
				score := float64(capping.InstantOf(at))
				sends = append(sends, redis.Z{Score: score, Member: fmt.Sprintf("%06d%06d", user%1_000_000, i)})
			}
			pipe.ZAdd(b.Context(), baseline.Key(user), sends...)
			pipe.PExpire(b.Context(), baseline.Key(user), 168*time.Hour)
		}
		_, err := pipe.Exec(b.Context())
		require.NoError(b, err)
	}
}

// usual is the usual design over a server or a cluster.
type usual struct {
	*baseline.Client
	redis redis.UniversalClient
}

func (b *bench) usual(r redis.UniversalClient) usual {
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	client, err := baseline.New(b.Context(), r, b.clock.now, baseline.Source)
	require.NoError(b, err)
	return usual{client, r}
}
