package pacing

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slotOf returns the slot of a permit in the log.
func (l *Log) slotOf(permit int64) Time {
	r := &l.Runs[l.holder(permit)]
	return r.slot(permit - r.First)
}

func (l *Log) clone() *Log {
	c := *l
	c.Runs = append([]Run(nil), l.Runs...)
	return &c
}

// probes returns permits whose slots show the shape of the log: those around the ends of runs, and some
// random ones.
func (l *Log) probes(r *rand.Rand) (permits []int64) {
	for i := range l.Runs {
		first, end := l.Runs[i].First, l.end(i)
		for _, p := range []int64{first, first + 1, end - 2, end - 1, first + r.Int64N(end-first), first +
			r.Int64N(end-first)} {
			if p >= first && p < end {
				permits = append(permits, p)
			}
		}
	}
	return permits
}

// irregular appends the given number of random runs and returns the newest slot.
func (l *Log) irregular(r *rand.Rand, runs int, now Time) Time {
	for n := len(l.Runs) + runs; len(l.Runs) < n; {
		now += Time(r.Int64N([]int64{1, 2, 50, 10_000, 5_000_000}[r.IntN(5)] + 1))
		permits := 1 + r.Int64N([]int64{1, 3, 100, 20_000}[r.IntN(4)])
		if r.IntN(4) > 0 {
			l.Append(now, 0, permits, permits)
			continue
		}
		every, burst := 1+r.Int64N(10_000), 1+r.Int64N(permits)
		l.Append(now, every, burst, permits)
		now, _ = l.Newest()
	}
	return now
}

// manyLimits returns 1 to 4 random limits of any magnitude.
func manyLimits(r *rand.Rand) (limits []Limit) {
	for range 1 + r.IntN(MaxLimits) {
		top := []int64{3, 100, 3000, 50_000, 600_000, MaxMax}[r.IntN(6)]
		limits = append(limits, Limit{1 + int(r.Int64N(top)), time.Duration(1+r.Int64N(1e9)) * time.Microsecond})
	}
	if r.IntN(3) == 0 {
		limits = append(limits, Limit{1, time.Duration(1+r.Int64N(1e6)) * time.Microsecond}) // a rate
	}
	return limits
}

// groupOf returns the size of the group that contains a permit of the given age.
func groupOf(tiers []tier, age int64) int64 {
	for _, t := range tiers {
		if age <= t.max {
			return t.group
		}
	}
	return age // no limit sees this permit
}

// TestMergeMovesLater merges random logs. No slot may move to an earlier time, or later than the last slot
// of its group. Permits that a limit can see must stay in order within the allowed number of runs. A second
// merge must change nothing.
func TestMergeMovesLater(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		limits := manyLimits(r)
		log := &Log{Total: r.Int64N(1000)}
		newest := log.irregular(r, 10+r.IntN(MostRuns), Time(1_800_000_000_000_000))
		now := newest + Time(r.Int64N(40*24*3600*1e6)) - Time(20*24*3600*1e6)
		before := log.clone()
		log.Merge(now, limits)
		requireMerged(t, r, seed, before, log, now, limits)
		again := log.clone()
		again.Merge(now, limits)
		require.Equal(t, log, again, "seed %d", seed)
	}
}

func requireMerged(t *testing.T, r *rand.Rand, seed uint64, before, log *Log, now Time, limits []Limit) {
	t.Helper()
	require.NoError(t, log.check(), "seed %d", seed)
	require.Equal(t, before.Total, log.Total)
	require.LessOrEqual(t, len(log.Runs), max(mergedRuns, mostGroups+len(limits)), "seed %d", seed)
	tiers := tiersOf(limits)
	greatest := tiers[len(tiers)-1].max
	for _, p := range before.probes(r) {
		was := before.slotOf(p)
		if p < log.first() {
			seen := p >= log.Total-greatest && was.Add(KeepFor(limits)) > now
			require.False(t, seen, "seed %d: permit %d is dropped, and seen", seed, p)
			continue
		}
		is, last := log.slotOf(p), min(p+groupOf(tiers, log.Total-p), log.Total)-1
		require.GreaterOrEqual(t, is, was, "seed %d: permit %d is moved to an earlier slot", seed, p)
		require.LessOrEqual(t, is, before.slotOf(last), "seed %d: permit %d is moved behind permit %d", seed, p, last)
	}
}

// TestLossesDoNotAddUp takes permits of a log that is merged repeatedly. No limit may be exceeded, and each
// limit must allow at least as much as a limit that is smaller by the documented part.
func TestLossesDoNotAddUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		limits := manyLimits(r)
		tiers := tiersOf(limits)
		log, whole := &Log{}, &Log{}
		now, merges := Time(1_800_000_000_000_000), 0
		for range 12_000 {
			now += Time(r.Int64N(100_000))
			permits := 1 + r.Int64N([]int64{1, 10, 1000}[r.IntN(3)])
			at := now
			for _, limit := range limits {
				at = opensAt(log, at, limit, 0)
			}
			log.Append(at, 0, permits, permits)
			whole.Append(at, 0, permits, permits)
			now = at
			if len(log.Runs) > MostRuns {
				log.Merge(now, limits)
				requireMerged(t, r, seed, whole, log, now, limits)
				merges++
			}
			for _, limit := range limits {
				is := opensAt(log, now, limit, 0)
				require.GreaterOrEqual(t, is, opensAt(whole, now, limit, 0), "seed %d", seed)
				require.LessOrEqual(t, is, opensAt(whole, now, limit, groupOf(tiers, int64(limit.Max))-1),
					"seed %d, %+v", seed, limit)
			}
		}
		require.Positive(t, merges)
	}
}

// opensAt returns when the limit, with Max lower by smaller, allows one more permit.
func opensAt(l *Log, now Time, limit Limit, smaller int64) Time {
	permit := l.Total - int64(limit.Max) + smaller
	if permit < l.first() {
		return now
	}
	return max(now, l.slotOf(permit).Add(limit.Window))
}

// TestLeastParts checks how much of a limit may be lost, by the number of limits besides a rate.
func TestLeastParts(t *testing.T) {
	t.Parallel()
	for limits, least := range map[int]int64{1: 2000, 2: 1000, 3: 720, 4: 540} {
		found := int64(math.MaxInt64)
		r := rand.New(rand.NewPCG(uint64(limits), 5))
		for range 20_000 {
			some := []Limit{{1, time.Second}}
			for range limits {
				some = append(some, Limit{1 + int(math.Exp(r.Float64()*math.Log(MaxMax))), time.Second})
			}
			for _, tier := range tiersOf(some) {
				if tier.group > 1 {
					found = min(found, tier.max/(tier.group-1))
				}
			}
		}
		t.Logf("%d limits: 1/%d", limits, found)
		require.GreaterOrEqual(t, found, least)
	}
}

// measured lists limits of real providers, and how much of each may be lost.
var measured = []struct {
	name   string
	limits []Limit
	part   int64 // the largest lost part of each limit is 1/part
}{
	{"10,000,000 in 31 days", []Limit{{MaxMax, MaxWindow}}, 2000},
	{"600,000 a minute", []Limit{{600_000, time.Minute}}, 2000},
	{"100 a second, 50,000 a day", []Limit{{100, time.Second}, {50_000, 24 * time.Hour}}, 2000},
	{"100,000 an hour, 10,000,000 in 31 days", []Limit{{100_000, time.Hour}, {MaxMax, MaxWindow}}, 1000},
	{"four", []Limit{{100, time.Second}, {3000, time.Minute}, {100_000, time.Hour}, {1_000_000, 24 * time.Hour}}, 750},
	{"four far apart, the worst", []Limit{{600, time.Second}, {18_000, time.Minute}, {500_000, time.Hour},
		{MaxMax, 24 * time.Hour}}, 560},
}

// point is a number of permits with the same slot.
type point struct {
	at      Time
	permits int64
}

// pointsOf returns the granted permits as points.
func pointsOf(l Log) (points []point) {
	for i := range l.Runs {
		r := &l.Runs[i]
		step := r.Burst
		if r.Every == 0 {
			step = l.end(i) - r.First
		}
		for first := r.First; first < l.end(i); first += step {
			points = append(points, point{r.slot(first - r.First), min(step, l.end(i)-first)})
		}
	}
	return points
}

// fullest returns the number of permits in the fullest window.
func fullest(points []point, window time.Duration) (most int64) {
	within, first := int64(0), 0
	for _, p := range points {
		for within += p.permits; points[first].at.Add(window) <= p.at; first++ {
			within -= points[first].permits
		}
		most = max(most, within)
	}
	return most
}

// TestMeasuredLoss takes all possible permits at irregular instants, from a log that merges and from one
// that does not, and compares both.
func TestMeasuredLoss(t *testing.T) {
	t.Parallel()
	for _, m := range measured {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for _, tier := range tiersOf(m.limits) {
				require.LessOrEqual(t, (tier.group-1)*m.part, tier.max)
			}
			log, whole, r := &Log{}, &Log{}, rand.New(rand.NewPCG(1, 4))
			longest := m.limits[len(m.limits)-1]
			const steps, windows = 50_000, 3
			merges, granted := 0, []point(nil)
			for now := Time(0); now < Time(0).Add(windows*longest.Window); now += Time(
				r.Int64N(2 * longest.Window.Microseconds() / steps)) {
				ask := &Ask{Targets: []Target{{Limits: m.limits}}, Permits: r.IntN(4*longest.Max/steps + 2)}
				granted = append(granted, pointsOf(Place(now, ask, []*Log{log}).Log)...)
				Place(now, ask, []*Log{whole})
				if len(log.Runs) > MostRuns {
					log.Merge(now, m.limits)
					merges++
				}
			}
			loss := 1 - float64(log.Total)/float64(whole.Total)
			t.Logf("%d of %d permits, %.6f lost in %d merges, groups %v", log.Total, whole.Total, loss, merges,
				tiersOf(m.limits))
			require.Greater(t, merges, 10)
			require.LessOrEqual(t, loss, 1/float64(m.part))
			for _, limit := range m.limits {
				require.LessOrEqual(t, fullest(granted, limit.Window), int64(limit.Max))
			}
		})
	}
}
