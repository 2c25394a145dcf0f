package pacing

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// naive is a log of single slots that follows the rule in the package documentation.
type naive struct {
	slots []Time
	split Log // tells which slots stand ahead
}

// newest returns the newest slot that does not stand ahead, or 0.
func (n *naive) newest() Time {
	if n.split.Total == 0 {
		return 0
	}
	return n.slots[n.split.Total-1]
}

// allows returns at when every window with one more permit at this slot holds at most Max, and else a later slot.
func (n *naive) allows(at Time, limit Limit) Time {
	i := sort.Search(len(n.slots), func(i int) bool { return n.slots[i] > at })
	for j := max(0, i-limit.Max); j <= i && j+limit.Max <= len(n.slots); j++ {
		switch last := j + limit.Max; {
		case last == i && n.slots[j].Add(limit.Window) > at:
			return n.slots[j].Add(limit.Window)
		case last > i && n.slots[last-1] >= at.Add(limit.Window): // nor do later windows hold both
			return at
		case last > i && j < i && n.slots[j].Add(limit.Window) > n.slots[last-1],
			last > i && j == i && at.Add(limit.Window) > n.slots[last-1]:
			return n.slots[last-1]
		}
	}
	return at
}

// firstOf returns the first slot from the given one on that all logs allow.
func firstOf(from Time, logs []*naive, targets []Target) Time {
	at := from
	for _, log := range logs {
		at = max(at, log.newest())
	}
	for again := true; again; {
		again = false
		for i, log := range logs {
			for _, limit := range targets[i].Limits {
				if next := log.allows(at, limit); next > at {
					at, again = next, true
				}
			}
		}
	}
	return at
}

// planned is the next slot of targets.
type planned struct {
	at, raw Time   // with and without the alignment
	own     []Time // by target: its own next slot, when the permit stands ahead; 0: it does not
}

// planOf returns the next slot of the targets, at from or later.
func planOf(now, from Time, logs []*naive, targets []Target) (p planned) {
	p.raw, p.own = firstOf(from, logs, targets), make([]Time, len(logs))
	p.at = p.raw
	for i := range logs {
		own := firstOf(now, logs[i:i+1], targets[i:i+1])
		if own < p.raw && !slices.ContainsFunc(targets[i].Limits, func(l Limit) bool {
			return l.Max == 1 && own.Add(l.Window) > p.raw
		}) {
			p.own[i] = own
		}
	}
	for i, log := range logs {
		for _, limit := range targets[i].Limits {
			before := sort.Search(len(log.slots), func(k int) bool { return log.slots[k] > p.at })
			if limit.Max > 1 || p.own[i] == 0 || before == 0 {
				continue
			}
			past := p.at.Sub(log.slots[before-1]) % limit.Window
			up := p.at.Add(limit.Window - past)
			if past > 0 && firstOf(up, logs, targets) == up && p.affords(up, logs, targets) {
				p.at = up
				return p
			}
		}
	}
	return p
}

// affords reports whether the targets that the permit waits for can wait for the slot up.
func (p *planned) affords(up Time, logs []*naive, targets []Target) bool {
	for i, log := range logs {
		for _, limit := range targets[i].Limits {
			if p.own[i] > 0 || limit.Window >= 20*up.Sub(p.at) {
				continue
			}
			back := sort.Search(len(log.slots), func(k int) bool { return log.slots[k] > p.at }) - 19
			if limit.Max > 1 || back >= int(log.split.Total) || back >= 0 && up.Sub(log.slots[back]) > 20*limit.Window {
				return false
			}
		}
	}
	return true
}

// put adds a permit to the logs.
func (p *planned) put(logs []*naive) {
	for i, log := range logs {
		at := sort.Search(len(log.slots), func(k int) bool { return log.slots[k] > p.at })
		log.slots = slices.Insert(log.slots, at, p.at)
		if p.own[i] > 0 {
			log.split.Absorb(p.own[i])
			log.split.Stand(p.at, 1)
			continue
		}
		log.split.Absorb(p.at)
		log.split.Append(p.at, 0, 1, 1)
	}
}

// naivePlace places at most most permits one by one and returns their slots and the next slot.
func naivePlace(now Time, ask *Ask, logs []*naive, most int) (placed []Time, next Time) {
	for _, log := range logs {
		log.split.Absorb(now)
	}
	for {
		p := planOf(now, now, logs, ask.Targets)
		next = p.at
		if n := len(placed); n > 0 && p.at < placed[n-1] {
			p = planOf(now, placed[n-1], logs, ask.Targets)
		}
		if len(placed) == most || p.at > now.Add(ask.MaxWait) {
			return placed, next
		}
		p.put(logs)
		placed = append(placed, p.at)
	}
}

// slots returns every slot of the log.
func (l *Log) slots() (slots []Time) {
	for i := range l.Runs {
		r := &l.Runs[i]
		for k := range l.end(i) - r.First {
			slots = append(slots, r.slot(k))
		}
	}
	for i := range l.Ahead {
		for k := range l.Ahead[i].Permits {
			r := l.Ahead[i].run()
			slots = append(slots, r.slot(k))
		}
	}
	slices.Sort(slots)
	return slots
}

// both places permits in as many steps as needed, until all are placed or the next slot is too late, and checks the
// slots and the next slot of each step.
func both(t *testing.T, now Time, ask *Ask, logs []*Log, naives []*naive, seed uint64) {
	t.Helper()
	done := 0
	for left := *ask; ; left.Permits = ask.Permits - done {
		placed := Place(now, &left, logs)
		require.NoError(t, placed.check(), "seed %d", seed)
		most := left.Permits
		if placed.More {
			most = int(placed.Total)
		}
		want, next := naivePlace(now, &left, naives, most)
		requireSlots(t, want, placed.slots(), seed)
		require.Equal(t, next, placed.Next, "seed %d", seed)
		if done += int(placed.Total); done == ask.Permits || placed.Next > now.Add(ask.MaxWait) {
			return
		}
	}
}

// requireSlots compares long lists of slots in one step, which is faster.
func requireSlots(t *testing.T, want, got []Time, seed uint64) {
	t.Helper()
	if !slices.Equal(want, got) {
		require.Equal(t, want, got, "seed %d", seed)
	}
}

func randomLimits(r *rand.Rand) (limits []Limit) {
	for range 1 + r.IntN(3) {
		limits = append(limits, Limit{1 + r.IntN([]int{1, 3, 10, 100, 2000}[r.IntN(5)]),
			time.Duration(1+r.IntN([]int{10, 1000, 100_000}[r.IntN(3)])) * time.Microsecond})
	}
	return limits
}

func TestPlaceIsTheRule(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := Time(1_800_000_000_000_000)
		ask := &Ask{}
		logs, naives := []*Log{}, []*naive{}
		for range 1 + r.IntN(3) {
			ask.Targets = append(ask.Targets, Target{Pacer: "p", Limits: randomLimits(r)})
			logs, naives = append(logs, &Log{}), append(naives, &naive{})
		}
		for range 1 + r.IntN(20) {
			now += Time(r.IntN([]int{3, 100, 20_000, 200_000}[r.IntN(4)]))
			if r.IntN(10) == 0 {
				now -= Time(r.IntN(1000)) // the clock is set back
			}
			if r.IntN(5) == 0 { // a configuration reload
				ask.Targets[r.IntN(len(logs))].Limits = randomLimits(r)
			}
			ask.Permits = r.IntN([]int{2, 10, 1000}[r.IntN(3)])
			ask.MaxWait = time.Duration(r.IntN([]int{1, 1000, 1_000_000}[r.IntN(3)])) * time.Microsecond
			some := r.IntN(len(logs)) // some calls use only some logs
			part := &Ask{Targets: ask.Targets[some:], Permits: ask.Permits, MaxWait: ask.MaxWait}
			both(t, now, part, logs[some:], naives[some:], seed)
			for i, log := range logs {
				require.NoError(t, log.check())
				requireSlots(t, naives[i].slots, log.slots(), seed)
				for j, limit := range ask.Targets[i].Limits {
					from := slices.IndexFunc(naives[i].slots, func(s Time) bool { return s.Add(limit.Window) > now })
					used := 0
					if from >= 0 {
						used = min(limit.Max, len(naives[i].slots)-from)
					}
					require.Equal(t, used, StateOf(now, &ask.Targets[i], log).Used[j], "seed %d", seed)
				}
			}
		}
	}
}

// TestNewestSlotOfCloseSlots checks slots so close that all instants together hold more permits than an integer.
func TestNewestSlotOfCloseSlots(t *testing.T) {
	ahead := Strand{At: TimeOf(time.Now()), Every: 1, Burst: 14, Permits: 17}
	log := Log{Ahead: Ahead{ahead}}
	newest, ok := log.Newest()
	require.True(t, ok)
	require.Equal(t, ahead.At+1, newest)
	require.Equal(t, int64(17), log.Ahead.through(Never-1))
}

// TestRegularGrantsAreFewRuns checks that grants of a regular pacer take few steps for any number of
// permits.
func TestRegularGrantsAreFewRuns(t *testing.T) {
	t.Parallel()
	for _, limits := range [][]Limit{
		{{1, 4 * time.Millisecond}}, {{100, time.Second}}, {{2, 10 * time.Millisecond}},
		{{100, time.Second}, {50_000, 24 * time.Hour}},
		{{7, time.Second}, {1, 10 * time.Millisecond}}, {{3, time.Second}, {1000, time.Minute}},
	} {
		log, reference := &Log{}, &naive{}
		ask := &Ask{Targets: []Target{{Limits: limits}}, Permits: 100_000, MaxWait: MaxWait}
		both(t, 0, ask, []*Log{log}, []*naive{reference}, 0)
	}
}
