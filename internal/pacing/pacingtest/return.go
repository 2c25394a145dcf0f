package pacingtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// compareReturn describes the difference between the store's result for returned permits and the model's prediction. If
// the result and the prediction are equal, compareReturn returns "".
func (m *model) compareReturn(ask *pacing.Ask, used int, got *pacing.Returned) string {
	m.latest = max(m.latest, got.At)
	held, known := m.requests[ask.Request]
	if known && !got.Known && held.until <= m.latest { // remembered again if the store's clock goes back
		known = false
	}
	if known != got.Known || !known && (got.Permits != 0 || got.Kept != 0) {
		return fmt.Sprintf("known %t, %d permits", got.Known, got.Permits)
	}
	if !known {
		return ""
	}
	kept := min(used, len(held.slots))
	for kept < len(held.slots) && held.slots[kept] <= got.At {
		kept++
	}
	back := held.slots[kept:]
	given := pacing.Grant{At: got.At, Runs: got.Runs}
	if got.Kept != kept || got.Permits != len(back) || !slices.Equal(slotsOf(&given), back) {
		return fmt.Sprintf("%d permits back and %d kept, not %d and %d", got.Permits, got.Kept, len(back), kept)
	}
	for i := range ask.Targets {
		if differs := m.removed(&ask.Targets[i], held.logs, back, got.Targets[i]); differs != "" {
			return differs
		}
	}
	held.slots = held.slots[:kept:kept]
	m.requests[ask.Request] = held
	return ""
}

// The method "removed" removes the returned slots from the model's log of the target. The method "removed" also
// describes the difference between the store's and the model's number of removed slots. If the difference is allowed,
// the method "removed" returns "".
func (m *model) removed(target *pacing.Target, logs []*single, back []pacing.Time, got int) string {
	log := m.logs[nameOf(target)]
	switch {
	case log == nil || !slices.Contains(logs, log) || len(back) == 0, m.forgotten[target.Pacer] && got == 0:
		if got != 0 {
			return fmt.Sprintf("%d slots of %s removed, which has none", got, nameOf(target))
		}
		return ""
	}
	var grant pacing.Log
	for _, at := range back {
		grant.Append(at, 0, 1, 1)
	}
	n := int(log.split.Return(strandsOf(&grant), target.Limits))
	want := slices.Clone(log.slots)
	for _, at := range back {
		if i := slices.Index(want, at); i >= 0 {
			want = slices.Delete(want, i, i+1)
		}
	}
	log.slots = everySlot(&log.split)
	log.loose = log.loose || len(log.split.Ahead) > 0 && len(log.slots)-int(log.split.Total) > exactAhead
	switch {
	case n == got && (n < len(back) || slices.Equal(log.slots, want)):
		return ""
	case log.loose || n < len(back) || 0 < got && got < len(back): // the store's runs may match other slots
		log.loose = true
		return ""
	}
	return fmt.Sprintf("%d slots of %s removed, not %d of %d", got, nameOf(target), n, len(back))
}

// strandsOf converts the runs of a log to strands (series of slots). No permit of the log may have been returned.
func strandsOf(log *pacing.Log) (strands []pacing.Strand) {
	for i, r := range log.Runs {
		end := log.Total
		if i+1 < len(log.Runs) {
			end = log.Runs[i+1].First
		}
		strands = append(strands, pacing.Strand{At: r.At, Every: r.Every, Burst: r.Burst, Permits: end - r.First})
	}
	return strands
}

// everySlot returns all slots of a log in ascending order.
func everySlot(log *pacing.Log) (slots []pacing.Time) {
	for _, s := range append(strandsOf(log), log.Ahead...) {
		for k := range s.Permits {
			slots = append(slots, s.At+pacing.Time(k/s.Burst*s.Every))
		}
	}
	slices.Sort(slots)
	return slots
}

// giveBack returns permits to the store under test, and checks that the result equals the model's prediction.
func (f *fixture) giveBack(ask *pacing.Ask, used int) pacing.Returned {
	f.Helper()
	f.oracle.GiveUp(ask, used)
	back, err := f.store.ReturnPermits(context.Background(), ask, used)
	require.NoError(f, err)
	require.Len(f, back.Targets, len(ask.Targets))
	require.Empty(f, f.model.compareReturn(ask, used, &back), "used %d: %+v", used, back)
	f.oracle.Return(ask, &back)
	return back
}

// givenBackBeforeBursts checks that later permits get exactly the returned slots, even before a special queue of slots.
// In the special queue, a rate fills one window of a limit after the other.
func givenBackBeforeBursts(f *fixture) {
	for i, most := range []int{10, 5} {
		of := target(spaced([]time.Duration{time.Minute, 33334 * time.Millisecond}[i]),
			pacing.Limit{Max: most, Window: 20 * time.Minute})
		require.Equal(f, 20, f.takeAll(20, 23*time.Hour, of))
		request := requested(ask(13, 23*time.Hour, of), Request())
		grant := f.take(request)
		require.Equal(f, 13, grant.Granted)
		require.Equal(f, 300, f.takeAll(300, 23*time.Hour, of))
		require.Equal(f, []int{13}, f.giveBack(request, 0).Targets)
		again := f.take(ask(13, 23*time.Hour, of))
		require.Equal(f, slotsOf(&grant), slotsOf(&again))
	}
}

// givenBack checks that a return removes each permit once, from all targets of the request. A return must remove no
// permit whose slot is not in the future.
func givenBack(f *fixture) {
	long, even := target(pacing.Limit{Max: 100, Window: day}), target(spaced(time.Minute))
	request := requested(ask(60, time.Hour, long, even), Request())
	require.Equal(f, 60, f.take(request).Granted)
	require.Equal(f, 40, f.take(ask(50, time.Hour, long)).Granted)
	back := f.giveBack(request, 20)
	require.Equal(f, pacing.Returned{At: back.At, Known: true, Kept: 20, Permits: 40, Runs: back.Runs,
		Targets: []int{40, 40}}, back)
	again := f.take(request)
	require.True(f, again.Replayed)
	require.Equal(f, 20, again.Granted, "only what stayed")
	require.Equal(f, 0, f.giveBack(request, 20).Permits, "twice is once")
	require.Equal(f, 40, f.take(ask(50, time.Hour, long)).Granted, "the day has them again")
	require.Equal(f, 20*time.Minute, f.take(ask(0, 0, even)).Next.Round(10*time.Minute))
	require.Equal(f, 19, f.giveBack(request, 0).Permits, "the first slot has come")
	unknown := f.giveBack(requested(ask(60, time.Hour, long, even), Request()), 0)
	require.Equal(f, pacing.Returned{At: unknown.At, Targets: []int{0, 0}}, unknown)
	_, err := f.store.ReturnPermits(f.Context(), requested(ask(61, time.Hour, long, even), request.Request), 0)
	require.ErrorAs(f, err, new(*pacing.ReuseError))
}

// returnedRoom checks that the slots of returned permits are free again, and that later permits get these slots first.
func returnedRoom(f *fixture) {
	even := target(spaced(10 * time.Second))
	requests := [3]*pacing.Ask{}
	for i := range requests {
		requests[i] = requested(ask(20, day, even), Request())
		f.take(requests[i])
	}
	require.Equal(f, []int{20}, f.giveBack(requests[1], 0).Targets)
	got := f.take(ask(20, 400*time.Second, even))
	require.Equal(f, 20, got.Granted, "between the slots of the others")
	require.Zero(f, f.take(ask(1, 400*time.Second, even)).Granted)
	require.Equal(f, []int{20}, f.giveBack(requests[2], 0).Targets, "the end of the log")
	require.Equal(f, 20, f.take(ask(20, 600*time.Second, even)).Granted)

	slow, fast := target(spaced(time.Minute)), target(spaced(time.Second))
	shared := requested(ask(30, time.Hour, slow, fast), Request())
	f.take(shared)
	f.takeAll(1000, time.Hour, fast)
	require.Equal(f, []int{29, 29}, f.giveBack(shared, 0).Targets)
	f.takeAll(40, time.Hour, fast)

	burst := target(pacing.Limit{Max: 50, Window: time.Minute})
	bursts := [4]*pacing.Ask{}
	for i := range bursts {
		bursts[i] = requested(ask(50, time.Hour, burst), Request())
		f.take(bursts[i])
	}
	require.Equal(f, []int{50}, f.giveBack(bursts[2], 0).Targets)
	require.Equal(f, []int{40}, f.giveBack(bursts[1], 10).Targets)
	require.Equal(f, 90, f.take(ask(100, 150*time.Second, burst)).Granted)
}

// returnedAndForgotten checks that a return removes no slots from a pacer's new log if ForgetPacer removed the old log
// after the request.
func returnedAndForgotten(f *fixture) {
	one, other := target(spaced(time.Minute)), target(spaced(time.Minute))
	request := requested(ask(5, time.Hour, one, other), Request())
	f.take(request)
	require.NoError(f, f.store.ForgetPacer(f.Context(), one.Pacer, ""))
	f.model.forget(one.Pacer)
	f.oracle.Forget(one.Pacer)
	f.take(ask(5, time.Hour, one))
	require.Equal(f, []int{0, 4}, f.giveBack(request, 0).Targets)
	require.Zero(f, f.take(ask(1, 4*time.Minute, one)).Granted)
	require.Equal(f, 4, f.take(ask(4, 270*time.Second, other)).Granted)
}

// returnedConcurrently tests several callers that take, repeat and return permits of the same requests at the same
// time.
func returnedConcurrently(f *fixture) {
	const most, callers, rounds = 300, 6, 15
	one, even := target(pacing.Limit{Max: most, Window: day}), target(spaced(100*time.Millisecond),
		pacing.Limit{Max: 100, Window: time.Minute})
	requests := make([]*pacing.Ask, rounds)
	for i := range requests {
		requests[i] = requested(ask(1+i, time.Hour, one, even), Request())
	}
	var calls sync.WaitGroup
	var stayed atomic.Int64 // returned permits that the log could not remove
	start, errs := make(chan struct{}), make([]error, callers)
	for call := range callers {
		calls.Go(func() {
			<-start
			for i := range requests {
				errs[call] = errors.Join(errs[call], f.takeAndReturn(requests[(i+call)%rounds], call%2*(i%4),
					&stayed))
			}
		})
	}
	close(start)
	calls.Wait()
	require.NoError(f, errors.Join(errs...))
	kept := 0
	for _, request := range requests {
		back, err := f.store.ReturnPermits(f.Context(), request, 3)
		require.NoError(f, err)
		require.True(f, back.Known)
		kept += back.Kept
		stayed.Add(int64(back.Permits - back.Targets[0]))
	}
	got, err := f.store.TakePermits(f.Context(), ask(0, 0, one))
	require.NoError(f, err)
	require.Equal(f, kept+int(stayed.Load()), got.States[0].Used[0], "the log has what the requests kept")
}

// takeAndReturn takes the permits of a request and returns all except the first "used" permits. The method
// takeAndReturn adds to the counter "stayed" the returned permits that the store could not remove from the log of the
// first target.
func (f *fixture) takeAndReturn(ask *pacing.Ask, used int, stayed *atomic.Int64) error {
	grant, err := f.store.TakePermits(f.Context(), ask)
	if err != nil {
		return err
	}
	back, err := f.store.ReturnPermits(f.Context(), ask, used)
	if err == nil && (back.Permits > grant.Granted || back.Kept > ask.Permits) {
		err = fmt.Errorf(
			"return permits: %d of %d granted permits were returned, and %d of %d requested permits were kept",
			back.Permits, grant.Granted, back.Kept,
			ask.Permits)
	}
	if err == nil {
		stayed.Add(int64(back.Permits - back.Targets[0]))
	}
	return err
}

// returnedParts tests a call that took its permits in several steps. A return must give back the permits of all steps.
func returnedParts(f *fixture) {
	irregular := seeded(f, 40)
	pacers := pacing.New(f.store, &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: irregular.Pacer, Limits: irregular.Limits, MaxWait: time.Hour}}})
	call := &pacing.Call{Pacers: []string{irregular.Pacer}, Permits: 3000, MaxWait: time.Hour, RequestID: Name()}
	take := func(want int) {
		f.Helper()
		answer, err := pacers.Take(f.Context(), call)
		require.NoError(f, err)
		require.Equal(f, want, answer.Granted)
	}
	giveBack := func(used, had int) (kept int) {
		f.Helper()
		back, err := pacers.Return(f.Context(), call, used)
		require.NoError(f, err)
		require.True(f, back.Known)
		require.GreaterOrEqual(f, back.Kept, min(used, had), "more, when the slots of some more have come")
		require.Equal(f, had-back.Kept, back.Permits)
		require.LessOrEqual(f, back.Targets[0], back.Permits, "a log may have dropped slots that no limit could see")
		take(back.Kept)
		return back.Kept
	}
	take(3000)
	kept := giveBack(2100, 3000)
	require.Equal(f, kept, giveBack(2200, kept))
	giveBack(900, kept)
	call.RequestID = Name()
	take(3000)
	giveBack(2999, 3000)
	_, err := pacers.Return(f.Context(), &pacing.Call{Pacers: call.Pacers, Permits: 3000}, 0)
	require.ErrorAs(f, err, new(*pacing.FieldError))
}
