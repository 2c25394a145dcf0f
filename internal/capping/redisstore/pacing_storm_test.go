package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// pacingStorm is load on pacers from clients of all stores. Every other call is a
// request that is repeated until it is answered; of the others, answers are lost.
type pacingStorm struct {
	*pacingtest.Greedy
	ledger pacing.Target
}

// pace begins load on pacers that nobody else has: 100 a second, spaced, and a ledger
// of all that is given. What was given is always ahead of what is due: a store that
// lost a part of it would give what follows for now.
func (f *field) pace(seed uint64) {
	f.Helper()
	p := &pacingStorm{ledger: pacingtest.Ledger()}
	var stores []pacing.Store
	for _, s := range f.stores {
		stores = append(stores, s)
	}
	p.Greedy = pacingtest.NewGreedy(stores,
		pacing.Target{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Second}, {Max: 4000, Window: time.Minute}}},
		pacing.Target{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond}}},
		p.ledger)
	p.Sizes, p.Requests = []int{1, 30, 100}, 50
	p.Patience, p.Rest = 1200*time.Millisecond, 20*time.Millisecond
	f.pacing = p
	p.Begin(4, seed)
}

// settle ends the load, and asks again for what was requested.
func (p *pacingStorm) settle(t testing.TB) {
	t.Helper()
	p.End()
	p.Settle(t)
}

// faults are what must never be.
func (p *pacingStorm) faults(t testing.TB) []string {
	t.Helper()
	return p.Faults(t, p.ledger)
}

// pacersPartition has the logs of all pacers.
func (f *field) pacersPartition() int { return f.stores[0].keyspace.PartitionOf("pacers") }

// victim is a shard of those that there are: with every other number the one with the
// logs of pacers, which are on one alone.
func (f *field) victim(n int) shard {
	f.Helper()
	shards := f.shards()
	if held := func(s shard) bool { return slices.Contains(f.partitions(s.master), f.pacersPartition()) }; n%2 == 0 {
		return shards[slices.IndexFunc(shards, held)]
	}
	return shards[n%3]
}

// A request is taken once, however often its answer is lost and whoever repeats it:
// the ledger has what was granted, to the permit.
func TestPacingRequestsAreTakenOnceWhenAnswersAreCut(t *testing.T) {
	t.Parallel()
	between, shared := newProxies(t), namespace()
	open := func() pacing.Store {
		return openShared(t, func(c *Config) { c.dial, c.Namespace, c.AttemptTimeout = between.dial, shared, 300*time.Millisecond })
	}
	ledger := pacingtest.Ledger()
	g := pacingtest.NewGreedy([]pacing.Store{open(), open()},
		pacing.Target{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Second}}}, ledger)
	g.Requests, g.Patience = 100, 500*time.Millisecond
	defer g.End()
	defer between.each(func(x *proxy) { x.cut.Store(cutNever) })
	g.Begin(8, 1)
	for _, cut := range []int64{0, cutAtWait, cutAfterWait} {
		g.Takes(t, 10_000)
		had := between.cuts()
		between.each(func(x *proxy) { x.cut.Store(cut) })
		testkit.Eventually(t, func() bool { return between.cuts() >= had+30 })
		between.each(func(x *proxy) { x.cut.Store(cutNever) })
	}
	g.Takes(t, 10_000)
	g.End()
	g.Settle(t)
	require.Empty(t, g.Faults(t, ledger))
	require.NotZero(t, g.Tally().Lost)
	t.Log(g)
}
