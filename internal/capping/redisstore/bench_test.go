package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/baseline"
	"capper/internal/testcluster"
)

// TestComparedWithTheUsualDesign measures both designs in one run and prints a
// table. CAPPER_BENCH_FACTOR scales the populations: 1 is what the documents
// show, the default only sees to it that the benchmark works.
func TestComparedWithTheUsualDesign(t *testing.T) {
	factor := 0.005
	if text := os.Getenv("CAPPER_BENCH_FACTOR"); text != "" {
		var err error
		factor, err = strconv.ParseFloat(text, 64)
		require.NoError(t, err)
	}
	b := &bench{T: t, factor: factor, rounds: 3, only: os.Getenv("CAPPER_BENCH_ONLY")}
	if b.wanted("single") {
		b.onSingleServer()
	}
	if b.wanted("cluster") {
		b.onCluster()
	}
	t.Logf("factor %g, medians of %d rounds\n%s", factor, b.rounds, b.table())
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

// row is one line of the table: what, of both sides, and how the sides compare.
type row struct {
	what        string
	usual, ours float64
	unit        string
	least       string // what the ratio has to be
}

func (b *bench) table() string {
	var s strings.Builder
	fmt.Fprintf(&s, "| %-58s | %10s | %10s | %6s | %-14s |\n|---|---|---|---|---|\n", "", "usual", "ours", "ratio", "at least")
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

// scaled is n at factor 1, and not less than least.
func (b *bench) scaled(n, least int) int { return max(least, int(float64(n)*b.factor)) }

// benchSettings turn off what would be measured with the designs.
var benchSettings = []string{"appendonly no", "slowlog-log-slower-than -1", "slowlog-max-len 100000"}

// Sends are 34 hours apart: a week holds five, so that a log stays at five
// entries while every send is allowed, writes, and drops an old one.
const apart = 34 * time.Hour

var benchRules = []capping.Rule{rolling(2, 24*time.Hour), rolling(5, 168*time.Hour)}

func (b *bench) batch(message string, users []capping.UserID) *capping.Batch {
	return batchOf(message, users, benchRules...)
}

func (b *bench) message() string {
	b.seq++
	return fmt.Sprint("bench-", b.seq)
}

// cost is what one decision took.
type cost struct{ redis, client, wall float64 } // µs

// measure runs work for each round and takes medians over the rounds. work
// returns how many users it decided.
func (b *bench) measure(servers []*redis.Client, work func() int) cost {
	var rounds []cost
	for range b.rounds {
		r0, c0, t0 := b.redisCPU(servers), clientCPU(), time.Now()
		n := float64(work())
		wall, client, server := time.Since(t0).Seconds(), clientCPU()-c0, b.redisCPU(servers)-r0
		rounds = append(rounds, cost{server / n * 1e6, client / n * 1e6, wall / n * 1e6})
	}
	median := func(of func(cost) float64) float64 {
		values := make([]float64, len(rounds))
		for i, c := range rounds {
			values[i] = of(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{
		median(func(c cost) float64 { return c.redis }),
		median(func(c cost) float64 { return c.client }),
		median(func(c cost) float64 { return c.wall }),
	}
}

func (b *bench) redisCPU(servers []*redis.Client) (seconds float64) {
	for _, server := range servers {
		text, err := server.Info(b.Context(), "cpu").Result()
		require.NoError(b, err)
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			x, err := strconv.ParseFloat(parseInfo(text)[name], 64)
			require.NoError(b, err)
			seconds += x
		}
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
	return float64(parseInfo(text).number("used_memory"))
}

// pass filters the users in calls of size with one new message and demands
// the outcome of all.
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

// fill gives every user five sends, the usual design's directly.
func (b *bench) fill(d decider, users []capping.UserID) {
	client, usual := d.(usual)
	for range 5 {
		b.clock.advance(apart)
		if !usual {
			b.pass(d, b.message(), users, 65_536, capping.Allowed)
		}
	}
	for start := 0; usual && start < len(users); start += 10_000 {
		pipe := client.redis.Pipeline()
		for _, user := range users[start:min(start+10_000, len(users))] {
			var sends []redis.Z
			for i := range 5 {
				at := b.clock.instant() - capping.Instant(i)*capping.Instant(apart.Milliseconds())
				sends = append(sends, redis.Z{Score: float64(at), Member: fmt.Sprintf("%06d%06d", user%1_000_000, i)})
			}
			pipe.ZAdd(b.Context(), baseline.Key(user), sends...)
			pipe.PExpire(b.Context(), baseline.Key(user), 168*time.Hour)
		}
		_, err := pipe.Exec(b.Context())
		require.NoError(b, err)
	}
}

// usual is the usual design over a server or cluster.
type usual struct {
	*baseline.Client
	redis redis.UniversalClient
}

func (b *bench) usual(r redis.UniversalClient) usual {
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	client, err := baseline.New(b.Context(), r, b.clock.now)
	require.NoError(b, err)
	return usual{client, r}
}

func everyNth(n, nth int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(i * nth)
	}
	return users
}

// sides runs work for both designs on an emptied server, the usual one first.
func sides[T any](b *bench, servers []*redis.Client, usual, ours decider, work func(decider) T) (u, o T) {
	for i, d := range []decider{usual, ours} {
		for _, server := range servers {
			require.NoError(b, server.FlushAll(b.Context()).Err())
		}
		if i == 0 {
			u = work(d)
		} else {
			o = work(d)
		}
	}
	return u, o
}

// workloads are the costs of one side on one server.
type workloads struct {
	blast10k, blast65k, denied, replay, random cost
	sparse, dense                              float64 // memory, bytes per user
}

func (b *bench) onSingleServer() {
	b.clock = newClock()
	c := testcluster.Single(b.T, testcluster.Options{Settings: benchSettings})
	servers := []*redis.Client{admin(b, c.Addrs[0])}
	ours := openTest(b, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: b.clock.now})
	plain := b.usual(redis.NewClient(&redis.Options{Addr: c.Addrs[0], DisableIdentity: true, ReadTimeout: time.Minute}))
	u, o := sides(b, servers, plain, ours, func(d decider) workloads { return b.blasts(d, servers) })
	b.rows = append(b.rows,
		row{"Redis CPU, blast, calls of 10,000", u.blast10k.redis, o.blast10k.redis, "µs", "0.20"},
		row{"Redis CPU, blast, calls of 65,536", u.blast65k.redis, o.blast65k.redis, "µs", "0.20, aim 0.125"},
		row{"Redis CPU, all denied", u.denied.redis, o.denied.redis, "µs", ""},
		row{"Redis CPU, whole batch again", u.replay.redis, o.replay.redis, "µs", ""},
		row{"client CPU, blast, calls of 65,536", u.blast65k.client, o.blast65k.client, "µs", ""},
		row{"memory, 5 sends, one id in 27", u.sparse, o.sparse, "bytes", "0.42, aim 0.33"})
	u, o = sides(b, servers, plain, ours, func(d decider) workloads { return b.randoms(d, servers) })
	b.rows = append(b.rows,
		row{fmt.Sprintf("Redis CPU, 10,000 random users of %d", b.scaled(1_000_000, 20_000)), u.random.redis, o.random.redis, "µs", "0.42, aim 0.25"},
		row{fmt.Sprintf("client CPU, 10,000 random users of %d", b.scaled(1_000_000, 20_000)), u.random.client, o.random.client, "µs", ""},
		row{"memory, 5 sends, every id", u.dense, o.dense, "bytes", "0.30, aim 0.25"})
	require.NoError(b, servers[0].FlushAll(b.Context()).Err())
	typical, longest := b.scriptCalls(ours, servers[0])
	b.rows = append(b.rows,
		row{"script calls, a million users at once, 99 of 100 within", 0, typical, "ms", ""},
		row{"script calls, a million users at once, longest", 0, longest, "ms", "5 at most"})
}

func (b *bench) blasts(d decider, servers []*redis.Client) (w workloads) {
	users := everyNth(b.scaled(400_000, 2000), 27)
	empty := b.memory(servers[0])
	b.fill(d, users)
	w.sparse = (b.memory(servers[0]) - empty) / float64(len(users))
	blast := func(size int) cost {
		return b.measure(servers, func() int {
			b.clock.advance(apart)
			return b.pass(d, b.message(), users, size, capping.Allowed)
		})
	}
	w.blast10k, w.blast65k = blast(10_000), blast(65_536)
	last := fmt.Sprint("bench-", b.seq)
	if _, ok := d.(usual); ok {
		// Without tokens a repeated batch is a new send: here all are at the weekly limit, and it is denied.
		return b.deny(d, servers, users, w)
	}
	w.replay = b.measure(servers, func() int { return b.pass(d, last, users, 65_536, capping.Replayed) })
	return b.deny(d, servers, users, w)
}

func (b *bench) deny(d decider, servers []*redis.Client, users []capping.UserID, w workloads) workloads {
	w.denied = b.measure(servers, func() int { return b.pass(d, b.message(), users, 65_536, capping.Denied) })
	if w.replay == (cost{}) {
		w.replay = w.denied
	}
	return w
}

func (b *bench) randoms(d decider, servers []*redis.Client) (w workloads) {
	users := everyNth(b.scaled(1_000_000, 20_000), 1)
	empty := b.memory(servers[0])
	b.fill(d, users)
	w.dense = (b.memory(servers[0]) - empty) / float64(len(users))
	rng := rand.New(rand.NewPCG(1, 2))
	w.random = b.measure(servers, func() int { return b.random(d, rng, users, b.scaled(20, 2)) })
	return w
}

// random filters so many calls of 10,000 distinct users in no order.
func (b *bench) random(d decider, rng *rand.Rand, users []capping.UserID, calls int) int {
	b.clock.advance(apart)
	for range calls {
		for i := range 10_000 {
			j := i + rng.IntN(len(users)-i)
			users[i], users[j] = users[j], users[i]
		}
		verdicts := make([]capping.Verdict, 10_000)
		require.NoError(b, d.Filter(context.Background(), b.batch(b.message(), users[:10_000]), verdicts))
	}
	return calls * 10_000
}

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
		b.fill(d, users)
	}
	b.clock.advance(apart)
	many := b.alternately(plain, ours, func(d decider) float64 { return b.manyRandom(d, users) })
	single := b.alternately(plain, ours, func(d decider) float64 { return b.oneAtATime(d, users) })
	b.rows = append(b.rows,
		row{"3 masters, 10,000 random users a call, 4 callers", many[0], many[1], "users/s", "2.5, aim 4"},
		row{"3 masters, one user a call, 64 callers", single[0], single[1], "users/s", "1, aim 1.5"})
}

// prefer asks the system to run the servers before other programs, as far as
// it lets us: wall times are to be theirs.
func (b *bench) prefer(servers []*redis.Client) {
	for _, server := range servers {
		text, err := server.Info(b.Context(), "server").Result()
		require.NoError(b, err)
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, int(parseInfo(text).number("process_id")), -20)
	}
}

// alternately measures both sides in turn, five times, and takes medians: what
// else the machine does falls on both.
func (b *bench) alternately(usual, ours decider, rate func(decider) float64) (medians [2]float64) {
	var rates [2][]float64
	for range 5 {
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
	return b.concurrently(4, b.scaled(15, 1), 10_000, func(rng *rand.Rand) {
		audience := make([]capping.UserID, 10_000)
		first := rng.IntN(len(users))
		for i := range audience { // a stride that is prime to any population: distinct, in no order
			audience[i] = users[(first+i*7_654_321)%len(users)]
		}
		require.NoError(b, d.Filter(context.Background(), b.batch(fmt.Sprint(rng.Uint64()), audience), make([]capping.Verdict, len(audience))))
	})
}

func (b *bench) oneAtATime(d decider, users []capping.UserID) float64 {
	return b.concurrently(64, b.scaled(2000, 50), 1, func(rng *rand.Rand) {
		audience := []capping.UserID{users[rng.IntN(len(users))]}
		require.NoError(b, d.Filter(context.Background(), b.batch(fmt.Sprint(rng.Uint64()), audience), make([]capping.Verdict, 1)))
	})
}

// concurrently is the users per second of callers that each call several times.
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

// scriptCalls is within which time 99 of 100 script calls end, and the longest
// one, in milliseconds as SLOWLOG saw them, while a million users are filtered
// at once. It is wall time: a machine that is busy otherwise shows here.
func (b *bench) scriptCalls(d decider, server *redis.Client) (typical, longest float64) {
	users := everyNth(b.scaled(1_000_000, 20_000), 27)
	b.prefer([]*redis.Client{server})
	require.NoError(b, server.ConfigSet(b.Context(), "slowlog-log-slower-than", "0").Err())
	for range 3 {
		b.clock.advance(apart)
		b.pass(d, b.message(), users, len(users), capping.Allowed)
	}
	logs, err := server.SlowLogGet(b.Context(), -1).Result()
	require.NoError(b, err)
	var took []time.Duration
	for _, log := range logs {
		if strings.EqualFold(log.Args[0], "evalsha") {
			took = append(took, log.Duration)
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return ms(took[len(took)*99/100]), ms(took[len(took)-1])
}
