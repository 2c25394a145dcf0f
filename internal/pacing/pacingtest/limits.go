package pacingtest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

func limit(f *fixture) {
	three := target(pacing.Limit{Max: 3, Window: time.Hour})
	first := f.take(ask(2, 0, three))
	require.Equal(f, 2, first.Granted)
	require.Equal(f, []pacing.WaitRun{{Wait: 0, Burst: 1, Permits: 2}}, first.Runs)
	require.Zero(f, first.Next)
	second := f.take(ask(2, 0, three))
	require.Equal(f, 1, second.Granted)
	require.Equal(f, []int{3}, second.States[0].Used)
	require.Equal(f, 0, second.Limit)
	require.Equal(f, first.At.Add(time.Hour), second.At.Add(second.Next))
	require.Equal(f, 0, f.take(ask(1, 59*time.Minute, three)).Granted)
	require.Equal(f, 7, f.take(ask(7, 6*time.Hour, three)).Granted, "3 in an hour, 3 in two, one in three")
}

func rate(f *fixture) {
	even := target(spaced(4 * time.Millisecond))
	grant := f.take(ask(15_000, time.Hour, even))
	require.Equal(f, []pacing.WaitRun{{Wait: 0, Every: 4 * time.Millisecond, Burst: 1, Permits: 15_000}}, grant.Runs)
	require.Equal(f, grant.At.Add(time.Minute), grant.At.Add(grant.Next))
	again := f.take(ask(1, time.Hour, even))
	require.Equal(f, grant.At.Add(time.Minute), again.At.Add(again.Runs[0].Wait))
}

func oddRate(f *fixture) {
	odd := target(spaced(pacing.Rate{Permits: 7, Per: time.Second}.Interval()))
	grant := f.take(ask(8, time.Minute, odd))
	require.Equal(f, 142_858*time.Microsecond, grant.Runs[0].Every, "rounded up")
	f.take(ask(1000, time.Hour, odd))
}

func limitsAndRate(f *fixture) {
	both := target(pacing.Limit{Max: 100, Window: time.Second}, pacing.Limit{Max: 250, Window: time.Minute},
		spaced(4*time.Millisecond))
	grant := f.take(ask(300, 10*time.Second, both))
	require.Equal(f, 250, grant.Granted)
	require.Equal(f, 1, grant.Limit, "the minute")
	require.Equal(f, 800, f.takeAll(800, time.Hour, both))
}

func windowsPass(f *fixture) {
	short, even := target(pacing.Limit{Max: 5, Window: 40 * time.Millisecond}), target(spaced(3*time.Millisecond))
	taken := [2]int{}
	testkit.Eventually(f, func() bool {
		taken[0] += f.take(ask(3, 0, short)).Granted
		taken[1] += f.take(ask(2, 4*time.Millisecond, even)).Granted
		return taken[0] >= 20 && taken[1] >= 40
	})
}

func waits(f *fixture) {
	hour := target(pacing.Limit{Max: 1, Window: time.Hour})
	f.take(ask(1, 0, hour))
	short := f.take(ask(10, 210*time.Minute, hour))
	require.Equal(f, 3, short.Granted)
	require.Equal(f, 0, f.take(ask(1, 0, hour)).Granted)
	exact := f.take(ask(10, pacing.MaxWait, hour))
	require.Equal(f, 10, exact.Granted)
	require.Positive(f, exact.States[0].Queue)
	f.take(ask(1, exact.Next-exact.Next%time.Microsecond, hour))
}

func severalTargets(f *fixture) {
	tight, wide := target(pacing.Limit{Max: 2, Window: time.Hour}), target(pacing.Limit{Max: 5, Window: time.Hour},
		spaced(time.Millisecond))
	alone := target(pacing.Limit{Max: 100, Window: time.Minute})
	grant := f.take(ask(4, time.Second, wide, tight, alone))
	require.Equal(f, 2, grant.Granted)
	require.Equal(f, 1, grant.Target, "the tight one")
	none := f.take(ask(1, time.Second, alone, tight))
	require.Zero(f, none.Granted)
	require.Equal(f, []int{2}, none.States[0].Used, "what one refuses, none records")
	require.Equal(f, 3, f.take(ask(9, time.Second, wide)).Granted)
	f.take(ask(30, 10*time.Minute, alone, target(spaced(7*time.Second))))
	require.Equal(f, 65, f.takeAll(65, 2*time.Hour, alone), "behind the queue of others")

	var eight []pacing.Target
	for i := range pacing.MaxPacers {
		eight = append(eight, target(pacing.Limit{Max: 10 + i, Window: time.Duration(1+i) * time.Second},
			spaced(time.Duration(i+1)*time.Millisecond)))
	}
	f.takeAll(50, time.Minute, eight...)
	f.take(ask(3, 0, eight[3]))
	f.takeAll(20, time.Minute, eight[6], eight[0], eight[3])
}

func sharedTarget(f *fixture) {
	slow, fast := target(spaced(100*time.Millisecond)), target(spaced(4*time.Millisecond))
	together := f.take(ask(50, time.Minute, fast, slow))
	require.Equal(f, []pacing.WaitRun{{Every: 100 * time.Millisecond, Burst: 1, Permits: 50}}, together.Runs)
	require.Equal(f, 4*time.Millisecond, together.States[0].Next)
	require.Equal(f, 1100, f.takeAll(1100, 4700*time.Millisecond, fast), "all the room between the slots ahead")
	f.take(ask(3, 0, slow))
	f.take(ask(1, time.Minute, slow, fast))
	require.Equal(f, 300, f.takeAll(300, time.Minute, fast), "behind them")

	burst, wide := target(pacing.Limit{Max: 3, Window: time.Second}), target(pacing.Limit{Max: 10, Window: time.Second})
	f.takeAll(30, time.Minute, burst, wide)
	require.Equal(f, 70, f.takeAll(70, time.Minute, wide), "the windows that end with slots ahead")
	other := target(spaced(30*time.Millisecond), pacing.Limit{Max: 20, Window: time.Second})
	f.takeAll(40, time.Minute, other, wide, fast)
	f.takeAll(40, time.Minute, wide)
	f.takeAll(40, time.Minute, fast, slow)
}

// sharedRun checks a request for three permits of two targets with rates. Without the first target, the second target
// would grant the third permit an earlier slot. The store must therefore delay the third permit, so that its slot is a
// whole number of the second target's intervals after the previous slot.
func sharedRun(f *fixture) {
	wide, even := target(spaced(70*time.Second)), target(spaced(80*time.Second))
	f.take(ask(2, time.Hour, wide)) // slots 0 and 70 s
	wide.Limits = []pacing.Limit{spaced(20 * time.Second)}
	f.take(ask(1, time.Hour, wide)) // slot 90 s
	f.take(ask(2, time.Hour, even)) // slots 0 and 80 s
	wide.Limits = []pacing.Limit{{Max: 3, Window: 150 * time.Second}, spaced(3 * time.Second)}
	even.Limits = []pacing.Limit{spaced(70 * time.Second)}
	slots := slotsOf(new(f.take(ask(3, time.Hour, even, wide)))) // slots 150 s, 220 s, and 292 s instead of 290 s
	require.Equal(f, 72*time.Second, slots[2].Sub(slots[1]))
}

func perMessage(f *fixture) {
	one := target(pacing.Limit{Max: 2, Window: time.Hour})
	two := one
	one.Message, two.Message = "0a0b0c0d0e0f", "0a0b0c0d0e0e"
	require.Equal(f, 2, f.take(ask(3, 0, one)).Granted)
	require.Equal(f, 2, f.take(ask(3, 0, two)).Granted)
	both := f.take(ask(3, 3*time.Hour, one, two))
	require.Equal(f, 3, both.Granted)
	require.Zero(f, f.take(ask(1, 0, one)).Granted)
	none := one
	none.Message = ""
	require.Equal(f, 2, f.take(ask(3, 0, none)).Granted)
}

func look(f *fixture) {
	one := target(pacing.Limit{Max: 1, Window: time.Hour}, spaced(time.Minute))
	for range 3 {
		grant := f.take(ask(0, 0, one))
		require.Empty(f, grant.Runs)
		require.Equal(f, []int{0, 0}, grant.States[0].Used)
		require.Equal(f, -1, grant.Target)
	}
	f.take(ask(3, 90*time.Minute, one))
	for _, wait := range []time.Duration{0, time.Hour, pacing.MaxWait} {
		grant := f.take(ask(0, wait, one))
		require.Equal(f, []int{1, 1}, grant.States[0].Used)
		require.False(f, grant.More)
	}
	require.Positive(f, f.take(ask(0, 0, one, target(spaced(time.Second)))).Next)
}

func refused(f *fixture) {
	one := target(pacing.Limit{Max: 1, Window: time.Hour})
	first := f.take(ask(1, 0, one))
	for range 20 {
		again := f.take(ask(1000, time.Minute, one))
		require.Zero(f, again.Granted)
		require.Empty(f, again.Runs)
		require.Equal(f, first.At.Add(time.Hour), again.At.Add(again.Next), "asking puts nothing off")
	}
	require.Equal(f, 1, f.take(ask(1000, time.Hour, one)).Granted)
}

func changedLimits(f *fixture) {
	changing := target(pacing.Limit{Max: 100, Window: time.Second})
	f.take(ask(80, 0, changing))
	for _, limits := range [][]pacing.Limit{
		{{Max: 50, Window: time.Minute}}, {{Max: 81, Window: time.Hour}}, {spaced(10 * time.Second)},
		{{Max: 100, Window: time.Second}},
		{{Max: 90, Window: 31 * day}, spaced(time.Microsecond)}, {{Max: 1, Window: time.Millisecond}},
		{{Max: 10_000_000, Window: 31 * day}},
	} {
		changing.Limits = limits
		f.take(ask(0, 0, changing))
		f.take(ask(3, 0, changing))
		f.takeAll(7, pacing.MaxWait, changing)
	}
	changing.Limits = []pacing.Limit{{Max: 100, Window: time.Second}, spaced(time.Millisecond)}
	f.takeAll(300, pacing.MaxWait, changing)
}

func many(f *fixture) {
	minute := target(pacing.Limit{Max: 600_000, Window: time.Minute})
	grant := f.take(ask(pacing.MaxPermits, 0, minute))
	require.Equal(f, []pacing.WaitRun{{Burst: 1, Permits: pacing.MaxPermits}}, grant.Runs)
	for range 6 {
		require.Equal(f, pacing.MaxPermits, f.takeAll(pacing.MaxPermits, 2*time.Minute, minute))
	}
	even := target(spaced(4*time.Millisecond), pacing.Limit{Max: 50_000, Window: day})
	require.Equal(f, 50_000, f.takeAll(pacing.MaxPermits, time.Hour, even))
	require.Equal(f, 1000, f.takeAll(1000, pacing.MaxWait, minute,
		target(pacing.Limit{Max: 7, Window: time.Millisecond})))
}

// The function "extremes" checks the largest limits, the shortest windows and the longest waits.
func extremes(f *fixture) {
	for _, limit := range []pacing.Limit{
		{Max: pacing.MaxMax, Window: pacing.MaxWindow}, {Max: pacing.MaxMax, Window: time.Microsecond},
		{Max: 1, Window: time.Microsecond}, {Max: 1, Window: pacing.MaxWindow}, {Max: 1, Window: pacing.MaxWait},
	} {
		one := target(limit)
		f.takeAll(2, 0, one)
		f.takeAll(1000, pacing.MaxWait, one)
		f.take(ask(0, 0, one))
	}
	all := target(pacing.Limit{Max: pacing.MaxMax, Window: pacing.MaxWindow},
		pacing.Limit{Max: 9, Window: time.Millisecond},
		pacing.Limit{Max: 99, Window: time.Second}, pacing.Limit{Max: 999, Window: time.Hour}, spaced(time.Microsecond))
	f.takeAll(3000, pacing.MaxWait, all)
}

func forget(f *fixture) {
	one, other := target(pacing.Limit{Max: 2, Window: time.Hour}), target(pacing.Limit{Max: 2, Window: time.Hour})
	message := one
	message.Message = "0123456789ab"
	request := Request()
	f.take(requested(ask(2, 0, one), request))
	f.take(ask(2, 0, message))
	f.take(ask(1, 0, other))
	require.NoError(f, f.store.ForgetPacer(context.Background(), one.Pacer, ""))
	f.model.forget(one.Pacer)
	f.oracle.Forget(one.Pacer)
	require.True(f, f.take(requested(ask(2, 0, one), request)).Replayed, "requests stay remembered")
	require.Equal(f, 2, f.take(ask(3, 0, one)).Granted)
	require.Equal(f, 2, f.take(ask(3, 0, message)).Granted)
	require.Equal(f, 1, f.take(ask(3, 0, other)).Granted, "another is as it was")
	require.NoError(f, f.store.ForgetPacer(context.Background(), Name(), ""), "absent is no error")
}

// The variable "malformations" lists changes that make a valid request for permits invalid; each key is a part of the
// expected error text.
var malformations = map[string]func(a *pacing.Ask){
	"pacers, got 0":     func(a *pacing.Ask) { a.Targets = nil },
	"pacers, got 9":     func(a *pacing.Ask) { a.Targets = make([]pacing.Target, pacing.MaxPacers+1) },
	"of permits must":   func(a *pacing.Ask) { a.Permits = -1 },
	"got 100001":        func(a *pacing.Ask) { a.Permits = pacing.MaxPermits + 1 },
	"maximum wait must": func(a *pacing.Ask) { a.MaxWait = -1 },
	"got 24h0m0.001s":   func(a *pacing.Ask) { a.MaxWait = pacing.MaxWait + time.Millisecond },
	"must name a pacer": func(a *pacing.Ask) { a.Targets[0].Pacer = "" },
	"given twice":       func(a *pacing.Ask) { a.Targets = append(a.Targets, a.Targets[0]) },
	"one), got 0":       func(a *pacing.Ask) { a.Targets[0].Limits = nil },
	"one), got 6":       func(a *pacing.Ask) { a.Targets[0].Limits = make([]pacing.Limit, pacing.MaxLimits+2) },
	"of permits from 1": func(a *pacing.Ask) { a.Targets[0].Limits = []pacing.Limit{{Max: 0, Window: time.Second}} },
	"got 10000001": func(a *pacing.Ask) {
		a.Targets[0].Limits = []pacing.Limit{{Max: pacing.MaxMax + 1, Window: time.Second}}
	},
	"window: must be": func(a *pacing.Ask) { a.Targets[0].Limits = []pacing.Limit{{Max: 1}} },
	"got 1.0000005s": func(a *pacing.Ask) {
		a.Targets[0].Limits = []pacing.Limit{{Max: 1, Window: time.Second +
			500}}
	},
	"got 744h0m0.001": func(a *pacing.Ask) {
		a.Targets[0].Limits = []pacing.Limit{{Max: 1, Window: pacing.MaxWindow + time.Millisecond}}
	},
}

func malformed(f *fixture) {
	one := target(pacing.Limit{Max: 5, Window: time.Hour})
	f.take(ask(2, 0, one))
	for want, spoil := range malformations {
		bad := requested(ask(1, time.Hour, one), Request())
		spoil(bad)
		_, err := f.store.TakePermits(context.Background(), bad)
		require.ErrorContains(f, err, want)
		require.Equal(f, []int{2}, f.take(ask(0, 0, one)).States[0].Used)
	}
	require.Equal(f, 3, f.take(ask(4, 0, one)).Granted)
}

func deadlinePassed(f *fixture) {
	one, request := target(pacing.Limit{Max: 2, Window: time.Hour}), Request()
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	_, err := f.store.TakePermits(ctx, requested(ask(1, 0, one), request))
	require.Error(f, err)
	require.False(f, errors.As(err, new(*pacing.ReuseError)))
	require.Error(f, f.store.ForgetPacer(ctx, one.Pacer, ""))
	require.False(f, f.take(requested(ask(1, 0, one), request)).Replayed)
	require.Equal(f, 1, f.take(ask(3, 0, one)).Granted)
}
