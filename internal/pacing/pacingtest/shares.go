package pacingtest

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// OpenOnClock opens the store under test with a clock that the test controls.
type OpenOnClock func(t *testing.T, clock func() time.Time) pacing.Store

// The type "sharer" is a group of simulated workers. Each simulated worker asks for permits, waits for all or half of
// the time until their slots, and asks again.
type sharer struct {
	share    string
	pacers   []string
	workers  int
	permits  int
	wait     time.Duration
	every    time.Duration // mean time between two calls of a worker; 0: the worker waits for its slots
	from, to time.Duration // the time in which the workers call; to 0: until the simulation ends
	instance int
}

// The type "sharing" simulates callers that take permits of pacers with shares from one store.
type sharing struct {
	*testing.T
	pacers  []pacing.Pacer
	callers []sharer

	clock     *testkit.Clock
	start     pacing.Time
	instances []*pacing.Pacers
	store     pacing.Store
	rng       *rand.Rand
	grants    []gift
	calls     turns
}

// A gift is one permit that a simulated caller got, with the time of the call and the slot of the permit.
type gift struct {
	caller    int
	asked, at pacing.Time
}

// A turn is the time of the next call of one simulated worker.
type turn struct {
	at     pacing.Time
	order  uint64
	caller int
}

type turns []turn

func (w turns) Len() int { return len(w) }
func (w turns) Less(i, j int) bool {
	return w[i].at < w[j].at || w[i].at == w[j].at && w[i].order < w[j].order
}
func (w turns) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *turns) Push(x any)   { *w = append(*w, x.(turn)) }
func (w *turns) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// The method "run" runs the simulation for the given time.
func (s *sharing) run(open OpenOnClock, length time.Duration) {
	s.Helper()
	s.clock = testkit.NewClock()
	s.rng = rand.New(rand.NewPCG(1, uint64(len(s.callers))))
	s.store = open(s.T, s.clock.Now)
	s.start = pacing.TimeOf(s.clock.Now())
	for i, c := range s.callers {
		for len(s.instances) <= c.instance {
			p := pacing.New(s.store, &pacing.Policy{Pacers: s.pacers})
			p.SetClock(s.clock.Now)
			s.instances = append(s.instances, p)
		}
		for range c.workers {
			at := s.start.Add(c.from + time.Duration(s.rng.IntN(10_000_000)))
			heap.Push(&s.calls, turn{at, s.rng.Uint64(), i})
		}
	}
	for len(s.calls) > 0 && s.calls[0].at < s.start.Add(length) {
		s.call(heap.Pop(&s.calls).(turn))
	}
}

// The method "call" makes the next call of a simulated worker, and then schedules the worker's following call.
func (s *sharing) call(w turn) {
	c := &s.callers[w.caller]
	if c.to > 0 && w.at >= s.start.Add(c.to) {
		return
	}
	s.clock.Advance(w.at.Sub(pacing.TimeOf(s.clock.Now())))
	given, err := s.instances[c.instance].Take(context.Background(), &pacing.Call{Pacers: c.pacers, Permits: c.permits,
		MaxWait: c.wait, Share: c.share})
	require.NoError(s, err)
	got := slotsOf(&given.Grant)
	require.True(s, slices.IsSorted(got))
	require.Len(s, got, given.Granted)
	require.Equal(s, c.permits, given.Granted+given.Refused)
	for _, at := range got {
		s.grants = append(s.grants, gift{w.caller, w.at, at})
	}
	again := w.at + 1000
	switch {
	case c.every > 0:
		again = w.at.Add(c.every/2 + time.Duration(s.rng.Int64N(int64(c.every))))
	case len(got) == 0:
		again = max(again, given.At.Add(min(max(given.Next-c.wait, 5*time.Millisecond), time.Second)))
	case c.permits == 1:
		again = max(again, got[0])
	default:
		again = max(again, w.at+(got[len(got)-1]-w.at)/2)
	}
	heap.Push(&s.calls, turn{again, s.rng.Uint64(), w.caller})
}

// perSecond returns the number of permits per second that a caller got with slots between "from" and "to". The number
// -1 stands for all callers.
func (s *sharing) perSecond(caller int, from, to time.Duration) float64 {
	n := 0
	for _, g := range s.grants {
		if (caller < 0 || g.caller == caller) && g.at >= s.start.Add(from) && g.at < s.start.Add(to) {
			n++
		}
	}
	return float64(n) / (to - from).Seconds()
}

// The method "judge" checks that no window of a limit has more permits than the limit allows.
func (s *sharing) judge() {
	s.Helper()
	for _, p := range s.pacers {
		var slots []pacing.Time
		for _, g := range s.grants {
			if slices.Contains(s.callers[g.caller].pacers, p.Name) {
				slots = append(slots, g.at)
			}
		}
		slices.Sort(slots)
		for _, limit := range p.Judged() {
			for k := limit.Max; k < len(slots); k++ {
				require.GreaterOrEqual(s, slots[k].Sub(slots[k-limit.Max]), limit.Window, "pacer %s", p.Name)
			}
		}
	}
}

// The function "shared" returns a pacer that has the given shares and grants the given number of permits per second.
func shared(permits int, shares ...pacing.Share) pacing.Pacer {
	return pacing.Pacer{Name: "carrier", Rate: pacing.Rate{Permits: permits, Per: time.Second}, Shares: shares,
		MaxWait: pacing.MaxWait}
}

// The function "windowed" returns a pacer that has one limit, no rate, and the given shares.
func windowed(most int, window time.Duration, shares ...pacing.Share) pacing.Pacer {
	return pacing.Pacer{Name: "carrier", Limits: []pacing.Limit{{Max: most, Window: window}}, Shares: shares,
		MaxWait: pacing.MaxWait}
}

// These constants are the times of a simulation of shares: callers of shares call from sharesFrom to sharesTo.
const (
	sharesFrom, sharesTo = 3 * time.Second, 10 * time.Second
	sharesEnd            = 19 * time.Second
)

// The function "settle" returns the longest allowed time from the first call of a share until the share gets its
// reserved part of the pacer. The result of settle is a second, or twice the longest window if this is longer.
func settle(p *pacing.Pacer) time.Duration {
	settle := time.Second
	for _, limit := range p.Judged() {
		settle = max(settle, 2*limit.Window)
	}
	return settle
}

func perSecondOf(p *pacing.Pacer) float64 {
	least := 1e18
	for _, limit := range p.Judged() {
		least = min(least, float64(limit.Max)/limit.Window.Seconds())
	}
	return least
}

// The function "others" returns simulated callers without a share that take all permits that they can get, some of them
// with a long wait.
func others(pacer string, wait time.Duration, instance int) []sharer {
	return []sharer{
		{pacers: []string{pacer}, workers: 32, permits: 1, wait: wait, instance: instance},
		{pacers: []string{pacer}, workers: 3, permits: 50, wait: wait, instance: instance},
		{pacers: []string{pacer}, workers: 1, permits: 1000, wait: pacing.MaxWait, instance: instance},
	}
}

// RunShares checks that a share (reserved part of a pacer) gets its part of a pacer, even if callers without a share
// ask for many permits. While calls use a share, the share must get its part of the pacer after the time from the
// function "settle". Callers without a share must get the rest of the pacer. While no call uses a share, callers
// without a share must get all slots of the pacer. RunShares tests the pacers in its list whose index is a multiple of
// the argument "step".
func RunShares(t *testing.T, open OpenOnClock, step int) {
	otp, alerts := pacing.Share{Name: "otp", Percent: 20}, pacing.Share{Name: "alerts", Percent: 10}
	for i, p := range []pacing.Pacer{
		shared(250, otp), shared(250, otp), shared(250, otp), shared(1000, otp), shared(14, otp),
		shared(100, pacing.Share{Name: "otp", Percent: 33}),
		shared(80, pacing.Share{Name: "otp", Percent: 1}), shared(50, pacing.Share{Name: "otp", Percent: 85}),
		shared(250, otp, alerts), shared(40, alerts, otp, pacing.Share{Name: "news", Percent: 15}),
		windowed(100, time.Second, otp), windowed(100, 1100*time.Millisecond, otp, alerts),
		windowed(7, 300*time.Millisecond, otp),
		shared(100, pacing.Share{Name: "otp", Percent: 99}), shared(100, pacing.Share{Name: "otp", Percent: 100}),
		shared(100, pacing.Share{Name: "otp", Percent: 60}, pacing.Share{Name: "alerts", Percent: 40}),
		shared(10, pacing.Share{Name: "otp", Percent: 100}),
		windowed(100, time.Second, pacing.Share{Name: "otp", Percent: 70}, pacing.Share{Name: "alerts", Percent: 30}),
	} {
		if i%step > 0 {
			continue
		}
		sharesHold(t, open, p, []time.Duration{time.Minute, 300 * time.Millisecond, 0}[i%3], i%2)
	}
}

// sharesHold checks that each share of a pacer gets its reserved part while callers without a share also ask for
// permits. The argument "wait" of sharesHold is the longest wait of most of these callers.
func sharesHold(t *testing.T, open OpenOnClock, p pacing.Pacer, wait time.Duration, instance int) {
	t.Helper()
	s := &sharing{T: t, pacers: []pacing.Pacer{p}}
	sum := 0
	for _, share := range p.Shares {
		sum += share.Percent
		s.callers = append(s.callers, sharer{share: share.Name, pacers: []string{p.Name}, workers: 20, permits: 1,
			wait: time.Minute, from: sharesFrom, to: sharesTo})
	}
	s.callers = append(s.callers, others(p.Name, wait, instance)...)
	s.run(open, sharesEnd)
	s.judge()
	rate, from := perSecondOf(&p), sharesFrom+settle(&p)
	all, rest := s.perSecond(-1, from, sharesTo), 0.0
	for i := len(p.Shares); i < len(s.callers); i++ {
		rest += s.perSecond(i, from, sharesTo)
	}
	t.Logf("%v %v, shares %v, others wait %v: all %.3f, others %.1f/s", p.Rate, p.Limits, p.Shares, wait, all/rate,
		rest)
	require.GreaterOrEqual(t, all, 0.95*rate)
	slack := 2 / (sharesTo - from).Seconds() // for the first and the last permit
	if sum >= 99 {
		require.LessOrEqual(t, rest, rate*float64(100-sum)/100+float64(100-sum)*slack)
	}
	for i, share := range p.Shares {
		got := s.perSecond(i, from, sharesTo)
		t.Logf("  share %s: %.1f of %.1f", share.Name, got, rate*float64(share.Percent)/100)
		require.GreaterOrEqual(t, got+slack, 0.95*rate*float64(share.Percent)/100, share.Name)
	}
	for _, free := range [][2]time.Duration{{2 * time.Second, sharesFrom},
		{sharesTo + pacing.KeptFor + time.Second, sharesEnd}} {
		require.GreaterOrEqual(t, s.perSecond(-1, free[0], free[1])+2/(free[1]-free[0]).Seconds(), 0.95*rate)
	}
}

// The method "sharing" returns two instances whose policy has the given pacers, and the common clock of both instances.
// Only the test advances this clock.
func (f *fixture) sharing(pacers ...pacing.Pacer) (one, two *pacing.Pacers, clock *testkit.Clock) {
	clock = testkit.NewClock()
	for _, p := range []**pacing.Pacers{&one, &two} {
		*p = pacing.New(f.store, &pacing.Policy{Pacers: pacers})
		(*p).SetClock(clock.Now)
	}
	return one, two, clock
}

func (f *fixture) takeOf(p *pacing.Pacers, call pacing.Call) *pacing.Answer {
	f.Helper()
	answer, err := p.Take(context.Background(), &call)
	require.NoError(f, err)
	require.Equal(f, call.Permits, answer.Granted+answer.Refused)
	require.Len(f, answer.States, len(call.Pacers))
	return answer
}

// sharesKept checks the number of permits that stay reserved for a share (reserved part of a pacer). No window or
// interval in sharesKept ends during the test.
func sharesKept(f *fixture) {
	otp := []pacing.Share{{Name: "otp", Percent: 20}}
	hour := pacing.Pacer{Name: Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Hour}}, Shares: otp}
	slow := pacing.Pacer{Name: Name(), Rate: pacing.Rate{Permits: 6, Per: time.Hour}, Shares: otp,
		MaxWait: pacing.MaxWait}
	here, there, clock := f.sharing(hour, slow)

	others := f.takeOf(here, pacing.Call{Pacers: []string{hour.Name}, Permits: 100})
	require.Equal(f, []int{80, 20}, []int{others.Granted, others.Refused}, "a long window keeps the part at all times")
	require.Equal(f, []int{0, pacing.ByShare}, []int{others.Target, others.Limit})
	require.Greater(f, others.Next, 59*time.Minute)
	require.Equal(f, 20, f.takeOf(there, pacing.Call{Pacers: []string{hour.Name}, Permits: 30, Share: "otp"}).Granted)
	require.Zero(f, f.takeOf(there, pacing.Call{Pacers: []string{hour.Name}, Permits: 1, ClientShare: "otp"}).Granted)
	require.Zero(f, f.takeOf(here, pacing.Call{Pacers: []string{hour.Name}, Permits: 0, Share: "otp"}).Granted)

	far := pacing.Call{Pacers: []string{slow.Name}, Permits: 10, MaxWait: pacing.MaxWait}
	others = f.takeOf(here, far)
	require.Equal(f, 3, others.Granted, "two intervals ahead")
	require.Equal(f, 30*time.Minute, others.At.Add(others.Next).Sub(slotsOf(&others.Grant)[0]))
	far.Share = "otp"
	own := f.takeOf(there, far)
	require.Equal(f, 10, own.Granted)
	for i, at := range slotsOf(&own.Grant) {
		require.Equal(f, 30*time.Minute+time.Duration(i)*50*time.Minute, at.Sub(slotsOf(&others.Grant)[0]))
	}
	clock.Advance(time.Second)
	far.Share = ""
	require.Zero(f, f.takeOf(here, far).Granted)

	_, err := here.Take(context.Background(), &pacing.Call{Pacers: []string{slow.Name}, Permits: 1, Share: "sms"})
	require.EqualError(f, err, `share: must be a share of one of the pacers, got "sms" (shares: otp)`)
	require.NoError(f, here.Forget(context.Background(), hour.Name))
	require.Equal(f, 80, f.takeOf(here, pacing.Call{Pacers: []string{hour.Name}, Permits: 100}).Granted,
		"the parts are forgotten, too")
}

// sharesOfAll checks pacers whose shares reserve all permits. While a share is in use, calls without a share get no
// permits, but a repeated call still gets the permits of its first attempt.
func sharesOfAll(f *fixture) {
	all := []pacing.Share{{Name: "otp", Percent: 60}, {Name: "alerts", Percent: 40}}
	hour := pacing.Pacer{Name: Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Hour}}, Shares: all}
	rate := pacing.Pacer{Name: Name(), Rate: pacing.Rate{Permits: 100, Per: time.Second}, Shares: all}
	plain := pacing.Pacer{Name: Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Hour}}}
	here, there, clock := f.sharing(hour, rate, plain)

	for _, pacers := range [][]string{{hour.Name}, {plain.Name, hour.Name}} {
		others := f.takeOf(here, pacing.Call{Pacers: pacers, Permits: 10, MaxWait: time.Second, Client: "c",
			RequestID: hour.Name})
		require.Zero(f, others.Granted, "a long window keeps the parts at all times")
		require.Equal(f, []int{len(pacers) - 1, pacing.ByShare}, []int{others.Target, others.Limit})
		require.Equal(f, time.Hour, others.Next)
	}
	require.Zero(f, f.takeOf(here, pacing.Call{Pacers: []string{hour.Name}, Permits: 1}).Granted)
	require.Equal(f, 60, f.takeOf(there, pacing.Call{Pacers: []string{hour.Name}, Permits: 100, Share: "otp"}).Granted)
	require.Equal(f, 40, f.takeOf(here, pacing.Call{Pacers: []string{hour.Name}, Permits: 40, Share: "alerts"}).Granted)

	call := pacing.Call{Pacers: []string{rate.Name}, Permits: 10, MaxWait: time.Second, Client: "c",
		RequestID: rate.Name}
	first := f.takeOf(here, call)
	require.Equal(f, 10, first.Granted, "no share is in use")
	for _, share := range []string{"otp", "alerts"} {
		require.Equal(f, 1, f.takeOf(there, pacing.Call{Pacers: []string{rate.Name}, Permits: 1, Share: share,
			MaxWait: 2 * time.Second}).Granted)
	}
	clock.Advance(time.Second) // the other instance reads the marks again
	again := f.takeOf(here, call)
	require.True(f, again.Replayed)
	require.Equal(f, 10, again.Granted)
	for range 2 {
		for _, request := range []string{"", rate.Name + "2"} {
			others := f.takeOf(here, pacing.Call{Pacers: []string{rate.Name}, Permits: 10, MaxWait: time.Second,
				Client: "c", RequestID: request})
			require.Zero(f, others.Granted)
			require.Equal(f, []int{0, pacing.ByShare}, []int{others.Target, others.Limit})
			require.Positive(f, others.Next)
			require.LessOrEqual(f, others.Next, pacing.KeptFor)
		}
	}
	require.Zero(f, f.takeOf(there, pacing.Call{Pacers: []string{rate.Name}, Permits: 1}).Granted)
	require.NoError(f, here.Forget(context.Background(), rate.Name)) // the marks last by the clock of the store
	clock.Advance(pacing.KeptFor)
	require.Equal(f, 1, f.takeOf(there, pacing.Call{Pacers: []string{rate.Name}, Permits: 1, MaxWait: time.Second}).
		Granted, "no share is in use any more")
}

// sharesRepeated tests a call of a share (reserved part of a pacer) that got permits in several steps. A repetition of
// the call must take no further permits.
func sharesRepeated(f *fixture) {
	hour := pacing.Pacer{Name: Name(), Limits: []pacing.Limit{{Max: 10, Window: time.Hour}},
		Shares: []pacing.Share{{Name: "otp", Percent: 50}}}
	one, two, _ := f.sharing(hour)
	call := func(request string, permits int) pacing.Call {
		return pacing.Call{Pacers: []string{hour.Name}, Permits: permits, Share: "otp", Client: "c",
			RequestID: hour.Name + request}
	}
	first := f.takeOf(one, call("a", 8))
	require.Equal(f, []int{8, 8}, []int{first.Granted, first.Fresh}, "five of its own and three of the rest")
	for range 2 {
		again := f.takeOf(two, call("a", 8))
		require.True(f, again.Replayed)
		require.Equal(f, slotsOf(&first.Grant), slotsOf(&again.Grant))
		require.Zero(f, again.Fresh)
	}
	few := f.takeOf(one, call("b", 5))
	require.Equal(f, []int{2, 3}, []int{few.Granted, few.Refused})
	require.NoError(f, one.Forget(context.Background(), hour.Name))
	again := f.takeOf(two, call("b", 5))
	require.Equal(f, []int{2, 3, 0}, []int{again.Granted, again.Refused, again.Fresh}, "though there is room now")
	_, err := one.Take(context.Background(), &pacing.Call{Pacers: []string{hour.Name}, Permits: 6, Share: "otp",
		Client: "c", RequestID: hour.Name + "b"})
	require.ErrorContains(f, err, "was used by an earlier request")
	require.Equal(f, 10, f.takeOf(two, call("c", 11)).Granted)
	require.Zero(f, f.takeOf(two, call("d", 1)).Granted)
	require.NoError(f, one.Forget(context.Background(), hour.Name))
	require.Equal(f, 1, f.takeOf(two, call("d", 1)).Granted, "what got nothing is not remembered")
}

// The type "late" is a store that replies only to the first step of a call. For the next step, this store returns an
// error, but keeps the request so that the test can send the request later.
type late struct {
	pacing.Store
	answered int // number of asks with a request id
	kept     *pacing.Ask
}

func (l *late) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if ask.Request != (pacing.Request{}) {
		if l.answered++; l.answered > 1 {
			l.kept = ask
			return pacing.Grant{}, context.DeadlineExceeded
		}
	}
	return l.Store.TakePermits(ctx, ask)
}

// lateStep checks a call with several steps. A repetition of the call must get the same slots, even if a step of the
// first attempt reaches the store only afterwards.
func lateStep(f *fixture) {
	pacer := pacing.Pacer{Name: Name(), Limits: []pacing.Limit{{Max: 10, Window: time.Hour}},
		Shares: []pacing.Share{{Name: "otp", Percent: 50}}}
	policy := &pacing.Policy{Pacers: []pacing.Pacer{pacer}}
	store := &late{Store: f.store}
	call := &pacing.Call{Pacers: []string{pacer.Name}, Permits: 8, Share: "otp", Client: "c", RequestID: "r"}
	_, err := pacing.New(store, policy).Take(context.Background(), call)
	require.ErrorIs(f, err, context.DeadlineExceeded)
	require.NotNil(f, store.kept, "the call needs a second step")
	var first *pacing.Answer
	for i := range 3 {
		again, err := pacing.New(f.store, policy).Take(context.Background(), call)
		require.NoError(f, err)
		if i == 0 {
			first = again
			grant, err := f.store.TakePermits(context.Background(), store.kept)
			require.NoError(f, err)
			require.Zero(f, grant.Granted, "it comes too late")
		}
		require.Equal(f, []int{5, 3, 0}, []int{again.Granted, again.Refused, again.Fresh})
		require.Equal(f, slotsOf(&first.Grant), slotsOf(&again.Grant))
	}
	require.Equal(f, 5, f.takeOf(pacing.New(f.store, policy), pacing.Call{Pacers: []string{pacer.Name}, Permits: 8,
		Share: "otp", Client: "c", RequestID: "s"}).Granted, "of the rest")
}

// sharesReturned checks that permits of a share (reserved part of a pacer), and of calls without a share, can be
// returned to a pacer.
func sharesReturned(f *fixture) {
	for _, share := range []string{"", "otp"} {
		slow := pacing.Pacer{Name: Name(), Rate: pacing.Rate{Permits: 6, Per: time.Hour}, MaxWait: pacing.MaxWait,
			Shares: []pacing.Share{{Name: "otp", Percent: 20}}}
		one, two, _ := f.sharing(slow)
		call := pacing.Call{Pacers: []string{slow.Name}, Permits: 3, MaxWait: pacing.MaxWait, Share: share, Client: "c",
			RequestID: slow.Name + share}
		first := slotsOf(&f.takeOf(one, call).Grant)
		require.Len(f, first, 3)
		if other := call; share != "" {
			other.Share = ""
			_, err := two.Return(context.Background(), &other, 0)
			require.ErrorContains(f, err, "or another message, key or share")
		}
		for _, back := range []int{2, 0} {
			given, err := two.Return(context.Background(), &call, 0)
			require.NoError(f, err)
			require.Equal(f, [2]int{back, 1}, [2]int{given.Permits, given.Kept})
			require.Equal(f, []int{back}, given.Targets)
		}
		call.RequestID, call.Permits = "", 2
		again := slotsOf(&f.takeOf(one, call).Grant)
		require.Equal(f, 10*time.Minute, again[0].Sub(first[0]), "the next interval is free again")
	}
}
