package pacingtest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// impatient are callers without a wait, on a clock of their own. Each one calls again when it has used its permit, and
// after a refusal when the wait is over that it was told.
type impatient struct {
	pacers  []string
	callers int
	atOnce  bool // calls again at once after a refusal
}

// hurry runs the callers for four seconds and returns, for the last three, the share of its rate that each pacer gave
// out. A permit whose slot is not there when the answer comes fails the test.
func hurry(t *testing.T, policy *pacing.Policy, groups []impatient) map[string]float64 {
	t.Helper()
	slots, shares, early := map[string][]pacing.Time{}, map[string]float64{}, 0
	synctest.Test(t, func(t *testing.T) {
		p := pacing.New(NewMemory(time.Now), policy)
		ctx, cancel := context.WithCancel(t.Context())
		from := pacing.TimeOf(time.Now().Add(time.Second))
		var mu sync.Mutex
		var callers sync.WaitGroup
		call := func(rng *rand.Rand, group *impatient) {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(100+rng.IntN(900)) * time.Microsecond) // the way to the service
				answer, err := p.Take(ctx, &pacing.Call{Pacers: group.pacers, Permits: 1})
				if err != nil {
					return
				}
				now, given := pacing.TimeOf(time.Now()), slotsOf(&answer.Grant)
				time.Sleep(time.Duration(100+rng.IntN(900)) * time.Microsecond) // and back
				mu.Lock()
				for _, at := range given {
					if at > now {
						early++
					}
					for _, name := range group.pacers {
						slots[name] = append(slots[name], at)
					}
				}
				mu.Unlock()
				if answer.Granted == 0 && !group.atOnce {
					time.Sleep(answer.Next)
				}
			}
		}
		for i := range groups {
			for k := range groups[i].callers {
				callers.Go(func() { call(rand.New(rand.NewPCG(uint64(i), uint64(k))), &groups[i]) })
			}
		}
		time.Sleep(4 * time.Second)
		cancel()
		callers.Wait()
		for i := range policy.Pacers {
			pacer := &policy.Pacers[i]
			given := slices.DeleteFunc(slots[pacer.Name], func(at pacing.Time) bool {
				return at < from || at >= from.Add(3*time.Second)
			})
			shares[pacer.Name] = float64(len(given)) / perSecondOf(pacer) / 3
		}
	})
	require.Zero(t, early, "permits that came before their slots")
	return shares
}

// TestCallsWithoutAWaitShare runs callers without a wait at one to three pacers beside callers of the fast one alone.
// Each pacer gives out its rate.
func TestCallsWithoutAWaitShare(t *testing.T) {
	t.Parallel()
	named := func(name string, pacer pacing.Pacer) pacing.Pacer {
		pacer.Name = name
		return pacer
	}
	policy := &pacing.Policy{Pacers: []pacing.Pacer{shared(250), named("marketing", shared(50)),
		named("campaign", shared(10))}}
	for _, atOnce := range []bool{false, true} {
		for _, callers := range []int{1, 8} {
			for _, mix := range [][]impatient{
				{{[]string{"marketing", "carrier"}, callers, atOnce},
					{[]string{"carrier", "campaign"}, callers, atOnce}},
				{{[]string{"campaign", "marketing", "carrier"}, callers, atOnce},
					{[]string{"marketing", "carrier"}, callers, atOnce}},
			} {
				shares := hurry(t, policy, append(mix, impatient{[]string{"carrier"}, 12, atOnce}))
				t.Logf("%+v: %v", mix, shares)
				for i := range policy.Pacers {
					require.GreaterOrEqual(t, shares[policy.Pacers[i].Name], 0.95, policy.Pacers[i].Name)
				}
			}
		}
	}
}

// TestACallWithoutAWaitIsHeldForOneSlot checks who is held, and what a call that is not held gets.
func TestACallWithoutAWaitIsHeldForOneSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		windowed := pacing.Pacer{Name: "window", Limits: []pacing.Limit{{Max: 2, Window: 8 * time.Millisecond}}}
		slow := shared(50)
		slow.Name = "slow"
		p := pacing.New(NewMemory(time.Now), &pacing.Policy{Pacers: []pacing.Pacer{shared(250), slow, windowed}})
		take := func(permits int, pacers ...string) (*pacing.Answer, time.Duration) {
			began := time.Now()
			answer, err := p.Take(t.Context(), &pacing.Call{Pacers: pacers, Permits: permits})
			require.NoError(t, err)
			for _, at := range slotsOf(&answer.Grant) {
				require.LessOrEqual(t, at, pacing.TimeOf(time.Now()))
			}
			return answer, time.Since(began)
		}
		got, held := take(10, "carrier") // one is there
		require.Equal(t, []any{1, 9, time.Duration(0)}, []any{got.Granted, got.Refused, held})
		require.Equal(t, time.Millisecond, got.Next, "a call that comes then is held")
		got, held = take(10, "carrier") // none is there, and one is near
		require.Equal(t, []any{1, 9, 4 * time.Millisecond}, []any{got.Granted, got.Refused, held})
		got, held = take(1, "carrier")
		require.Equal(t, []any{1, 4 * time.Millisecond}, []any{got.Granted, held})

		time.Sleep(time.Second)
		take(1, "slow", "carrier")
		got, held = take(1, "slow", "carrier") // the next slot is 20 ms away
		require.Equal(t, []any{0, time.Duration(0)}, []any{got.Granted, held})
		require.Equal(t, 11*time.Millisecond, got.Next)
		time.Sleep(got.Next)
		got, held = take(1, "slow", "carrier")
		require.Equal(t, []any{1, 9 * time.Millisecond}, []any{got.Granted, held})

		got, held = take(3, "window") // a pacer without a rate holds nobody who is alone
		require.Equal(t, []any{2, time.Duration(0)}, []any{got.Granted, held})
		got, held = take(1, "window")
		require.Equal(t, []any{0, time.Duration(0), 8 * time.Millisecond}, []any{got.Granted, held, got.Next})
	})
}

// TestARepetitionIsHeldToo repeats a call without a wait while its slot is ahead, and one with a wait without it.
func TestARepetitionIsHeldToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pacing.New(NewMemory(time.Now), &pacing.Policy{Pacers: []pacing.Pacer{shared(250)}})
		call := func(id string, wait time.Duration) *pacing.Call {
			return &pacing.Call{Pacers: []string{"carrier"}, Permits: 1, MaxWait: wait, Client: "c", RequestID: id}
		}
		_, err := p.Take(t.Context(), call("first", 0))
		require.NoError(t, err)
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = p.Take(gone, call("second", 0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		again, err := p.Take(t.Context(), call("second", 0))
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, []pacing.Time{pacing.TimeOf(time.Now())}, slotsOf(&again.Grant))

		for range 10 {
			_, err = p.Take(t.Context(), call(Name(), time.Second))
			require.NoError(t, err)
		}
		_, err = p.Take(t.Context(), call("far", time.Second))
		require.NoError(t, err)
		began := time.Now()
		again, err = p.Take(t.Context(), call("far", 0))
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		require.Equal(t, 44*time.Millisecond, again.Runs[0].Wait)
	})
}
