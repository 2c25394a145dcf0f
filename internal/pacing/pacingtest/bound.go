package pacingtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// The test case "closed" checks that a call with a long wait for one pacer does not block another pacer. Limits must
// also still count slots that an earlier version of capper granted for the next day.
func closed(f *fixture) {
	used, open, slow, patient := Name(), Name(), Name(), Name()
	policy := &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: used, Limits: []pacing.Limit{{Max: 1, Window: day}}, MaxWait: pacing.MaxWait},
		{Name: open, Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}},
		{Name: slow, Rate: pacing.Rate{Permits: 50, Per: time.Second}},
		{Name: patient, Rate: pacing.Rate{Permits: 50, Per: time.Second}, MaxWait: 2 * time.Minute},
	}}
	pacers := pacing.New(f.store, policy)
	take := func(permits int, wait time.Duration, names ...string) *pacing.Answer {
		f.Helper()
		answer, err := pacers.Take(f.Context(), &pacing.Call{Pacers: names, Permits: permits, MaxWait: wait})
		require.NoError(f, err)
		return answer
	}
	require.Equal(f, 1, take(1, 0, used).Granted)
	refused := take(1, pacing.MaxWait, used, open)
	require.Equal(f, [3]int{0, 1, 0}, [3]int{refused.Granted, refused.Refused, refused.Target}, "%+v", refused.Grant)
	require.Greater(f, refused.Next, 23*time.Hour, "the call is told how long it would wait")
	require.Equal(f, []int{0}, refused.States[1].Used)
	granted := take(600_000/6, 0, open)
	require.Equal(f, []pacing.WaitRun{{Burst: 1, Permits: 100_000}}, granted.Runs, "nobody closed the pacer")

	require.Equal(f, 1501, take(pacing.MaxPermits, pacing.MaxWait, slow).Granted, "half a minute, without max_wait")
	require.Equal(f, 6001, take(pacing.MaxPermits, pacing.MaxWait, patient).Granted, "its own max_wait")
	both := take(1, pacing.MaxWait, slow, patient)
	require.Zero(f, both.Granted, "each pacer bounds the call")
	require.Greater(f, both.Next, time.Minute)

	// An earlier version of capper let a call reserve a slot of every pacer for the next day.
	late := pacing.Target{Pacer: Name(), Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}}
	former := ask(1, day, pacing.Target{Pacer: used, Limits: []pacing.Limit{{Max: 1, Window: day}}}, late)
	_, err := f.store.TakePermits(f.Context(), former)
	require.NoError(f, err)
	policy.Pacers = append(policy.Pacers, pacing.Pacer{Name: late.Pacer, Limits: late.Limits})
	require.Equal(f, []int{1}, take(0, 0, late.Pacer).States[0].Used, "the slot stays until the pacer is forgotten")
	require.NoError(f, pacers.Forget(f.Context(), late.Pacer))
	require.Equal(f, 1, take(1, 0, late.Pacer).Granted)
}
