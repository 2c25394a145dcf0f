//go:build storms

package redisstore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
)

// TestManyGroupsCompared measures a batch whose users are in 256 groups, as segments in several time zones give,
// against batches of 8 groups and of one.
func TestManyGroupsCompared(t *testing.T) {
	b := newBench(t)
	c := testcluster.Single(t, testcluster.Options{Settings: benchSettings})
	b.clock = newClock()
	s := side{server: admin(b, c.Addrs[0]), clock: b.clock}
	s.decider = openTest(b, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: b.clock.now})
	users := everyNth(b.scaled(1_000_000, 20_000), 1)
	b.empty(s)
	b.fill(s.decider, users, own)
	rng := rand.New(rand.NewPCG(1, 2))
	groups := []int{1, 8, 256}
	rounds := make([][]cost, len(groups))
	for range b.rounds {
		for i, n := range groups {
			rounds[i] = append(rounds[i], b.round(s.server, func() int { return b.inGroups(s.decider, rng, users, n) }))
		}
	}
	var medians []cost
	for i, n := range groups {
		medians = append(medians, median(rounds[i]))
		t.Logf("%3d groups: Redis %.3g µs, client %.3g µs a user", n, medians[i].redis, medians[i].client)
	}
	if b.rounds > 1 {
		require.Less(t, medians[2].redis, 1.5*medians[1].redis)
	}
}

// inGroups filters calls of 10,000 random users in the given number of groups.
func (b *bench) inGroups(d decider, rng *rand.Rand, users []capping.UserID, groups int) (decided int) {
	b.clock.advance(apart)
	for range b.scaled(12, 2) {
		for i := range 10_000 {
			j := i + rng.IntN(len(users)-i)
			users[i], users[j] = users[j], users[i]
		}
		batch := b.batch(b.message(), users[:10_000])
		batch.Rules = zoneRules(groups, capping.InstantOf(b.clock.now()))
		for i := range batch.Groups {
			batch.Groups[i] = uint8(rng.IntN(groups))
		}
		require.NoError(b, d.Filter(b.Context(), batch, make([]capping.Verdict, 10_000)))
		decided += 10_000
	}
	return decided
}

// zoneRules returns the rules of segments, each in up to 32 time zones: a rolling day and week that differ by
// segment, and a calendar day that differs by segment and zone.
func zoneRules(groups int, now capping.Instant) (rules [][]capping.Rule) {
	for g := range groups {
		segment, zone := g%8, g/8
		start := now - capping.Instant(time.Duration(zone+1)*30*time.Minute/time.Millisecond)
		rules = append(rules, []capping.Rule{
			rolling(2+segment, 24*time.Hour), rolling(5+segment, 168*time.Hour),
			{Max: 2 + segment, Start: start, Until: start + capping.Instant(24*time.Hour/time.Millisecond)},
		})
	}
	return rules
}
