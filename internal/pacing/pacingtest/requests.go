package pacingtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

func sameRequest(f *fixture) {
	one, two := target(pacing.Limit{Max: 10, Window: time.Hour}), target(spaced(time.Second))
	request := Request()
	first := f.take(requested(ask(8, 5*time.Second, one, two), request))
	require.Equal(f, 6, first.Granted, "in 0 to 5 s")
	for _, wait := range []time.Duration{5 * time.Second, 0, time.Hour} {
		again := f.take(requested(ask(8, wait, one, two), request))
		require.True(f, again.Replayed)
		require.Equal(f, first.At.Sub(again.At), again.Runs[0].Wait, "the wait that remains")
		require.Equal(f, slotsOf(&first), slotsOf(&again))
	}
	require.Equal(f, []int{6}, f.take(ask(0, 0, one)).States[0].Used, "taken once")
	require.Equal(f, 4, f.take(requested(ask(9, time.Minute, one), Request())).Granted)

	// A changed limit does not change permits that were granted before.
	one.Limits = []pacing.Limit{{Max: 3, Window: 2 * time.Hour}}
	require.Equal(f, 6, f.take(requested(ask(8, 5*time.Second, one, two), request)).Granted)

	irregular, request := seeded(f, 40), Request()
	long := f.take(requested(ask(5000, time.Hour, irregular), request))
	require.True(f, long.More)
	again := f.take(requested(ask(5000, time.Hour, irregular), request))
	require.True(f, again.More)
	require.Equal(f, slotsOf(&long), slotsOf(&again))
}

func reusedRequest(f *fixture) {
	one, two := target(pacing.Limit{Max: 10, Window: time.Hour}), target(pacing.Limit{Max: 10, Window: time.Hour})
	message, request := one, Request()
	message.Message = "0123456789ab"
	f.take(requested(ask(3, 0, one), request))
	for _, other := range []*pacing.Ask{ask(4, 0, one), ask(3, 0, two), ask(3, 0, one, two), ask(3, 0, message)} {
		_, err := f.store.TakePermits(context.Background(), requested(other, request))
		require.ErrorAs(f, err, new(*pacing.ReuseError))
	}
	require.Equal(f, []int{3}, f.take(ask(0, 0, one)).States[0].Used)
	require.Equal(f, []int{0}, f.take(ask(0, 0, two)).States[0].Used)
	require.True(f, f.take(requested(ask(3, 0, one), request)).Replayed)
}

// emptyRequest checks a request that got no permits. A repetition of the request must get permits that are available at
// the time of the repetition.
func emptyRequest(f *fixture) {
	one, request := target(pacing.Limit{Max: 1, Window: time.Hour}), Request()
	f.take(ask(1, 0, one))
	require.Zero(f, f.take(requested(ask(1, 0, one), request)).Granted)
	got := f.take(requested(ask(1, time.Hour, one), request))
	require.Equal(f, 1, got.Granted)
	require.False(f, got.Replayed)
	require.True(f, f.take(requested(ask(1, 0, one), request)).Replayed)
}

// continuedRequest checks requests that ask the store in several steps. The function continuedRequest also checks that
// the store rejects a repetition with a different Content. The store remembers a step that continues a request even if
// the step got no permits.
func continuedRequest(f *fixture) {
	one, two := target(pacing.Limit{Max: 1, Window: time.Hour}), target(spaced(time.Millisecond))
	next := requested(ask(1, 0, one, two), Request())
	next.Continues, next.Content = true, [8]byte{1}
	f.take(ask(1, 0, one))
	got := f.take(next)
	require.Zero(f, got.Granted)
	require.False(f, got.Replayed)
	wider := one
	wider.Limits = []pacing.Limit{{Max: 2, Window: time.Hour}}
	next.Targets = []pacing.Target{wider}
	again, err := f.store.TakePermits(context.Background(), next)
	require.NoError(f, err)
	require.True(f, again.Replayed)
	require.Zero(f, again.Granted, "though there is room now")
	next.Content = [8]byte{2}
	_, err = f.store.TakePermits(context.Background(), next)
	require.ErrorAs(f, err, new(*pacing.ReuseError))
}

// endedRequest checks that a request for permits with the field Ends takes no permits. Later requests with the same
// request id must also take no permits. A request that already has permits keeps them.
func endedRequest(f *fixture) {
	one, two := target(pacing.Limit{Max: 3, Window: time.Hour}), target(spaced(time.Millisecond))
	for _, targets := range [][]pacing.Target{{one}, {one, two}} {
		end := requested(ask(3, time.Second, targets...), Request())
		end.Ends, end.Content = true, [8]byte{1}
		late := *end
		late.Ends = false
		for i, ask := range []*pacing.Ask{end, &late, end} {
			grant, err := f.store.TakePermits(context.Background(), ask)
			require.NoError(f, err)
			require.Zero(f, grant.Granted)
			require.Equal(f, i > 0, grant.Replayed)
			require.False(f, grant.More)
		}
		require.Equal(f, []int{0}, f.take(ask(0, 0, one)).States[0].Used)
		other := late
		other.Content = [8]byte{2}
		_, err := f.store.TakePermits(context.Background(), &other)
		require.ErrorAs(f, err, new(*pacing.ReuseError))
	}
	kept := requested(ask(2, time.Second, one, two), Request())
	first := f.take(kept)
	kept.Ends = true
	again, err := f.store.TakePermits(context.Background(), kept)
	require.NoError(f, err)
	require.True(f, again.Replayed)
	require.Equal(f, slotsOf(&first), slotsOf(&again))
}

func concurrentRequest(f *fixture) {
	one, two := target(pacing.Limit{Max: 1000, Window: day}), target(spaced(time.Millisecond))
	const rounds, permits = 20, 9
	requests := make([]pacing.Request, rounds)
	for i := range requests {
		requests[i] = Request()
	}
	f.together(6, func(int) (asks []*pacing.Ask) {
		for _, request := range requests {
			asks = append(asks, requested(ask(permits, time.Minute, one, two), request))
		}
		return asks
	})
	got, err := f.store.TakePermits(context.Background(), ask(0, 0, one))
	require.NoError(f, err)
	require.Equal(f, []int{rounds * permits}, got.States[0].Used, "each once")
	require.Equal(f, rounds*permits, f.oracle.Granted(&one))
}

func concurrent(f *fixture) {
	const most = 700
	one, even := target(pacing.Limit{Max: most, Window: day}), target(spaced(time.Millisecond),
		pacing.Limit{Max: 50, Window: time.Second})
	own := [16]pacing.Target{}
	for i := range own {
		own[i] = target(pacing.Limit{Max: 30, Window: day})
	}
	f.together(len(own), func(call int) (asks []*pacing.Ask) {
		for i := range 10 {
			asks = append(asks, ask(1+i*call%13, 0, one), ask(i+1, time.Minute, even), ask(5, 0, own[call]))
		}
		return asks
	})
	require.Equal(f, most, f.oracle.Granted(&one))
	for i := range own {
		require.Equal(f, 30, f.oracle.Granted(&own[i]))
	}
}

// concurrentOrders makes two kinds of requests at the same time, which take permits of the same targets, but in
// opposite orders. If a store locked the logs in the order of the request's targets, this test would show a deadlock.
func concurrentOrders(f *fixture) {
	const most = 400
	a, b, c := target(pacing.Limit{Max: most, Window: day}), target(pacing.Limit{Max: most, Window: day}),
		target(spaced(time.Millisecond))
	f.together(8, func(call int) (asks []*pacing.Ask) {
		for i := range 12 {
			orders := [][]pacing.Target{{a, b}, {b, a}, {c, b, a}, {a, c, b}}
			asks = append(asks, ask(7, time.Hour, orders[(call+i)%len(orders)]...))
		}
		return asks
	})
	require.Equal(f, most, f.oracle.Granted(&a))
	require.Equal(f, most, f.oracle.Granted(&b))
	require.LessOrEqual(f, f.oracle.Granted(&c), most)
}
