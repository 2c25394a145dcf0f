package redisstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestTorture breaks a cluster at random under load, round by round, and has
// the oracle read everything back after each round. CAPPER_TORTURE_MINUTES and
// CAPPER_TORTURE_SEED set its length (0.25) and its course.
func TestTorture(t *testing.T) {
	t.Parallel()
	minutes, seed := 0.25, uint64(time.Now().UnixNano()%1_000_000)
	var err error
	if text := os.Getenv("CAPPER_TORTURE_MINUTES"); text != "" {
		minutes, err = strconv.ParseFloat(text, 64)
		require.NoError(t, err)
	}
	if text := os.Getenv("CAPPER_TORTURE_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	between, late := newProxies(t), newPunctual(t)
	r := &torture{
		field: newField(t, func(c *Config) { c.dial = between.dial }), between: between,
		rng: rand.New(rand.NewPCG(seed, 0)), faults: map[string]int{}, kinds: breakages,
	}
	r.kinds = append(slices.Clone(breakages), wireBreakages(between)...)
	end := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
	for round := 1; round == 1 || time.Now().Before(end); round++ {
		r.round(round)
	}
	t.Logf("torture of %.2g minutes, seed %d\n%s", minutes, seed, r.report())
	require.Zero(t, r.found)
	require.Less(t, r.tally.overdue, late.bound())
}

type torture struct {
	*field
	between *proxies
	rng     *rand.Rand
	kinds   []breakage
	faults  map[string]int
	tally   tally
	found   violations
}

// wireBreakages are done to connections.
func wireBreakages(between *proxies) []breakage {
	cut := func(f *field, after int64) {
		for range 10 {
			between.each(func(x *proxy) { x.cut.Store(after) })
			linger(30 * time.Millisecond)
			between.each(func(x *proxy) { x.cut.Store(cutNever) })
			linger(70 * time.Millisecond)
		}
	}
	wire := []breakage{{"answers delayed", false, func(*field, shard) {
		between.each(func(x *proxy) { x.delay.Store(int64(40 * time.Millisecond)) })
		linger(500 * time.Millisecond)
		between.each(func(x *proxy) { x.delay.Store(0) })
	}}}
	for after, name := range map[int64]string{0: "the first answer", 1: "the second answer", cutAtWait: "the last answer", cutAfterWait: "everything"} {
		wire = append(wire, breakage{"connections cut at " + name, false, func(f *field, _ shard) { cut(f, after) }})
	}
	slices.SortFunc(wire, func(a, b breakage) int { return strings.Compare(a.name, b.name) })
	return wire
}

// round is two faults at once, or one after the other, under load.
func (r *torture) round(n int) {
	r.heal()
	s := newStorm(capping.UserID(n%40+1)*100_000_000, r.deciders()...)
	s.begin(r.rng.Uint64())
	linger(200 * time.Millisecond)
	var faults sync.WaitGroup
	wires := len(r.kinds) - len(breakages)
	first := r.kinds[r.rng.IntN(len(r.kinds))]
	second := r.kinds[len(breakages)+r.rng.IntN(wires)]
	victim := r.shards()[r.rng.IntN(3)]
	if strings.HasPrefix(second.name, "connections") && !strings.HasPrefix(first.name, "connections") && r.rng.IntN(2) == 0 {
		r.faults[second.name]++
		faults.Go(func() { second.inflict(r.field, victim) })
	}
	r.faults[first.name]++
	first.inflict(r.field, victim)
	faults.Wait()
	r.heal()
	s.end()
	s.settle(r)
	found := s.judge(s.logsOf(r, r.stores[0]))
	require.Zero(r, found, "round %d: %s", n, first.name)
	r.found.add(found)
	r.tally.add(s.tally)
	for _, shard := range r.shards() {
		require.NoError(r, r.admins[shard.master].FlushAll(r.Context()).Err())
	}
}

func (v *violations) add(w violations) {
	v.over += w.over
	v.doubled += w.doubled
	v.missing += w.missing
	v.deniedButRecorded += w.deniedButRecorded
}

func (y *tally) add(z tally) {
	y.calls += z.calls
	y.decisions += z.decisions
	y.grants += z.grants
	y.denials += z.denials
	y.unavailable += z.unavailable
	y.slowest = max(y.slowest, z.slowest)
	y.overdue = max(y.overdue, z.overdue)
}

func (r *torture) report() string {
	var b strings.Builder
	total := 0
	var names []string
	for name := range r.faults {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		total += r.faults[name]
		fmt.Fprintf(&b, "%6d  %s\n", r.faults[name], name)
	}
	fmt.Fprintf(&b, "%6d  faults\n%6d  violations (over a limit %d, doubled %d, allowed but missing %d, denied but recorded %d)\n",
		total, r.found.total(), r.found.over, r.found.doubled, r.found.missing, r.found.deniedButRecorded)
	fmt.Fprintf(&b, "        %v", r.tally)
	return b.String()
}
