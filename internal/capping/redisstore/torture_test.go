//go:build storms

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/live/livetest"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// TestTorture breaks a cluster at random under load, and the oracle reads everything after each round.
// CAPPER_TORTURE_MINUTES (0.25) sets its length, CAPPER_TORTURE_SEED its course, and CAPPER_TORTURE_IDS (dense) the
// kind of its users' ids.
func TestTorture(t *testing.T) {
	t.Parallel()
	rng, rounds := testkit.Torture(t, 0.25)
	between := newProxies(t)
	r := &torture{
		field: newField(t, func(c *Config) { c.dial = between.dial }), between: between,
		rng: rng, faults: testkit.Faults{}, wires: wireBreakages(between), tick: 20 * time.Millisecond,
	}
	if !testkit.TortureAlone() { // a full load would take the processors from the other tests for minutes
		r.tick = 150 * time.Millisecond
	}
	r.kinds = slices.Concat(breakages, r.wires, losingShards, documentedShards)
	t.Cleanup(func() { t.Log(r.report()) }) // a failing round ends the test
	for round := range rounds {
		r.round(round)
	}
	require.Less(t, r.tally.overdue, testkit.Patience, "a call that hangs")
}

type torture struct {
	*field
	between *proxies
	rng     *rand.Rand
	kinds   []breakage
	wires   []breakage    // those of kinds that are done to connections
	tick    time.Duration // of each caller of a storm
	latest  string        // round and its faults
	faults  testkit.Faults
	tally   tally
	found   violations
	paced   pacingtest.Tally
	shared  pacingtest.Tally // of callers of shares and keys
	lists   livetest.Tally
	imports int
	storms  int
}

// wireBreakages returns the faults of connections.
func wireBreakages(between *proxies) []breakage {
	cut := func(f *field, after int64) {
		for range 10 {
			had := between.cuts()
			between.each(func(x *proxy) { x.cut.Store(after) })
			f.until("connections are cut", func() bool { return between.cuts() >= had+3 })
			between.each(func(x *proxy) { x.cut.Store(cutNever) })
			f.storming.answered(f, 4)
		}
	}
	wire := []breakage{{"answers delayed", nobody, func(f *field, _ shard) {
		between.each(func(x *proxy) { x.delay.Store(int64(40 * time.Millisecond)) })
		f.storming.answered(f, 10)
		between.each(func(x *proxy) { x.delay.Store(0) })
	}}}
	for after, name := range map[int64]string{0: "the first answer", 1: "the second answer",
		cutAtWait: "the last answer", cutAfterWait: "everything"} {
		wire = append(wire, breakage{"connections cut at " + name, nobody, func(f *field, _ shard) { cut(f, after) }})
	}
	slices.SortFunc(wire, func(a, b breakage) int { return strings.Compare(a.name, b.name) })
	return wire
}

// round runs a storm with the drawn faults. It repeats the storm when users were undecided without a fault.
func (r *torture) round(n int) {
	drawn, shard := r.draw(), r.rng.IntN(6)
	r.note(n, drawn)
	testkit.Steadily(r, mostTries, func() bool {
		spoilt, last := r.storm(drawn, shard)
		if spoilt > 0 {
			r.Log(last)
		}
		return spoilt == 0
	}, r.latest+": users that no fault touched became unavailable")
}

// storm runs one storm, and returns how many users were undecided without a fault, and why.
func (r *torture) storm(drawn []breakage, shard int) (spoilt int, last error) {
	r.heal()
	r.storms++
	victim := r.victim(shard)
	s := newStorm(capping.UserID(r.storms%40+1)*100_000_000, r.deciders()...)
	s.spared, s.torn = r.spared(drawn, victim), slices.ContainsFunc(drawn, tears)
	s.tick = r.tick
	s.imported, r.storming = true, s
	s.begin(r.rng.Uint64())
	imports := r.beginImports(r.rng.Uint64())
	r.pace(r.rng.Uint64())
	shares := r.share(r.rng.Uint64())
	sets := r.changeSets(s)
	defer func() {
		s.end()
		imports.running.Wait()
		r.imports += len(imports.calls)
		r.pacing.end()
		shares.End()
		sets.end()
		r.tally.add(s.tally)
		r.shared.Add(shares.Tally())
		r.paced.Add(r.pacing.tally())
	}()
	s.answered(r, 20)
	r.inflict(drawn, victim)
	r.heal()
	s.end()
	imports.settle(r)
	s.settle(r)
	imports.tellStorm()
	if s.kept == nil { // imported sends and permits vanish with logs
		require.Empty(r, imports.faults(r, r.stores[0]), r.latest)
	}
	sets.verify(r, s.kept != nil)
	found := s.verify(r, r.stores[0])
	r.found.add(found)
	require.Zero(r, found, r.latest)
	r.pacing.settle(r)
	shares.End()
	shares.Settle(r)
	if s.kept == nil {
		require.Empty(r, r.pacing.faults(r), r.latest)
		require.Empty(r, shares.Faults(r), r.latest)
	}
	for _, shard := range r.shards() {
		require.NoError(r, r.admins[shard.master].FlushAll(r.Context()).Err())
	}
	beginAnew(r, r.stores...)
	return s.tally.spoilt, s.tally.lastError
}

// share begins calls for permits of shares and keys beside a storm.
func (r *torture) share(seed uint64) *pacingtest.Callers {
	var stores []pacing.Store
	for _, s := range r.stores {
		stores = append(stores, s)
	}
	c := pacingtest.NewCallers(pacingtest.CallersPolicy(), pacingtest.NewOracle(), stores...)
	c.Patience, c.Rest = 1200*time.Millisecond, 3*r.tick
	c.Begin(6, seed)
	return c
}

// setLoad is load of callers who change a set and decide, at every store of a torture.
type setLoad struct {
	*livetest.Storm
	instances []livetest.Instance
	stopped   sync.Once
}

// lister is a store with a capper.
type lister struct {
	*Store
	capper *capping.Capper
}

// Decide decides with the capper.
func (l lister) Decide(ctx context.Context, message string, record bool, users []capping.UserID) []capping.Verdict {
	return livetest.Decide(ctx, l.capper, message, record, users)
}

// changeSets begins to change a set beside a storm.
func (r *torture) changeSets(s *storm) *setLoad {
	l := &setLoad{Storm: &livetest.Storm{Patience: s.patience, Rest: s.tick, Lagging: true}}
	for i := range capping.UserID(2000) {
		// The stores remember the changes of earlier storms.
		l.Users = append(l.Users, person(3_900_000_000+capping.UserID(r.storms)*100_000+i*37))
	}
	slices.Sort(l.Users)
	for _, store := range r.stores {
		l.instances = append(l.instances, lister{store, livetest.NewCapper(store, 24*time.Hour, time.Now)})
	}
	l.Begin(2, r.rng.Uint64(), l.instances...)
	return l
}

func (l *setLoad) end() { l.stopped.Do(l.End) }

// verify checks that no decision of any instance lacked an acknowledged change. A lossy storm is not checked, because
// an operator accepted the loss of a server.
func (l *setLoad) verify(r *torture, lossy bool) {
	l.end()
	if lossy {
		return
	}
	r.until("changes to sets are stored", func() bool { return l.Settle(l.instances[0]) == 0 })
	for _, at := range l.instances {
		r.until("users of sets are decided", func() bool { return l.Verify(at) == 0 })
	}
	tally := l.Tally()
	r.lists.Add(tally)
	require.Zero(r, tally.Violations(), "%s: %v", r.latest, &tally)
}

// draw returns a random fault of any kind; cut connections may be added.
func (r *torture) draw() []breakage {
	first, second := r.kinds[r.rng.IntN(len(r.kinds))], r.wires[r.rng.IntN(len(r.wires))]
	if cuts(second) && !cuts(first) && r.rng.IntN(2) == 0 {
		return []breakage{first, second}
	}
	return []breakage{first}
}

func cuts(b breakage) bool { return strings.HasPrefix(b.name, "connections") }

// note counts the faults before they begin, because one of them may end the test.
func (r *torture) note(n int, drawn []breakage) {
	r.latest = fmt.Sprintf("round %d", n)
	for _, b := range drawn {
		r.faults[b.name]++
		r.latest += ", " + b.name
	}
}

// spared returns the users whom all of the faults leave untouched.
func (r *torture) spared(drawn []breakage, victim shard) spared {
	var each []spared
	for _, b := range drawn {
		each = append(each, b.spares(r.field, victim))
	}
	return func(d decider, user capping.UserID) bool {
		return !slices.ContainsFunc(each, func(spares spared) bool { return !spares(d, user) })
	}
}

func (r *torture) inflict(drawn []breakage, victim shard) {
	var beside sync.WaitGroup
	defer beside.Wait()
	for _, b := range drawn[1:] {
		beside.Go(func() { b.inflict(r.field, victim) })
	}
	drawn[0].inflict(r.field, victim)
}

func (v *violations) add(w violations) {
	v.over += w.over
	v.doubled += w.doubled
	v.missing += w.missing
	v.deniedButRecorded += w.deniedButRecorded
	v.misjudged += w.misjudged
	v.miscounted += w.miscounted
}

func (y *tally) add(z tally) {
	y.calls += z.calls
	y.decisions += z.decisions
	y.grants += z.grants
	y.denials += z.denials
	y.unavailable += z.unavailable
	y.spoilt += z.spoilt
	y.slowest = max(y.slowest, z.slowest)
	y.overdue = max(y.overdue, z.overdue)
}

func (r *torture) report() string {
	var b strings.Builder
	b.WriteString(r.faults.String())
	fmt.Fprintf(&b, "%6d  violations (over a limit %d, doubled %d, allowed but missing %d, denied but recorded %d, "+
		"misjudged by a shadow limit %d, miscounted %d)\n",
		r.found.total(), r.found.over, r.found.doubled, r.found.missing, r.found.deniedButRecorded, r.found.misjudged,
		r.found.miscounted)
	fmt.Fprintf(&b, "%6d  unavailable though no fault touched them\n        %v, %d imports\n        %v\n"+
		"        shares and keys: %v\n        %v",
		r.tally.spoilt, r.tally, r.imports, &r.paced, &r.shared, &r.lists)
	if r.Failed() {
		fmt.Fprintf(&b, "\n        it ended in %s\n%s", r.latest, r.views())
	}
	return b.String()
}

// views returns each node's view of the cluster, for faults that an error reply does not explain.
func (r *torture) views() string {
	var b strings.Builder
	for _, addr := range r.cluster.Addrs {
		text, err := r.admins[addr].ClusterNodes(background(r, time.Second)).Result()
		fmt.Fprintf(&b, "%s (error: %v)\n%s", addr, err, text)
	}
	return b.String()
}
