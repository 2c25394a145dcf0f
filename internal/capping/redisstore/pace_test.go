package redisstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// slotsOfGrant are the slots of a grant, one by one.
func slotsOfGrant(g *pacing.Grant) (slots []pacing.Time) {
	for _, run := range g.Runs {
		for k := range run.Permits {
			slots = append(slots, g.At.Add(run.Wait+time.Duration(k/run.Burst)*run.Every))
		}
	}
	return slots
}

// referee is Place beside the store: what it says of the same asks at the same times.
type referee struct {
	logs map[string]*pacing.Log
}

func newReferee() *referee { return &referee{map[string]*pacing.Log{}} }

// check compares the grant with what Place gives.
func (r *referee) check(t require.TestingT, ask *pacing.Ask, g *pacing.Grant) {
	var logs []*pacing.Log
	for _, target := range ask.Targets {
		name := target.Pacer + ":" + target.Message
		if r.logs[name] == nil {
			r.logs[name] = &pacing.Log{}
		}
		logs = append(logs, r.logs[name])
	}
	left := *ask
	if g.More {
		left.Permits = g.Granted
	}
	var want []pacing.Time
	var placed pacing.Placed
	for {
		placed = pacing.Place(g.At, &left, logs)
		part := pacing.Grant{At: g.At, Runs: placed.WaitRuns(g.At)}
		want = append(want, slotsOfGrant(&part)...)
		left.Permits -= int(placed.Total)
		if !placed.More {
			break
		}
	}
	require.Equal(t, want, slotsOfGrant(g))
	require.Equal(t, len(want), g.Granted)
	require.Equal(t, placed.Next.Sub(g.At), g.Next)
	require.Equal(t, placed.Target, g.Target)
	if placed.Target >= 0 {
		require.Equal(t, placed.Limit, g.Limit)
	}
	for i := range ask.Targets {
		require.Equal(t, pacing.StateOf(g.At, &ask.Targets[i], logs[i]), g.States[i], "%s of %v", ask.Targets[i].Pacer, ask.Targets[i].Limits)
	}
}

func randomLimits(r *rand.Rand) (limits []pacing.Limit) {
	for range 1 + r.IntN(pacing.MaxLimits+1) {
		limits = append(limits, pacing.Limit{
			Max:    1 + r.IntN([]int{1, 3, 10, 100, 2000}[r.IntN(5)]),
			Window: time.Duration(1+r.IntN([]int{10, 1000, 100_000, 5_000_000}[r.IntN(4)])) * time.Microsecond,
		})
	}
	return limits
}

// The script and Place are two texts of one rule.
func TestPaceScriptAgreesWithPlace(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for seed := range uint64(600) {
		r, referee := rand.New(rand.NewPCG(seed, 2)), newReferee()
		var targets []pacing.Target
		for i := range 1 + r.IntN(3) {
			target := pacing.Target{Pacer: fmt.Sprintf("p%d-%d", seed, i), Limits: randomLimits(r)}
			if r.IntN(3) == 0 {
				target.Message = "0a1b"
			}
			targets = append(targets, target)
		}
		for range 1 + r.IntN(30) {
			if r.IntN(5) == 0 { // a reload
				targets[r.IntN(len(targets))].Limits = randomLimits(r)
			}
			ask := &pacing.Ask{Targets: targets[r.IntN(len(targets)):], Permits: r.IntN([]int{2, 2, 10, 3000}[r.IntN(4)])}
			ask.MaxWait = time.Duration(r.IntN([]int{1, 1000, 1_000_000}[r.IntN(3)])) * time.Microsecond
			grant, err := s.TakePermits(t.Context(), ask)
			require.NoError(t, err, "seed %d", seed)
			referee.check(t, ask, &grant)
		}
	}
}
