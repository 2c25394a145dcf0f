package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
)

// workloads are the costs of one side on one server.
type workloads struct {
	blast10k, blast65k, own10k, denied, replay, random, ownRandom cost

	sparse, dense float64 // memory, bytes per user
}

func (b *bench) onSingleServer() {
	b.clock = newClock()
	c := testcluster.Single(b.T, testcluster.Options{Settings: benchSettings})
	servers := []*redis.Client{admin(b, c.Addrs[0])}
	ours := openTest(b, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: b.clock.now})
	plain := b.usual(redis.NewClient(&redis.Options{Addr: c.Addrs[0], DisableIdentity: true, ReadTimeout: time.Minute}))
	u, o := sides(b, servers, plain, ours, func(d decider) workloads { return b.blasts(d, servers) })
	b.rows = append(b.rows,
		row{"Redis CPU, blast, calls of 10,000", u.blast10k.redis, o.blast10k.redis, "µs", "0.20, aim 0.125"},
		row{"Redis CPU, blast, calls of 65,536", u.blast65k.redis, o.blast65k.redis, "µs", "0.20, aim 0.125"},
		row{"Redis CPU, all denied", u.denied.redis, o.denied.redis, "µs", ""},
		row{"Redis CPU, whole batch again", u.replay.redis, o.replay.redis, "µs", ""},
		row{"client CPU, blast, calls of 65,536", u.blast65k.client, o.blast65k.client, "µs", ""},
		row{"memory, 5 sends, one id in 27", u.sparse, o.sparse, "bytes", "0.42, aim 0.33"})
	v, p := sides(b, servers, plain, ours, func(d decider) workloads { return b.randoms(d, servers) })
	many := fmt.Sprintf("10,000 random users of %d", b.scaled(1_000_000, 20_000))
	b.rows = append(b.rows,
		row{"Redis CPU, " + many, v.random.redis, p.random.redis, "µs", "0.42, aim 0.25"},
		row{"client CPU, " + many, v.random.client, p.random.client, "µs", ""},
		row{"memory, 5 sends, every id", v.dense, p.dense, "bytes", "0.30, aim 0.25"},
		row{"Redis CPU, blast of 10,000, no two pasts alike", u.own10k.redis, o.own10k.redis, "µs", ""},
		row{"Redis CPU, 10,000 random, no two pasts alike", v.ownRandom.redis, p.ownRandom.redis, "µs", ""})
	require.NoError(b, servers[0].FlushAll(b.Context()).Err())
	typical, longest := b.scriptCalls(ours, servers[0])
	b.rows = append(b.rows,
		row{"script calls, a million users at once, 99 of 100 within", 0, typical, "ms", ""},
		row{"script calls, a million users at once, longest", 0, longest, "ms", "5 at most"})
}

func (b *bench) blasts(d decider, servers []*redis.Client) (w workloads) {
	users := everyNth(b.scaled(400_000, 2000), 27)
	blast := func(size int) cost {
		return b.measure(servers, func() int {
			b.clock.advance(apart)
			return b.pass(d, b.message(), users, size, capping.Allowed)
		})
	}
	b.fill(d, users, own)
	w.own10k = blast(10_000)
	w.sparse = b.filled(d, servers[0], users, shared)
	w.blast10k, w.blast65k = blast(10_000), blast(65_536)
	last := fmt.Sprint("bench-", b.seq)
	if _, ok := d.(usual); ok {
		// Without tokens a repeated batch is a new send: here all are at the weekly limit, and it is denied.
		return b.deny(d, servers, users, w)
	}
	w.replay = b.measure(servers, func() int { return b.pass(d, last, users, 65_536, capping.Replayed) })
	return b.deny(d, servers, users, w)
}

// filled fills an emptied server and is the memory that it took, in bytes per
// user.
func (b *bench) filled(d decider, server *redis.Client, users []capping.UserID, p past) float64 {
	require.NoError(b, server.FlushAll(b.Context()).Err())
	empty := b.memory(server)
	b.fill(d, users, p)
	return (b.memory(server) - empty) / float64(len(users))
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
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() cost {
		return b.measure(servers, func() int { return b.random(d, rng, users, b.scaled(20, 2)) })
	}
	b.filled(d, servers[0], users, own)
	w.ownRandom = random()
	slices.Sort(users)
	w.dense = b.filled(d, servers[0], users, shared)
	w.random = random()
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
