package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client/api"
	"capper/internal/pacing"
)

// given draws the grant of a call after earlier calls have filled the logs, as of a later time.
func given(t *rapid.T) *pacing.Answer {
	limits := rapid.Custom(func(t *rapid.T) pacing.Limit {
		return pacing.Limit{Max: rapid.IntRange(1, 20).Draw(t, "max"),
			Window: time.Duration(rapid.IntRange(1000, 50_000).Draw(t, "window")) * time.Microsecond}
	})
	a := &pacing.Answer{}
	ask := &pacing.Ask{Permits: rapid.IntRange(0, 200).Draw(t, "permits"),
		MaxWait: time.Duration(rapid.IntRange(0, 1000).Draw(t, "wait")) * time.Millisecond}
	var logs []*pacing.Log
	for range rapid.IntRange(1, 3).Draw(t, "pacers") {
		p := pacing.Pacer{Name: rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "name"),
			Per: rapid.SampledFrom([]pacing.Per{pacing.PerPacer, pacing.PerMessage, pacing.PerKey}).Draw(t, "per")}
		p.Limits = rapid.SliceOfN(limits, 0, 3).Draw(t, "limits")
		if len(p.Limits) == 0 || rapid.Bool().Draw(t, "rate") {
			p.Rate = pacing.Rate{Permits: rapid.IntRange(1, 1000).Draw(t, "rate"), Per: time.Second}
		}
		log := &pacing.Log{}
		target := pacing.Target{Pacer: p.Name, Limits: p.Judged()}
		pacing.Place(500, &pacing.Ask{Targets: []pacing.Target{target}, Permits: rapid.IntRange(0, 50).Draw(t,
			"before"), MaxWait: time.Second}, []*pacing.Log{log})
		a.Pacers, ask.Targets, logs = append(a.Pacers, p), append(ask.Targets, target), append(logs, log)
	}
	const made = pacing.Time(1000)
	placed := pacing.Place(made, ask, logs)
	now := made
	if a.Replayed = rapid.Bool().Draw(t, "replayed"); a.Replayed {
		now += pacing.Time(rapid.IntRange(0, 1_100_000).Draw(t, "later"))
	}
	for i := range logs {
		a.States = append(a.States, pacing.StateOf(now, &ask.Targets[i], logs[i]))
	}
	a.Granted, a.Refused, a.Runs = int(placed.Total), ask.Permits-int(placed.Total), placed.WaitRuns(now)
	look := *ask
	look.Permits = 0
	next := pacing.Place(now, &look, logs)
	a.Next, a.Target, a.Limit = next.Next.Sub(now), next.Target, next.Limit
	return a
}

// waits lists the waits of all permits; the wait of a past slot is 0.
func waits(runs []pacing.WaitRun) (list []time.Duration) {
	for _, r := range runs {
		for k := range r.Permits {
			list = append(list, max(0, r.WaitOf(k)))
		}
	}
	return list
}

// TestPermitsAnswersAreTheWireTypes checks that the hand-written encoder produces the output of encoding/json, with
// the content of the grant.
func TestPermitsAnswersAreTheWireTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := given(t)
		written := EncodePermits(nil, &PermitsRequest{MessageID: "promo <é>", Key: "+65 <é>"}, a)
		requireWireType(t, written, new(api.Permits))
		var told api.Permits
		require.NoError(t, json.Unmarshal(written, &told))
		var slots []time.Duration
		for _, s := range told.Slots {
			require.Positive(t, s.Permits)
			for k := range s.Permits {
				slots = append(slots, time.Duration(s.WaitMS)+time.Duration(k)*time.Duration(s.EveryMS))
			}
		}
		require.Equal(t, waits(a.Runs), slots)
		require.Len(t, slots, told.Granted)
		require.Equal(t, a.Refused, told.Refused)
		require.Equal(t, a.Refused > 0, told.RetryAfterMS != nil)
		if told.RetryAfterMS != nil {
			require.Equal(t, a.Next, time.Duration(*told.RetryAfterMS))
			require.Equal(t, a.Next > 0, told.LimitedBy != nil)
		}
	})
}

// TestSlotsOfARunThatIsPartlyPast checks that the past permits of a run may be used at once, and that later slots are
// exact.
func TestSlotsOfARunThatIsPartlyPast(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		runs []pacing.WaitRun
		want string
	}{
		{nil, `[]`},
		{[]pacing.WaitRun{{Wait: 0, Burst: 1, Permits: 5}}, `[{"wait_ms":0,"permits":5}]`},
		{[]pacing.WaitRun{{Wait: -1, Burst: 1, Permits: 5}}, `[{"wait_ms":0,"permits":5}]`},
		{[]pacing.WaitRun{{Wait: 0, Every: 4 * ms, Burst: 1, Permits: 5}}, `[{"wait_ms":0,"every_ms":4,"permits":5}]`},
		{[]pacing.WaitRun{{Wait: -4 * ms, Every: 4 * ms, Burst: 1, Permits: 5}},
			`[{"wait_ms":0,"permits":1},{"wait_ms":0,"every_ms":4,"permits":4}]`},
		{[]pacing.WaitRun{{Wait: -5 * ms, Every: 4 * ms, Burst: 1, Permits: 5}},
			`[{"wait_ms":0,"permits":2},{"wait_ms":3,"every_ms":4,"permits":3}]`},
		{[]pacing.WaitRun{{Wait: -15 * ms, Every: 4 * ms, Burst: 1, Permits: 5}},
			`[{"wait_ms":0,"permits":4},{"wait_ms":1,"permits":1}]`},
		{[]pacing.WaitRun{{Wait: -17 * ms, Every: 4 * ms, Burst: 1, Permits: 5}}, `[{"wait_ms":0,"permits":5}]`},
		{[]pacing.WaitRun{{Wait: -5 * ms, Every: 4 * ms, Burst: 10, Permits: 33}},
			`[{"wait_ms":0,"permits":20},{"wait_ms":3,"permits":10},{"wait_ms":7,"permits":3}]`},
		{[]pacing.WaitRun{{Wait: -9 * ms, Every: 4 * ms, Burst: 1, Permits: 2}, {Wait: -1 * ms, Burst: 1, Permits: 7},
			{Wait: 4001 * time.Microsecond, Burst: 1, Permits: 1}},
			`[{"wait_ms":0,"permits":9},{"wait_ms":4.001,"permits":1}]`},
	} {
		a := &answer{}
		a.raw(`[`)
		a.slots(c.runs)
		require.Equal(t, c.want, string(append(a.out, ']')))
	}
}

func BenchmarkPermits(b *testing.B) {
	given := &pacing.Answer{
		Grant: pacing.Grant{
			Granted: 100, Runs: []pacing.WaitRun{{Every: 4 * time.Millisecond, Burst: 1, Permits: 100}},
			Next: 400 * time.Millisecond,
			States: []pacing.State{{Queue: 396 * time.Millisecond, Next: 400 * time.Millisecond, Used: []int{1}},
				{Used: []int{100}}},
		},
		Refused: 10,
		Pacers: []pacing.Pacer{
			{Name: "carrier", Rate: pacing.Rate{Permits: 250, Per: time.Second}},
			{Name: "campaign", Limits: []pacing.Limit{{Max: 50_000, Window: time.Minute}}, Per: pacing.PerMessage},
		},
	}
	var out []byte
	r := &PermitsRequest{MessageID: "promo-7"}
	b.ReportAllocs()
	for b.Loop() {
		out = EncodePermits(out[:0], r, given)
	}
}
