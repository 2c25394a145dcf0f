//go:build storms

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

// side is one design on its own server. It has its own clock, because its sends must be a fixed time apart whichever
// side runs.
type side struct {
	decider
	server *redis.Client
	clock  *clock
}

func (b *bench) onSingleServer() {
	var sides [2]side
	for i := range sides {
		c := testcluster.Single(b.T, testcluster.Options{Settings: benchSettings})
		b.clock = newClock()
		sides[i] = side{server: admin(b, c.Addrs[0]), clock: b.clock}
		if i == 0 {
			sides[i].decider = b.usual(redis.NewClient(&redis.Options{Addr: c.Addrs[0], DisableIdentity: true,
				ReadTimeout: time.Minute}))
		} else {
			sides[i].decider = openTest(b, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: b.clock.now})
		}
	}
	ownBlast := b.blasts(sides)
	ownRandom := b.randoms(sides)
	b.rows = append(b.rows,
		ownBlast.row("Redis CPU, blast of 10,000, no two pasts alike", ""),
		ownRandom.row("Redis CPU, 10,000 random, no two pasts alike", ""))
	typical, longest := b.scriptCalls(sides[1])
	b.rows = append(b.rows,
		row{"script calls, a million users at once, 99 of 100 within", 0, typical, "ms", ""},
		row{"script calls, a million users at once, longest", 0, longest, "ms", "5 at most"})
}

// costs holds the costs of both sides.
type costs [2]cost

func (c costs) row(what, least string) row { return row{what, c[0].redis, c[1].redis, "µs", least} }

func (c costs) clientRow(what string) row { return row{what, c[0].client, c[1].client, "µs", ""} }

// compare measures both sides in turns, so that other load affects both.
func (b *bench) compare(sides [2]side, work func(d decider) int) (medians costs) {
	var rounds [2][]cost
	for range b.rounds {
		for i, s := range sides {
			b.clock = s.clock
			rounds[i] = append(rounds[i], b.round(s.server, func() int { return work(s.decider) }))
		}
	}
	return costs{median(rounds[0]), median(rounds[1])}
}

// blasts adds the rows of a sorted audience, and returns the costs for users with different histories.
func (b *bench) blasts(sides [2]side) (ownPasts costs) {
	users := everyNth(b.scaled(400_000, 2000), 27)
	blast := func(size int) costs {
		return b.compare(sides, func(d decider) int {
			b.clock.advance(apart)
			return b.pass(d, b.message(), users, size, capping.Allowed)
		})
	}
	b.filled(sides, users, own)
	ownPasts = blast(10_000)
	memory := b.filled(sides, users, shared)
	small, large := blast(10_000), blast(65_536)
	last := fmt.Sprint("bench-", b.seq)
	deny := func(d decider) int { return b.pass(d, b.message(), users, 65_536, capping.Denied) }
	again := b.compare(sides, func(d decider) int {
		if _, ok := d.(usual); ok {
			return deny(d) // without tokens it is a new send; all are at the weekly limit
		}
		return b.pass(d, last, users, 65_536, capping.Replayed)
	})
	b.rows = append(b.rows,
		small.row("Redis CPU, blast, calls of 10,000", "0.20, aim 0.125"),
		large.row("Redis CPU, blast, calls of 65,536", "0.20, aim 0.125"),
		b.compare(sides, deny).row("Redis CPU, all denied", ""),
		again.row("Redis CPU, whole batch again", ""),
		large.clientRow("client CPU, blast, calls of 65,536"),
		row{"memory, 5 sends, one id in 27", memory[0], memory[1], "bytes", "0.42, aim 0.33"})
	return ownPasts
}

// filled fills emptied servers, and returns their memory in bytes per user.
func (b *bench) filled(sides [2]side, users []capping.UserID, p past) (bytes [2]float64) {
	for i, s := range sides {
		b.clock = s.clock
		b.empty(s)
		empty := b.memory(s.server)
		b.fill(s.decider, users, p)
		bytes[i] = (b.memory(s.server) - empty) / float64(len(users))
	}
	return bytes
}

// randoms adds the rows of an audience in random order.
func (b *bench) randoms(sides [2]side) (ownPasts costs) {
	users := everyNth(b.scaled(1_000_000, 20_000), 1)
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() costs {
		return b.compare(sides, func(d decider) int { return b.random(d, rng, users, b.scaled(12, 2)) })
	}
	b.filled(sides, users, own)
	ownPasts = random()
	slices.Sort(users)
	memory := b.filled(sides, users, shared)
	many, measured := fmt.Sprintf("10,000 random users of %d", len(users)), random()
	b.rows = append(b.rows,
		measured.row("Redis CPU, "+many, "0.42, aim 0.25"), measured.clientRow("client CPU, "+many),
		row{"memory, 5 sends, every id", memory[0], memory[1], "bytes", "0.30, aim 0.25"})
	return ownPasts
}

// random filters calls of 10,000 distinct users in random order.
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

func (b *bench) empty(s side) {
	require.NoError(b, s.server.FlushAll(b.Context()).Err())
	if store, ok := s.decider.(*Store); ok {
		beginAnew(b, store)
	}
}

// scriptCalls returns the 99th percentile and the maximum of script call times in ms, from SLOWLOG, while a million
// users are filtered at once. The times are wall times, so a busy machine raises them.
func (b *bench) scriptCalls(s side) (typical, longest float64) {
	b.clock = s.clock
	server := s.server
	b.empty(s)
	users := everyNth(b.scaled(1_000_000, 20_000), 27)
	b.prefer([]*redis.Client{server})
	require.NoError(b, server.ConfigSet(b.Context(), "slowlog-log-slower-than", "0").Err())
	for range 3 {
		b.clock.advance(apart)
		b.pass(s.decider, b.message(), users, len(users), capping.Allowed)
	}
	return b.slowest(server)
}

// slowest returns the same two figures from the entries in SLOWLOG.
func (b *bench) slowest(server *redis.Client) (typical, longest float64) {
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
