package pacing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everySlot returns all slots of the log in order.
func everySlot(l *Log) (slots []Time) {
	for i := range l.Runs {
		for k := range l.end(i) - l.Runs[i].First {
			slots = append(slots, l.Runs[i].slot(k))
		}
	}
	for i := range l.Ahead {
		r := l.Ahead[i].run()
		for k := range l.Ahead[i].Permits {
			slots = append(slots, r.slot(k))
		}
	}
	slices.Sort(slots)
	return slots
}

// Random grants of random limits lose their slots, whatever the strands are. A log stays valid.
func TestReturnRemovesTheSlots(t *testing.T) {
	t.Parallel()
	left, all := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		logs, targets := []*Log{{}, {}}, make([]Target, 2)
		for i := range targets {
			for range 1 + r.IntN(2) {
				targets[i].Limits = append(targets[i].Limits, Limit{1 + r.IntN([]int{1, 5, 60}[r.IntN(3)]),
					time.Duration(1+r.IntN(40)) * []time.Duration{time.Millisecond, 7 * time.Microsecond}[r.IntN(2)]})
			}
		}
		var grants []Remembered
		for range 2 + r.IntN(8) {
			some := r.IntN(3) * min(1, len(grants))
			ask := &Ask{Targets: targets, Permits: 1 + r.IntN(200), MaxWait: time.Hour}
			of := logs
			if some < 2 {
				ask.Targets, of = targets[some:some+1], logs[some:some+1]
			}
			placed := Place(1_000_000, ask, of)
			if some != 1 {
				grants = append(grants, Remembered{Log: placed.Log})
			}
		}
		before, log := everySlot(logs[0]), logs[0]
		for range 1 + r.IntN(3) {
			of := r.IntN(len(grants))
			now := Time(1_000_000 + r.IntN(2)*r.IntN(50_000))
			slots := everySlot(&grants[of].Log)
			back := grants[of].GiveBack(now, &Ask{Targets: targets[:1]}, r.IntN(2)*r.IntN(20), logs[:1])
			gone := slots[back.Kept:]
			require.Equal(t, len(gone), back.Permits, "seed %d", seed)
			after := everySlot(log)
			require.NoError(t, log.check(), "seed %d", seed)
			decoded := &Log{Runs: log.Runs, Total: log.Total}
			require.NoError(t, decoded.DecodeAhead(log.Ahead.Append(nil)), "seed %d: %+v", seed, log)
			require.True(t, slices.Equal(log.Ahead, decoded.Ahead), "seed %d", seed)
			require.Equal(t, len(before)-back.Targets[0], len(after), "seed %d", seed)
			all += back.Permits
			if left += back.Permits - back.Targets[0]; back.Targets[0] == back.Permits {
				for _, at := range gone {
					i, found := slices.BinarySearch(before, at)
					require.True(t, found)
					before = slices.Delete(before, i, i+1)
				}
				requireSlots(t, before, after, seed)
			}
			Place(now, &Ask{Targets: targets, Permits: r.IntN(60), MaxWait: time.Hour}, logs)
			Place(now, &Ask{Targets: targets[:1], Permits: r.IntN(60), MaxWait: time.Hour}, logs[:1])
			before = everySlot(log)
			requireLimits(t, before, targets[0].Limits, seed)
		}
	}
	t.Logf("%d of %d slots stayed", left, all)
	require.Less(t, left, all/10)
}

// requireLimits requires that no window of a limit has more than Max of the slots.
func requireLimits(t *testing.T, slots []Time, limits []Limit, seed uint64) {
	t.Helper()
	for _, limit := range limits {
		for i := range slots[:max(0, len(slots)-limit.Max)] {
			if next, least := slots[i+limit.Max], slots[i].Add(limit.Window); next < least { // very many
				require.GreaterOrEqual(t, next, least, "seed %d", seed)
			}
		}
	}
}

// A log that has dropped slots, which no limit could see before, exceeds no limit after slots went back.
func TestReturnFromALogThatHasDroppedSlots(t *testing.T) {
	t.Parallel()
	back, granted := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 8))
		limit := Limit{1 + r.IntN(12), time.Duration(1+r.IntN(2000)) * time.Microsecond}
		targets, log := []Target{{Limits: []Limit{limit}}}, &Log{}
		var slots []Time
		for i := range 60 {
			at := Time(1)
			if i > 0 {
				at = slots[i-1] + Time(r.IntN(100))
			}
			if i >= limit.Max {
				at = max(at, slots[i-limit.Max].Add(limit.Window))
			}
			slots = append(slots, at)
			log.Append(at, 0, 1, 1)
		}
		drop := 0
		for drop+1 < len(log.Runs) && log.Total-log.Runs[drop+1].First >= int64(limit.Max) && r.IntN(20) > 0 {
			drop++
		}
		log.Runs = slices.Clone(log.Runs[drop:])
		from := r.IntN(60)
		to, gone := from+1+r.IntN(60-from), Remembered{}
		for _, at := range slots[from:to] {
			gone.Log.Append(at, 0, 1, 1)
		}
		slots = slices.Delete(slots, from, to)
		back += gone.GiveBack(0, &Ask{Targets: targets}, 0, []*Log{log}).Targets[0]
		require.NoError(t, log.check())
		wait := time.Duration(r.IntN(50_000)) * time.Microsecond
		placed := Place(0, &Ask{Targets: targets, Permits: 40, MaxWait: wait}, []*Log{log})
		granted += int(placed.Total)
		slots = append(slots, everySlot(&placed.Log)...)
		slices.Sort(slots)
		requireLimits(t, slots, []Limit{limit}, seed)
	}
	t.Logf("%d slots went back, and %d were granted", back, granted)
	require.Greater(t, back, 10_000)
}

// A log whose slots Merge has moved exceeds no limit after slots went back.
func TestReturnFromAMergedLog(t *testing.T) {
	t.Parallel()
	back, granted := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 9))
		limits := []Limit{{50 + r.IntN(6000), time.Duration(1+r.IntN(400)) * time.Millisecond}}
		if r.IntN(2) == 0 {
			limits = append(limits, Limit{1 + r.IntN(40), time.Duration(1+r.IntN(900)) * time.Microsecond})
		}
		targets, log := []Target{{Limits: limits}}, &Log{}
		var slots []Time
		for i := range MostRuns + 500 + r.IntN(2000) {
			at := Time(1)
			if i > 0 {
				at = slots[i-1] + Time(r.IntN(100))
			}
			for _, limit := range limits {
				if i >= limit.Max {
					at = max(at, slots[i-limit.Max].Add(limit.Window))
				}
			}
			slots = append(slots, at)
			log.Append(at, 0, 1, 1)
		}
		now := slots[r.IntN(len(slots)/2)]
		log.Merge(now, limits)
		for range 3 {
			from := len(slots)/2 + r.IntN(len(slots)/2)
			to, gone := from+1+r.IntN(min(600, len(slots)-from)), Remembered{}
			for _, at := range slots[from:to] {
				gone.Log.Append(at, 0, 1, 1)
			}
			slots = slices.Delete(slots, from, to)
			back += gone.GiveBack(now, &Ask{Targets: targets}, 0, []*Log{log}).Targets[0]
			require.NoError(t, log.check())
			wait := time.Duration(r.IntN(1_000_000)) * time.Microsecond
			placed := Place(now, &Ask{Targets: targets, Permits: 60, MaxWait: wait}, []*Log{log})
			granted += int(placed.Total)
			slots = append(slots, everySlot(&placed.Log)...)
			slices.Sort(slots)
			requireLimits(t, slots, limits, seed)
		}
	}
	t.Logf("%d slots went back, and %d were granted", back, granted)
	require.Greater(t, back, 1000)
}

// TestReturnsTouchNoSlotsOfOthers checks which logs lose the slots of a returned call: only those in which no other
// call has a slot at the same instant.
func TestReturnsTouchNoSlotsOfOthers(t *testing.T) {
	t.Parallel()
	otp := []Share{{Name: "otp", Percent: 20}}
	rated := Pacer{Name: "rated", Rate: Rate{Permits: 100, Per: time.Second}, Shares: otp}
	window := Pacer{Name: "window", Limits: []Limit{{Max: 100, Window: time.Second}}, Shares: otp}
	plain, bursts := rated, window
	plain.Name, plain.Shares, bursts.Name, bursts.Shares = "plain", nil, "bursts", nil
	p := New(nil, &Policy{Pacers: []Pacer{rated, window, plain, bursts}})
	targets := func(pacer, share string) int {
		plan, err := p.plan(&Call{Client: "c", RequestID: "r", Pacers: []string{pacer}, Permits: 1, Share: share})
		require.NoError(t, err)
		return len(plan.all().Targets)
	}
	require.Equal(t, 2, targets("rated", ""), "the pacer and the rest")
	require.Equal(t, 2, targets("window", ""))
	require.Equal(t, 3, targets("rated", "otp"), "each slot of a rate is of one call")
	require.Equal(t, 1, targets("window", "otp"), "the pacer alone")
	require.Equal(t, 2, targets("plain", ""), "the pacer and its far log")
	require.Equal(t, 1, targets("bursts", ""))
}

// TestEveryCallCanBeReturned checks that a store accepts what calls of any pacers ask for: their steps, whichever calls
// leave slots free, and their return.
func TestEveryCallCanBeReturned(t *testing.T) {
	t.Parallel()
	otp := []Share{{Name: "otp", Percent: 20}}
	var policy Policy
	for _, text := range []string{"1000000/s", "250000/s", "100/s", "1/d", "1/200h", "1/480h", "1/744h"} {
		rate, ok := ParseRate(text)
		require.True(t, ok, text)
		policy.Pacers = append(policy.Pacers, Pacer{Name: text, Rate: rate, MaxWait: MaxWait})
	}
	for i := range 5 {
		policy.Pacers = append(policy.Pacers, Pacer{Name: fmt.Sprint("s", i), Shares: otp,
			Rate: Rate{Permits: 100, Per: time.Second}})
	}
	p := New(nil, &policy)
	calls := []Call{{Pacers: []string{"s0", "s1", "s2", "s3"}}, {Pacers: []string{"s0", "s1", "s2", "100/s", "1/d"}},
		{Pacers: []string{"s0", "1000000/s", "250000/s", "100/s", "1/d", "1/480h", "1/744h"}}}
	for i := range policy.Pacers {
		calls = append(calls, Call{Pacers: []string{policy.Pacers[i].Name}})
	}
	for _, call := range calls {
		call.Client, call.RequestID, call.Permits, call.MaxWait, call.ClientShare = "c", "r", 1, MaxWait, "otp"
		plan, err := p.plan(&call)
		require.NoError(t, err)
		require.NoError(t, plan.all().Check(), call.Pacers)
		for _, reach := range reaches() {
			plan.rooms = plan.rooms[:0]
			for i := range plan.answer.Pacers {
				room := leaving{some: plan.answer.Pacers[i].reached(), reach: reach, far: reach}
				plan.rooms = append(plan.rooms, room)
			}
			plan.setSteps()
			for _, step := range plan.steps {
				ask, _ := plan.ask(step, func(string, string) bool { return true })
				require.NoError(t, ask.Check(), "%v, calls that wait for %v", call.Pacers, reach)
			}
		}
	}
}

// TestReturnedSlotsAreFreeBeforeManyBursts checks that later permits get returned slots, even if a queue of bursts
// (slots of a rate that fill one window after the other) follows them.
func TestReturnedSlotsAreFreeBeforeManyBursts(t *testing.T) {
	t.Parallel()
	rate := func(every time.Duration) Limit { return Limit{1, every} }
	tens := []Limit{rate(50 * time.Millisecond), {10, time.Second}}
	hundreds := []Limit{rate(4 * time.Millisecond), {100, 500 * time.Millisecond}}
	fives := []Limit{rate(33334 * time.Microsecond), {5, time.Second}}
	for name, of := range map[string]struct {
		limits  []Limit
		before  int
		back    []int // permits of calls of which every second one is returned
		behind  int
		strands int
	}{
		"windows of 10":      {tens, 20, []int{20}, 325, 12},
		"2,000 permits":      {tens, 20, []int{20}, 2000, 12},
		"several gaps":       {tens, 5, []int{7, 3, 10, 9}, 900, 40},
		"windows of 100":     {hundreds, 500, []int{100}, 4000, 45},
		"bursts at one slot": {[]Limit{{5, time.Second}}, 10, []int{5}, 1000, 3},
		// The distance from the last slot of a burst to the first of the next is no multiple of the rate's interval.
		"odd distances": {fives, 20, []int{1, 3, 2, 9}, 1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, ask := &Log{}, &Ask{Targets: []Target{{Limits: of.limits}}, MaxWait: time.Hour}
			take := func(permits int) Remembered {
				ask.Permits = permits
				placed := Place(1_000_000, ask, []*Log{log})
				require.EqualValues(t, permits, placed.Total)
				return Remembered{Log: placed.Log}
			}
			take(of.before)
			var calls []Remembered
			for _, permits := range of.back {
				calls = append(calls, take(permits))
			}
			take(of.behind)
			var freed []Time
			for i := 0; i < len(calls); i += 2 {
				freed = append(freed, everySlot(&calls[i].Log)...)
				back := calls[i].GiveBack(1_000_000, ask, 0, []*Log{log})
				require.Equal(t, []int{back.Permits}, back.Targets)
				require.NoError(t, log.check())
			}
			require.LessOrEqual(t, len(log.Ahead), of.strands)
			again := take(len(freed))
			require.Equal(t, freed, everySlot(&again.Log))
		})
	}
}
