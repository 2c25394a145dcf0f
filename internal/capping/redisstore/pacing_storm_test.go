//go:build storms

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

// pacingStorm is load on pacers from clients of all stores. Every second call is a request that is retried until it
// is answered; replies of other calls get lost. The granted slots are always ahead of the clock, so a store that lost
// a part of them would grant slots of now.
type pacingStorm struct{ loads []pacingLoad }

// pacingLoad is load on its own pacers, with a ledger of all grants.
type pacingLoad struct {
	*pacingtest.Greedy
	ledger pacing.Target
}

// pace starts load on pacers from 8 clients: 100 evenly spaced permits a second, and irregular permits that fill
// logs again and again.
func (f *field) pace(seed uint64) {
	f.Helper()
	regular := f.pacingLoad(
		pacing.Target{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Second},
			{Max: 4000, Window: time.Minute}}},
		pacing.Target{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond}}},
	)
	one, asks := pacingtest.Irregular(pacingtest.Name(), 40)
	one.Group = "irregular" // in another slot
	for _, ask := range asks {
		for i := range ask.Targets {
			ask.Targets[i].Group = one.Group
		}
	}
	irregular := f.pacingLoad(one, pacing.Target{Pacer: pacingtest.Name(), Group: one.Group,
		Limits: []pacing.Limit{{Max: 8000, Window: 102 * time.Second}}})
	filling := &pacing.Ask{Targets: irregular.Targets, Permits: pacing.MaxPermits, MaxWait: pacing.MaxWait}
	for range 2 * pacing.MostRuns / pacing.MostSteps {
		asks = append(asks, filling)
	}
	for _, ask := range asks {
		grant, err := f.stores[0].TakePermits(f.Context(), ask)
		require.NoError(f, err)
		irregular.Oracle.Add(ask, &grant)
	}
	irregular.Sizes, irregular.Waits = []int{1, 400}, []time.Duration{pacing.MaxWait}
	f.pacing = &pacingStorm{[]pacingLoad{regular, irregular}}
	regular.Begin(6, seed)
	irregular.Begin(2, seed)
}

func (f *field) pacingLoad(targets ...pacing.Target) pacingLoad {
	ledger := pacingtest.Ledger()
	ledger.Group = targets[0].Group
	var stores []pacing.Store
	for _, s := range f.stores {
		stores = append(stores, s)
	}
	g := pacingtest.NewGreedy(stores, append(targets, ledger)...)
	g.Sizes, g.Requests = []int{1, 30, 100}, 50
	g.Patience, g.Rest = 1200*time.Millisecond, 100*time.Millisecond
	return pacingLoad{g, ledger}
}

// end stops the load, and waits until requests are answered.
func (p *pacingStorm) end() {
	for _, load := range p.loads {
		load.End()
	}
}

// settle ends the load, and repeats the requests.
func (p *pacingStorm) settle(t testing.TB) {
	t.Helper()
	p.end()
	for _, load := range p.loads {
		load.Settle(t)
	}
}

// faults returns all broken promises.
func (p *pacingStorm) faults(t testing.TB) (faults []string) {
	t.Helper()
	for _, load := range p.loads {
		faults = append(faults, load.Faults(t, load.ledger)...)
	}
	return faults
}

func (p *pacingStorm) tally() (y pacingtest.Tally) {
	for _, load := range p.loads {
		y.Add(load.Tally())
	}
	return y
}

func (p *pacingStorm) String() string {
	y := p.tally()
	return y.String()
}

// pacersPartition returns the partition with the logs of all pacers.
func (f *field) pacersPartition() int { return f.stores[0].keyspace.PartitionOf("pacers") }

// victim returns a shard. Every second number gives the shard with the logs of pacers, because only one shard has
// them.
func (f *field) victim(n int) shard {
	f.Helper()
	shards := f.shards()
	if held := func(s shard) bool { return slices.Contains(f.partitions(s.master), f.pacersPartition()) }; n%2 == 0 {
		return shards[slices.IndexFunc(shards, held)]
	}
	return shards[n%3]
}

// A request is taken once, however often its reply is lost and whoever retries it. The ledger contains exactly the
// granted permits.
func TestPacingRequestsAreTakenOnceWhenAnswersAreCut(t *testing.T) {
	t.Parallel()
	between, shared := newProxies(t), namespace()
	open := func() pacing.Store {
		return openShared(t, func(c *Config) {
			c.dial, c.Namespace, c.AttemptTimeout = between.dial, shared,
				300*time.Millisecond
		})
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
