package pacing

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// caller is a group of workers. Each worker calls for permits, waits for their slots and calls again.
type caller struct {
	pacers  []int // indexes into the pacers of the mix
	workers int
	permits int
	wait    time.Duration
	pause   time.Duration // a worker calls after a random pause of up to twice this time
}

// mix is a set of pacers with their callers.
type mix struct {
	pacers  []Pacer
	callers []caller
}

// simulation runs a mix on a clock of its own.
type simulation struct {
	mix
	logs    []*Log
	slots   [][]Time // by pacer, from the grants
	waits   [][]Time // by caller
	wakes   wakes
	rng     *rand.Rand
	strands int // the largest number of strands
}

// wake is the next call of a worker.
type wake struct {
	at     Time
	order  uint64 // decides between calls at the same time
	caller int
}

type wakes []wake

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, j int) bool {
	return w[i].at < w[j].at || w[i].at == w[j].at && w[i].order < w[j].order
}
func (w wakes) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)   { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// call makes the worker's call and notes its next one.
func (s *simulation) call(w wake) {
	c := &s.callers[w.caller]
	ask, logs := &Ask{Permits: c.permits, MaxWait: c.wait}, []*Log{}
	for _, i := range c.pacers {
		ask.Targets = append(ask.Targets, Target{Pacer: s.pacers[i].Name, Limits: s.pacers[i].Judged()})
		logs = append(logs, s.logs[i])
		s.strands = max(s.strands, len(s.logs[i].Ahead))
	}
	placed := Place(w.at, ask, logs)
	got := placed.slots()
	for _, i := range c.pacers {
		s.slots[i] = append(s.slots[i], got...)
	}
	again := w.at + 1
	switch {
	case len(got) == 0:
		again = max(again, placed.Next.Add(-c.wait))
	case c.permits == 1:
		again = max(again, got[0])
		s.waits[w.caller] = append(s.waits[w.caller], got[0]-w.at)
	default: // go on when half of the wait is left
		again = max(again, got[len(got)-1].Add(-c.wait/2))
	}
	if c.pause > 0 {
		again = again.Add(time.Duration(s.rng.Int64N(2 * int64(c.pause))))
	}
	heap.Push(&s.wakes, wake{again, s.rng.Uint64(), w.caller})
}

// simulate runs the mix for 13 seconds and returns, for the last ten, the share of its rate that each pacer gave
// out. A window over its limit fails the test.
func simulate(t *testing.T, m mix, seed uint64) (shares []float64, s *simulation) {
	t.Helper()
	s = &simulation{mix: m, rng: rand.New(rand.NewPCG(seed, 1)), waits: make([][]Time, len(m.callers))}
	for range m.pacers {
		s.logs, s.slots = append(s.logs, &Log{}), append(s.slots, nil)
	}
	const start = Time(1_800_000_000_000_000)
	for i, c := range m.callers {
		for range c.workers {
			heap.Push(&s.wakes, wake{start + Time(s.rng.IntN(10_000)), s.rng.Uint64(), i})
		}
	}
	from, to := start+3_000_000, start+13_000_000
	for s.wakes[0].at < to {
		s.call(heap.Pop(&s.wakes).(wake))
	}
	for i := range m.pacers {
		slots, fastest := s.slots[i], 1e18
		slices.Sort(slots)
		for _, limit := range m.pacers[i].Judged() {
			for k := limit.Max; k < len(slots); k++ {
				if between := slots[k].Sub(slots[k-limit.Max]); between < limit.Window { // very many
					require.GreaterOrEqual(t, between, limit.Window, "pacer %d", i)
				}
			}
			fastest = min(fastest, float64(limit.Max)*float64(to.Sub(from))/float64(limit.Window))
		}
		slots = slices.DeleteFunc(slots, func(at Time) bool { return at < from || at >= to })
		shares = append(shares, float64(len(slots))/fastest)
	}
	return shares, s
}

// rated returns a pacer of a rate a second.
func rated(permits int) Pacer {
	return Pacer{Name: fmt.Sprint("rate", permits), Rate: Rate{permits, time.Second}}
}

// fits reports whether a rate fits into a faster one so that both can give out 95 %: the package documentation
// has the rule.
func fits(fast, slow int) bool {
	s := float64(rated(slow).Rate.Interval()) / float64(rated(fast).Rate.Interval())
	f := s - float64(int(s))
	return s >= 19*f*(1-f)
}

// TestASharedPacerGivesOutItsRate runs greedy callers of a slow and a fast pacer together beside greedy callers of
// the fast one alone.
func TestASharedPacerGivesOutItsRate(t *testing.T) {
	t.Parallel()
	for _, slow := range []int{1, 3, 7, 10, 14, 20, 25, 33, 45, 48, 50, 60, 62, 70, 80, 83, 90, 100, 120, 125} {
		for _, wait := range []time.Duration{time.Second, 30 * time.Second, MaxWait} {
			m := mix{[]Pacer{rated(250), rated(slow)},
				[]caller{{[]int{0}, 32, 1, wait, 0}, {[]int{0, 1}, 32, 1, wait, 0}}}
			shares, s := simulate(t, m, uint64(slow))
			t.Logf("%d/s within 250/s, wait %v: %.3f, fits %t, %d strands", slow, wait, shares, fits(250, slow),
				s.strands)
			if fits(250, slow) {
				require.GreaterOrEqual(t, shares[0], 0.949, "%d/s within 250/s", slow)
				require.GreaterOrEqual(t, shares[1], 0.949, "%d/s within 250/s", slow)
			}
			require.LessOrEqual(t, s.strands, MostAhead/2)
		}
	}
}

// TestMixesOfPacers runs random mixes of one to three pacers a call.
func TestMixesOfPacers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := mix{pacers: []Pacer{rated(250)}}
		m.callers = append(m.callers, caller{[]int{0}, 5 + r.IntN(30), 1, time.Minute, 0})
		together := r.Perm(4)[:1+r.IntN(3)] // each slow pacer is alone with the shared one, or with the one before
		for i := range together {
			m.pacers = append(m.pacers, []Pacer{rated(5), rated(10), rated(25), rated(50)}[together[i]])
			pacers := []int{0, i + 1}
			if i > 0 && r.IntN(3) == 0 {
				pacers = append(pacers, i)
			}
			r.Shuffle(len(pacers), func(a, b int) { pacers[a], pacers[b] = pacers[b], pacers[a] })
			m.callers = append(m.callers, caller{pacers, 30 + r.IntN(30), 1, time.Minute, 0})
		}
		shares, _ := simulate(t, m, seed)
		require.GreaterOrEqual(t, shares[0], 0.95, "seed %d: %+v", seed, m)
		for i := range together {
			if !slices.ContainsFunc(m.callers[1:], func(c caller) bool { return len(c.pacers) > 2 }) {
				require.GreaterOrEqual(t, shares[i+1], 0.95, "seed %d: %+v", seed, m)
			}
		}
	}
}

// TestWindowsLeaveRoom runs a pacer per message with a window beside the shared pacer.
func TestWindowsLeaveRoom(t *testing.T) {
	t.Parallel()
	message := Pacer{Name: "message", Limits: []Limit{{50, time.Second}}}
	for _, shared := range []Pacer{rated(250), {Name: "shared", Limits: []Limit{{250, time.Second}}}} {
		m := mix{[]Pacer{shared, message, message}, []caller{{[]int{0}, 32, 1, time.Minute, 0},
			{[]int{0, 1}, 60, 1, time.Minute, 0}, {[]int{2, 0}, 60, 1, time.Minute, 0}}}
		shares, _ := simulate(t, m, 1)
		t.Logf("%s: %.3f", shared.Name, shares)
		require.GreaterOrEqual(t, shares[0], 0.95)
	}
}

// TestOneAloneHardlyWaits calls for the shared pacer at random instants beside a campaign that takes a fifth of it.
// A call that comes within an interval of a slot waits for less than one interval, and for less than two more when
// the room before a slot of the campaign is too small.
func TestOneAloneHardlyWaits(t *testing.T) {
	t.Parallel()
	for _, pacers := range [][]Pacer{{rated(250), rated(50)}, {rated(14), rated(3)}} {
		interval := Time(pacers[0].Rate.Interval().Microseconds())
		m := mix{pacers, []caller{{[]int{0, 1}, 32, 1, time.Minute, 0}, {[]int{0}, 1, 1, time.Minute, 0}}}
		m.callers[1].pause = pacers[0].Rate.Interval() * 5
		_, s := simulate(t, m, 1)
		require.NotEmpty(t, s.waits[1])
		require.Less(t, slices.Max(s.waits[1]), 3*interval)
		slices.Sort(s.waits[1])
		require.LessOrEqual(t, s.waits[1][len(s.waits[1])/2], interval)
	}
}
