//go:build storms

package redisstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/testcluster"
)

// TestSpreadComparedWithDense measures a store of images against a store of dense ids in one run, with every id in use
// and no two users' sends alike. CAPPER_BENCH_FACTOR scales the million users.
func TestSpreadComparedWithDense(t *testing.T) {
	b := newBench(t)
	users := everyNth(b.scaled(1_000_000, 20_000), 1)
	var sides [2]side
	for i, ids := range []IDs{{}, {Kind: "uuid", Check: "1a2b3c4d", Users: len(users)}} {
		c := testcluster.Single(t, testcluster.Options{Settings: benchSettings})
		clock := newClock()
		store := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: clock.now, IDs: ids})
		sides[i] = side{decider: store, server: admin(t, c.Addrs[0]), clock: clock}
		if !ids.isDense() {
			sides[i].decider = ranked{store, slices.Sorted(slices.Values(imagesOf(users)))}
		}
	}
	var memory [2]float64
	for i, s := range sides {
		b.clock = s.clock
		empty := b.memory(s.server)
		b.fillApart(s.decider, users)
		memory[i] = (b.memory(s.server) - empty) / float64(len(users))
	}
	b.rows = append(b.rows, row{"memory, 5 sends", memory[0], memory[1], "bytes", "82 at most"})
	if b.wanted("cpu") {
		b.compareCPU(sides, users)
	}
	t.Logf("factor %g, medians of %d rounds; usual is dense, ours is spread\n%s", b.factor, b.rounds, b.table())
}

func (b *bench) compareCPU(sides [2]side, users []capping.UserID) {
	rng := rand.New(rand.NewPCG(1, 2))
	part := func(nth int) func(d decider) int {
		return func(d decider) int {
			b.clock.advance(apart)
			some := make([]capping.UserID, 0, len(users)/nth+1)
			for i := rng.IntN(nth); i < len(users); i += nth {
				some = append(some, capping.UserID(i))
			}
			return b.pass(d, b.message(), some, 10_000, capping.Allowed)
		}
	}
	again := func(d decider) int {
		return b.pass(d, "replayed", users[:len(users)/4], 10_000, capping.Replayed)
	}
	b.rows = append(b.rows,
		b.compare(sides, part(1)).row("Redis CPU, blast to all", "1.25 at most"),
		b.replays(sides, users, again).row("Redis CPU, replays", "1.25 at most"),
		b.compare(sides, part(27)).row("Redis CPU, one in 27, in order", "1.25 at most"),
		b.compare(sides, part(270)).row("Redis CPU, one in 270, in order", "1.25 at most"),
		b.compare(sides, func(d decider) int {
			b.clock.advance(apart)
			return b.pass(d, b.message(), users[:b.scaled(20_000, 200)], 1, capping.Allowed)
		}).row("Redis CPU, one user a call", "1.25 at most"),
		b.compare(sides, func(d decider) int {
			return b.random(d, rng, slices.Clone(users), b.scaled(12, 2))
		}).row("Redis CPU, 10,000 random", "1.25 at most"))
}

// fillApart sends five messages to every user, each at a time of the user's own within an hour.
func (b *bench) fillApart(d decider, users []capping.UserID) {
	order := slices.Clone(users)
	for range 5 {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		message := b.message()
		const calls = 60
		b.clock.advance(apart - calls*time.Minute)
		for part := range slices.Chunk(order, max(1, (len(order)+calls-1)/calls)) {
			b.clock.advance(time.Minute)
			b.pass(d, message, part, len(part), capping.Allowed)
		}
	}
}

// replays measures calls that find all their sends recorded.
func (b *bench) replays(sides [2]side, users []capping.UserID, again func(d decider) int) costs {
	for _, s := range sides {
		b.clock = s.clock
		b.clock.advance(apart)
		b.pass(s.decider, "replayed", users, 10_000, capping.Allowed)
	}
	return b.compare(sides, again)
}

// ranked is a spread store whose callers use the ranks of images, so that neighbours are neighbours.
type ranked struct {
	*Store
	images []capping.UserID
}

// Filter decides the images with the ranks.
func (r ranked) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	mapped := *b
	mapped.Users = make([]capping.UserID, len(b.Users))
	for i, rank := range b.Users {
		mapped.Users[i] = r.images[rank]
	}
	return r.Store.Filter(ctx, &mapped, verdicts)
}
