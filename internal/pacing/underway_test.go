package pacing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// slowStore answers each call after a second.
type slowStore struct{ *pacingtest.Memory }

func (s slowStore) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	time.Sleep(time.Second)
	return s.Memory.TakePermits(ctx, ask)
}

// A repetition that comes while the call is still asking gets the whole grant. The call of a share asks in three steps.
func TestARepetitionWaitsForTheCallUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pacing.New(slowStore{pacingtest.NewMemory(time.Now)}, &pacing.Policy{Pacers: []pacing.Pacer{{Name: "e",
			Rate: pacing.Rate{Permits: 200, Per: time.Second}, MaxWait: 5 * time.Second,
			Shares: []pacing.Share{{Name: "otp", Percent: 20}}}}})
		call := pacing.Call{Pacers: []string{"e"}, Permits: 30, MaxWait: 3 * time.Second, Share: "otp", RequestID: "x"}
		answers := make([]*pacing.Answer, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 500 * time.Millisecond)
				answer, err := p.Take(t.Context(), &call)
				assert.NoError(t, err)
				answers[i] = answer
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		time.Sleep(100 * time.Millisecond)
		_, err := p.Take(ctx, &call)
		require.ErrorIs(t, err, context.DeadlineExceeded, "its time was up before the call ended")
		other := call
		other.RequestID, other.Share, other.Permits = "y", "", 1
		began := time.Now()
		_, err = p.Take(t.Context(), &other)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 4*time.Second, "another request waits for nobody")
		all.Wait()
		replayed := 0
		for _, answer := range answers {
			require.Equal(t, 30, answer.Granted)
			if answer.Replayed {
				replayed++
			}
		}
		require.Equal(t, 7, replayed)
	})
}

// sharing returns the pacer e with a rate a second, of which the share otp has a fifth, and its store.
func sharing(rate int, clock *time.Time) (*pacing.Pacers, *pacingtest.Memory) {
	now := func() time.Time { return *clock }
	store := pacingtest.NewMemory(now)
	p := pacing.New(store, &pacing.Policy{Pacers: []pacing.Pacer{{Name: "e", MaxWait: 5 * time.Second,
		Rate: pacing.Rate{Permits: rate, Per: time.Second}, Shares: []pacing.Share{{Name: "otp", Percent: 20}}}}})
	p.SetClock(now)
	return p, store
}

// The used permits of a call stay, whichever step gave them, and in whatever order their slots are.
func TestUsedPermitsOfSeveralStepsStay(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 3, 18, 14, 0, 0, 0, time.UTC)
	p, _ := sharing(200, &clock)
	slots := func(a *pacing.Answer) (slots []pacing.Time) {
		for _, run := range a.Runs {
			for k := range run.Permits {
				slots = append(slots, a.At.Add(run.WaitOf(k)))
			}
		}
		return slots
	}
	for used := range 31 {
		call := &pacing.Call{Pacers: []string{"e"}, Permits: 30, MaxWait: 3 * time.Second, Share: "otp",
			RequestID: string(rune('a' + used))}
		first, err := p.Take(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, 30, first.Granted)
		back, err := p.Return(t.Context(), call, used)
		require.NoError(t, err)
		again, err := p.Take(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, 30-back.Permits, again.Granted)
		require.Subset(t, slots(again), slots(first)[:used], "used %d", used)
		if used == 0 {
			require.LessOrEqual(t, again.Granted, 1, "the slot of now has passed")
		}
		clock = clock.Add(10 * time.Second)
	}
}

// A repetition gets the permits that a return has left, whichever step gave them, also when the return emptied the
// steps before. A step that comes after the return takes nothing.
func TestARepetitionGetsWhatAReturnLeft(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 3, 18, 14, 0, 0, 0, time.UTC)
	p, store := sharing(250, &clock)
	call := func(id string, permits int, wait time.Duration) *pacing.Call {
		return &pacing.Call{Pacers: []string{"e"}, Permits: permits, MaxWait: wait, Share: "otp", RequestID: id}
	}
	emptied := 0
	for first := range 12 {
		for pause := range 20 {
			_, err := p.Take(t.Context(), call("", 1+first, 20*time.Millisecond))
			require.NoError(t, err)
			clock = clock.Add(30 * time.Millisecond)
			id := fmt.Sprint(first, ".", pause)
			given, err := p.Take(t.Context(), call(id, 6, 200*time.Millisecond))
			require.NoError(t, err)
			clock = clock.Add(time.Duration(pause) * 3 * time.Millisecond)
			back, err := p.Return(t.Context(), call(id, 6, 200*time.Millisecond), 0)
			require.NoError(t, err)
			require.Equal(t, given.Granted, back.Permits+back.Kept)
			records := store.Requests()
			for range 3 {
				_, err := p.Return(t.Context(), call(id, 6, 200*time.Millisecond), back.Kept)
				require.NoError(t, err)
				again, err := p.Take(t.Context(), call(id, 6, 200*time.Millisecond))
				require.NoError(t, err)
				require.Equal(t, []int{back.Kept, 0}, []int{again.Granted, again.Fresh}, id)
			}
			require.Equal(t, records, store.Requests(), "repetitions leave no records")
			if back.Permits > 0 && back.Kept > 0 {
				emptied++
			}
			clock = clock.Add(time.Second)
		}
	}
	require.Greater(t, emptied, 50, "returns of a part")
}

// oddStore fails to return permits of the pacer odd.
type oddStore struct{ *pacingtest.Memory }

func (s oddStore) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	if ask.Targets[0].Pacer == "odd" {
		return pacing.Returned{}, errors.New("odd")
	}
	return s.Memory.ReturnPermits(ctx, ask, used)
}

// A lease whose permits cannot be returned delays the return of no other permits.
func TestLeasesThatCannotEndStopNoOthers(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	rate := pacing.Rate{Permits: 1, Per: time.Second}
	p := pacing.New(oddStore{pacingtest.NewMemory(clock.Now)}, &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: "odd", Rate: rate}, {Name: "even", Rate: rate}}})
	for i, pacer := range []string{"odd", "odd", "even", "odd", "odd"} {
		_, err := p.Take(t.Context(), &pacing.Call{Pacers: []string{pacer}, Permits: 4, MaxWait: 20 * time.Second,
			RequestID: fmt.Sprint(i), Lease: pacing.MinLease})
		require.NoError(t, err)
	}
	clock.Advance(2 * time.Second)
	for _, freed := range []int{1, 0} {
		pacers, err := p.ReturnEnded(t.Context())
		require.EqualError(t, err, "odd\nodd\nodd\nodd")
		require.Len(t, pacers, freed)
	}
	standings, _, err := p.Look(t.Context(), "even")
	require.NoError(t, err)
	require.Zero(t, standings[0].Queue, "all its slots went back")
}

// When a reload removes one pacer of a call, the permits of the call still go back to the others.
func TestPermitsGoBackToThePacersThatAreLeft(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	otp := []pacing.Share{{Name: "otp", Percent: 20}}
	both := []pacing.Pacer{{Name: "a", Rate: pacing.Rate{Permits: 10, Per: time.Second}},
		{Name: "b", Rate: pacing.Rate{Permits: 100, Per: time.Second}, Shares: otp}}
	p := pacing.New(pacingtest.NewMemory(clock.Now), &pacing.Policy{Pacers: both})
	take := func(id string, lease time.Duration) *pacing.Call {
		call := &pacing.Call{Pacers: []string{"b", "a"}, Permits: 50, MaxWait: 20 * time.Second, RequestID: id,
			Share: "otp", Lease: lease}
		answer, err := p.Take(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, 50, answer.Granted)
		return call
	}
	leased, returned := take("leased", pacing.MinLease), take("returned", 0)
	p.SetPolicy(&pacing.Policy{Pacers: both[:1]})
	back, err := p.Return(t.Context(), returned, 0)
	require.NoError(t, err)
	require.Equal(t, 50, back.Permits)
	require.Equal(t, []int{50}, back.Targets)
	clock.Advance(1500 * time.Millisecond)
	pacers, err := p.ReturnEnded(t.Context())
	require.NoError(t, err)
	require.Len(t, pacers, 1)
	standings, _, err := p.Look(t.Context(), "a")
	require.NoError(t, err)
	require.Zero(t, standings[0].Queue)

	for _, names := range [][]string{{"a", "c"}, {"c"}} {
		call := *leased
		call.Pacers, call.RequestID = names, "unknown"
		_, err := p.Return(t.Context(), &call, 0)
		require.ErrorContains(t, err, "must be a configured pacer, got ", "no call took permits of c")
	}
	call := *leased
	call.Pacers = []string{"a", "c"}
	_, err = p.Return(t.Context(), &call, 0)
	require.ErrorContains(t, err, "was used by an earlier request with other pacers")
}
