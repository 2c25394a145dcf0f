package pacing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// naive is a log of single slots that follows the rule in the package documentation.
type naive struct{ slots []Time }

func (n *naive) next(now Time, limits []Limit) Time {
	at := now
	if len(n.slots) > 0 {
		at = max(at, n.slots[len(n.slots)-1])
	}
	for _, l := range limits {
		if len(n.slots) >= l.Max {
			at = max(at, n.slots[len(n.slots)-l.Max].Add(l.Window))
		}
	}
	return at
}

// naivePlace places permits one by one and returns their slots and the next slot.
func naivePlace(now Time, ask *Ask, logs []*naive) (placed []Time, next Time) {
	for {
		next = now
		for i, target := range ask.Targets {
			next = max(next, logs[i].next(now, target.Limits))
		}
		if len(placed) == ask.Permits || next > now.Add(ask.MaxWait) {
			return placed, next
		}
		for _, log := range logs {
			log.slots = append(log.slots, next)
		}
		placed = append(placed, next)
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
	return slots
}

// placeAll places permits in as many steps as needed, until all are placed or the next slot is too late.
func placeAll(now Time, ask *Ask, logs []*Log) (slots []Time, next Time) {
	for left := *ask; ; left.Permits = ask.Permits - len(slots) {
		placed := Place(now, &left, logs)
		slots = append(slots, placed.slots()...)
		if len(slots) == ask.Permits || placed.Next > now.Add(ask.MaxWait) {
			return slots, placed.Next
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
	for seed := range uint64(3000) {
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
			ask.Permits = r.IntN([]int{2, 10, 3000}[r.IntN(3)])
			ask.MaxWait = time.Duration(r.IntN([]int{1, 1000, 1_000_000}[r.IntN(3)])) * time.Microsecond
			some := r.IntN(len(logs)) // some calls use only some logs
			part := &Ask{Targets: ask.Targets[some:], Permits: ask.Permits, MaxWait: ask.MaxWait}
			want, next := naivePlace(now, part, naives[some:])
			got, placedNext := placeAll(now, part, logs[some:])
			requireSlots(t, want, got, seed)
			require.Equal(t, next, placedNext, "seed %d", seed)
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
		got, gotNext := placeAll(0, ask, []*Log{log})
		want, next := naivePlace(0, ask, []*naive{reference})
		require.Equal(t, next, gotNext)
		require.Equal(t, want, got)
	}
}
