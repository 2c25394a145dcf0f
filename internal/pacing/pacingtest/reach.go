package pacingtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// These constants are the times of a simulation with two groups of callers. The callers with the shorter wait call from
// reachFrom to reachTo.
const (
	reachFrom, reachTo = 2 * time.Second, 20 * time.Second
	reachEnd           = 36 * time.Second
	reachLongest       = 6 * time.Second // the longest wait of the pacers for a slot
)

// RunWaits checks that callers with a long wait do not take all slots of a pacer from callers with a shorter wait. As
// soon as the slots of earlier grants have passed, each group must get at least 40 % of its half of the rate. Both
// groups of callers together must get at least 95 % of the rate. RunWaits runs the cases in its list whose index is a
// multiple of the argument "step".
func RunWaits(t *testing.T, open OpenOnClock, step int) {
	for i, c := range []struct {
		pacer    pacing.Pacer
		shorter  time.Duration
		instance int // the instance of the callers with the shorter wait
	}{
		{shared(100), time.Second, 1},
		{windowed(100, time.Second), 1500 * time.Millisecond, 0},
		{shared(100), pacing.LeastReach, 0},
		{shared(80), 0, 1},
		{windowed(40, 300*time.Millisecond), 2 * time.Second, 1},
		{shared(4), time.Second, 0},
		{shared(100), 0, 0},
		{shared(250), 3 * time.Second, 1},
	} {
		if i%step > 0 {
			continue
		}
		s := &sharing{T: t, pacers: []pacing.Pacer{c.pacer}}
		s.pacers[0].MaxWait = reachLongest
		s.callers = greedily(sharer{pacers: []string{"carrier"}, wait: pacing.MaxWait})
		s.callers = append(s.callers, greedily(sharer{pacers: []string{"carrier"}, wait: c.shorter,
			instance: c.instance, from: reachFrom, to: reachTo})...)
		waitsHold(s, open, c.shorter)
	}
}

// The function "greedily" returns a group of callers that take all permits that they can get. The callers that greedily
// returns have the same pacers, wait and times as the sharer in the argument "like".
func greedily(like sharer) (group []sharer) {
	for _, size := range [][2]int{{8, 1}, {2, 50}, {1, 1000}} {
		like.workers, like.permits = size[0], size[1]
		group = append(group, like)
	}
	return group
}

// waitsHold simulates two groups of callers, and checks that both groups get their slots. The second group of callers
// has the shorter wait.
func waitsHold(s *sharing, open OpenOnClock, shorter time.Duration) {
	s.Helper()
	s.run(open, reachEnd)
	s.judge()
	rate, size, from := perSecondOf(&s.pacers[0]), len(s.callers)/2, reachFrom+reachLongest+time.Second
	groups := [2]float64{}
	for i := range s.callers {
		groups[i/size] += s.perSecond(i, from, reachTo)
	}
	s.Logf("%v %v beside waits of %v: %.1f/s and %.1f/s of %.1f/s, at most %v, %v and %v ahead", s.pacers[0].Rate,
		s.pacers[0].Limits, shorter, groups[0], groups[1], rate, s.farthest(0, reachFrom), s.farthest(from, reachTo),
		s.farthest(reachTo+pacing.KeptFor, reachEnd))
	require.GreaterOrEqual(s, groups[0]+groups[1], 0.95*rate)
	require.GreaterOrEqual(s, groups[0], 0.4*rate/2)
	require.GreaterOrEqual(s, groups[1], 0.4*rate/2)
	for _, free := range [][2]time.Duration{{0, reachFrom},
		{reachTo + pacing.KeptFor + reachLongest + time.Second, reachEnd}} {
		require.GreaterOrEqual(s, s.farthest(free[0], free[1]), reachLongest*7/10, "a pacer without shorter waits")
		require.GreaterOrEqual(s, s.perSecond(-1, free[0], free[1])+2/(free[1]-free[0]).Seconds(), 0.95*rate)
	}
}

// The method "farthest" returns the longest time from a simulated call to a slot of this call. The method "farthest"
// looks at the calls between the times "from" and "to".
func (s *sharing) farthest(from, to time.Duration) (longest time.Duration) {
	for _, g := range s.grants {
		if g.asked >= s.start.Add(from) && g.asked < s.start.Add(to) {
			longest = max(longest, g.at.Sub(g.asked))
		}
	}
	return longest
}

// reachKept checks that a call with a long wait gets no slot later than the shorter wait of other callers.
func reachKept(f *fixture) {
	slow := pacing.Pacer{Name: Name(), Rate: pacing.Rate{Permits: 1, Per: time.Second}, MaxWait: time.Hour}
	here, there, _ := f.sharing(slow)
	long := pacing.Call{Pacers: []string{slow.Name}, Permits: 100, MaxWait: time.Hour, Client: "c", RequestID: Name()}
	first := f.takeOf(here, long)
	require.Equal(f, 100, first.Granted)
	short := pacing.Call{Pacers: []string{slow.Name}, Permits: 1, MaxWait: 6 * time.Second}
	require.Zero(f, f.takeOf(here, short).Granted)
	back, err := there.Return(context.Background(), &long, 0)
	require.NoError(f, err)
	require.Positive(f, back.Permits)
	for _, p := range []*pacing.Pacers{there, here} {
		long.RequestID, long.Permits = Name(), 20
		next := f.takeOf(p, long)
		require.Equal(f, 20, next.Granted, "one in two seconds, and those that are near")
		slots := slotsOf(&next.Grant)
		require.Greater(f, slots[19].Sub(slots[0]), 20*time.Second)
		require.Equal(f, 1, f.takeOf(p, short).Granted)
		again := f.takeOf(here, long)
		require.Equal(f, slots, slotsOf(&again.Grant))
		require.Zero(f, again.Fresh)
		for range 2 {
			back, err := there.Return(context.Background(), &long, 5)
			require.NoError(f, err)
			require.Less(f, back.Kept, 20)
			again := f.takeOf(here, long)
			require.Equal(f, slots[:back.Kept], slotsOf(&again.Grant))
		}
	}
	require.NoError(f, here.Forget(context.Background(), slow.Name))
}
