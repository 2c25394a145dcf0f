package pacing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// TestACallOfSeveralSteps checks that a call with several store steps gets the same permits as one step
// would, and that a repetition gets the same slots.
func TestACallOfSeveralSteps(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	policy := &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: "a", Limits: []pacing.Limit{{Max: 2, Window: 7001 * time.Microsecond},
			{Max: 97, Window: 400_009 * time.Microsecond}}, MaxWait: pacing.MaxWait},
		{Name: "b", Limits: []pacing.Limit{{Max: 3, Window: 11_003 * time.Microsecond}}, MaxWait: pacing.MaxWait},
	}}
	pacers := pacing.New(pacingtest.NewMemory(clock.Now), policy)
	call := &pacing.Call{Pacers: []string{"a", "b"}, Permits: 10_000, MaxWait: pacing.MaxWait, Client: "c",
		RequestID: "r"}
	given, err := pacers.Take(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, 10_000, given.Granted)
	require.Greater(t, len(given.Runs), pacing.MostSteps)
	require.Zero(t, given.Refused)
	require.Equal(t, 10_000, permitsOf(given))

	clock.Advance(time.Second)
	call.Pacers = []string{"b", "a"} // the same call
	again, err := pacers.Take(t.Context(), call)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, 10_000, again.Granted)
	for i, run := range given.Runs {
		run.Wait -= time.Second
		require.Equal(t, run, again.Runs[i])
	}

	call.RequestID, call.Permits = "", pacing.MaxPermits
	given, err = pacers.Take(t.Context(), call)
	require.NoError(t, err)
	require.True(t, given.More, "a call takes so many steps at most")
	require.Equal(t, pacing.MaxPermits, given.Granted+given.Refused)
	require.Equal(t, given.Granted, permitsOf(given))
}

// TestARepeatedCallGetsNoMore checks that a repeated call of several steps gets the same grant. Meanwhile
// other calls take the refused permits, and a pacer changes to logs per message.
func TestARepeatedCallGetsNoMore(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	irregular := pacing.Pacer{Name: "a", Limits: []pacing.Limit{{Max: 2, Window: 7001 * time.Microsecond},
		{Max: 97, Window: 400_009 * time.Microsecond}}}
	pacers := pacing.New(pacingtest.NewMemory(clock.Now), &pacing.Policy{Pacers: []pacing.Pacer{irregular}})
	call := &pacing.Call{Pacers: []string{"a"}, Permits: pacing.MaxPermits, MaxWait: 3 * time.Second, Client: "c",
		RequestID: "r", Message: "0a"}
	given, err := pacers.Take(t.Context(), call)
	require.NoError(t, err)
	require.Positive(t, given.Refused)
	require.Equal(t, given.Granted, given.Fresh)
	irregular.Per = pacing.PerMessage
	for _, policy := range []*pacing.Policy{pacers.Policy(), {Pacers: []pacing.Pacer{irregular}}} {
		clock.Advance(10 * time.Second)
		pacers.SetPolicy(policy)
		again, err := pacers.Take(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, given.Granted, again.Granted)
		require.Zero(t, again.Fresh)
		require.True(t, again.Replayed)
	}
	call.Message = "0b"
	_, err = pacers.Take(t.Context(), call)
	require.ErrorContains(t, err, "request_id")
}

func permitsOf(given *pacing.Answer) (permits int) {
	for _, r := range given.Runs {
		permits += r.Permits
	}
	return permits
}
