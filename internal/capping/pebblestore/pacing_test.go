package pebblestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/storetest"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

func openPacing(t *testing.T) pacing.Store {
	s, err := Open(t.Context(), Config{Path: t.TempDir(), Clock: time.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestPacing(t *testing.T) {
	t.Parallel()
	pacingtest.Run(t, openPacing)
}

func TestPacingOnAClock(t *testing.T) {
	t.Parallel()
	pacingtest.RunOnClock(t, func(t *testing.T, clock func() time.Time) pacing.Store {
		return openDefault(t,
			clock).(*Store)
	})
}

func TestShares(t *testing.T) {
	t.Parallel()
	pacingtest.RunShares(t, func(t *testing.T, clock func() time.Time) pacing.Store {
		return openDefault(t, clock).(*Store)
	}, 7)
}

func TestWaits(t *testing.T) {
	t.Parallel()
	pacingtest.RunWaits(t, func(t *testing.T, clock func() time.Time) pacing.Store {
		return openDefault(t, clock).(*Store)
	}, 3)
}

// A call of several steps is remembered as a whole. The steps ask for slots up to different waits.
func TestACallOfSeveralStepsIsForgottenAsOne(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	store := openDefault(t, clock.Now).(*Store)
	p := pacing.New(store, &pacing.Policy{Pacers: []pacing.Pacer{{Name: "e", MaxWait: 30 * time.Second,
		Rate: pacing.Rate{Permits: 10, Per: time.Second}, Shares: []pacing.Share{{Name: "otp", Percent: 20}}}}})
	p.SetClock(clock.Now)
	call := &pacing.Call{Pacers: []string{"e"}, Permits: 30, MaxWait: 10 * time.Second, Share: "otp", RequestID: "x"}
	take := func() (slots []pacing.Time, answer *pacing.Answer) {
		answer, err := p.Take(t.Context(), call)
		require.NoError(t, err)
		for _, run := range answer.Runs {
			for k := range run.Permits {
				slots = append(slots, answer.At.Add(run.WaitOf(k)))
			}
		}
		return slots, answer
	}
	first, _ := take()
	for range 69 {
		clock.Advance(time.Second)
		again, _ := take()
		require.Equal(t, first, again)
	}
	for range 60 {
		clock.Advance(time.Second)
		again, answer := take()
		if answer.Fresh > 0 {
			require.Len(t, again, answer.Fresh, "new slots and old ones do not mix")
			return
		}
		require.Subset(t, first, again)
	}
	require.Fail(t, "the request is remembered for too long")
}

func TestPacingIsGreedilyTaken(t *testing.T) {
	t.Parallel()
	pacingtest.RunGreedy(t, openPacing(t))
}
