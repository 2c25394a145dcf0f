package capping_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/capping/storetest"
	"capper/internal/segments/segmentstest"
)

// halves is a generation with users below 100 in "new" and below 200 in "vip".
type halves struct {
	segmentstest.WithoutSets
	generation string
}

func (h halves) Generation() string { return h.generation }
func (halves) Names() []string      { return []string{"new", "vip"} }
func (halves) Lookup(numbers []uint32, codes []uint8) {
	for i, user := range numbers {
		switch codes[i] = 0; {
		case user < 100:
			codes[i] = 1
		case user < 200:
			codes[i] = 2
		}
	}
}

type bench struct {
	*capping.Capper
	t     *testing.T
	clock *storetest.Clock
}

func newCapper(t *testing.T, policy *capping.Policy) *bench {
	clock := storetest.NewClock()
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), Clock: clock.Now,
		ClockBound: math.MaxInt64})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	segments := func() capping.Segments { return halves{generation: "g1"} }
	return &bench{capping.New(store, segments, policy, clock.Now), t, clock}
}

func (b *bench) filter(send *capping.Send) *capping.Decisions {
	b.t.Helper()
	d := b.Filter(context.Background(), send)
	require.NoError(b.t, d.Err)
	return d
}

func (b *bench) outcomes(send *capping.Send) (outcomes []capping.Outcome) {
	b.t.Helper()
	for _, v := range b.filter(send).Verdicts {
		outcomes = append(outcomes, v.Outcome)
	}
	return outcomes
}

func rolling(name string, most int, window time.Duration, channels ...capping.Channel) capping.Limit {
	return capping.Limit{Name: name, Max: most, Window: window, Channels: capping.ChannelSetOf(channels...)}
}

func TestEachSegmentHasItsLimits(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{
		Default:  []capping.Limit{rolling("daily", 1, day), rolling("weekly", 2, 7*day)},
		Segments: map[string][]capping.Limit{"new": {rolling("closed", 0, day)}, "vip": {}},
	})
	users := []capping.UserID{5, 150, 250, 4294967295}
	require.Equal(t, []capping.Outcome{capping.Denied, capping.Allowed, capping.Allowed, capping.Allowed},
		b.outcomes(&capping.Send{Message: capping.Message{ID: "m1"}, Users: users, Enforce: true, Record: true}))
	d := b.filter(&capping.Send{Message: capping.Message{ID: "m2"}, Users: users, Enforce: true, Record: true})
	require.Equal(t, []string{"new", "vip", "", ""}, []string{d.Segment(0), d.Segment(1), d.Segment(2), d.Segment(3)})
	require.Equal(t, "g1", d.Generation)
	require.Equal(t, "closed", d.Limit(0).Name)
	require.Equal(t, capping.Never, d.Verdicts[0].FreesAt)
	require.Equal(t, capping.Allowed, d.Verdicts[1].Outcome)
	require.Equal(t, "daily", d.Limit(2).Name)
	require.Equal(t, b.clock.Now().Add(day).UnixMilli(), d.Verdicts[2].FreesAt.Time().UnixMilli())
	b.clock.Advance(day)
	b.outcomes(&capping.Send{Message: capping.Message{ID: "m3"}, Users: users, Enforce: true, Record: true})
	b.clock.Advance(day)
	d = b.filter(&capping.Send{Message: capping.Message{ID: "m4"}, Users: users, Enforce: true, Record: true})
	require.Equal(t, "weekly", d.Limit(3).Name)
}

// TestNewPolicyKeepsTheLogs checks that changed limits apply to sends that were recorded before.
func TestNewPolicyKeepsTheLogs(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{Default: []capping.Limit{rolling("weekly", 3, 7*day)}})
	one := []capping.UserID{7}
	for i := range 3 {
		require.Equal(t, []capping.Outcome{capping.Allowed},
			b.outcomes(&capping.Send{Message: capping.Message{ID: fmt.Sprint(i)}, Users: one, Enforce: true,
				Record: true}))
	}
	for most, want := range map[int]capping.Outcome{2: capping.Denied, 3: capping.Denied, 4: capping.Allowed} {
		b.SetPolicy(&capping.Policy{Version: fmt.Sprint(most),
			Default: []capping.Limit{rolling("weekly", most, 7*day)}})
		d := b.filter(&capping.Send{Message: capping.Message{ID: "preview"}, Users: one, Enforce: true})
		require.Equal(t, want, d.Verdicts[0].Outcome)
		require.Equal(t, fmt.Sprint(most), d.Policy.Version)
	}
}

func TestExemptPreviewAndForecast(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{Default: []capping.Limit{rolling("daily", 1, day)}})
	one := []capping.UserID{7}
	for i := range 3 {
		require.Equal(t, []capping.Outcome{capping.Allowed},
			b.outcomes(&capping.Send{Message: capping.Message{ID: fmt.Sprint("exempt", i)}, Users: one, Record: true}))
	}
	require.Equal(t, []capping.Outcome{capping.Denied}, b.outcomes(&capping.Send{Message: capping.Message{ID: "m"},
		Users: one, Enforce: true, Record: true}))
	tomorrow := capping.InstantOf(b.clock.Now().Add(day))
	for at, want := range map[capping.Instant]capping.Outcome{0: capping.Denied, tomorrow - 1: capping.Denied,
		tomorrow: capping.Allowed} {
		require.Equal(t, []capping.Outcome{want}, b.outcomes(&capping.Send{Users: one, Enforce: true, At: at}))
	}
	e, err := b.Explain(context.Background(), 7)
	require.NoError(t, err)
	require.Equal(t, 3, e.Log.Len(), "neither the denial nor the previews were recorded")
}

// TestForecastOfCalendarLimits checks that a forecast uses the calendar periods of its own instant, not of
// today.
func TestForecastOfCalendarLimits(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{Default: []capping.Limit{{Name: "day", Max: 1, Calendar: capping.CalendarDay}}})
	one := []capping.UserID{7}
	d := b.filter(&capping.Send{Message: capping.Message{ID: "m"}, Users: one, Enforce: true, Record: true})
	require.Equal(t, capping.Allowed, d.Verdicts[0].Outcome)
	d = b.filter(&capping.Send{Users: one, Enforce: true})
	midnight := d.Verdicts[0].FreesAt
	require.Zero(t, midnight.Time().Sub(midnight.Time().Truncate(day)))
	require.Equal(t, []capping.Outcome{capping.Denied},
		b.outcomes(&capping.Send{Users: one, Enforce: true, At: midnight - 1}))
	require.Equal(t, []capping.Outcome{capping.Allowed},
		b.outcomes(&capping.Send{Users: one, Enforce: true, At: midnight}))
}

func TestExplain(t *testing.T) {
	t.Parallel()
	const push, email = 1, 2
	b := newCapper(t, &capping.Policy{Segments: map[string][]capping.Limit{"vip": {
		rolling("daily", 3, day), rolling("push-gap", 1, time.Hour, push), rolling("none", 0, day, email),
	}}})
	start := b.clock.Instant()
	users := make([]capping.UserID, capping.BulkUsers)
	for i := range users {
		users[i] = capping.UserID(100 + i)
	}
	b.filter(&capping.Send{Message: capping.Message{ID: "first"}, Channel: push, Users: users, Enforce: true,
		Record: true})
	b.clock.Advance(time.Minute)
	b.filter(&capping.Send{Message: capping.Message{ID: "second"}, Users: users, Enforce: true, Record: true})
	e, err := b.Explain(context.Background(), 150)
	require.NoError(t, err)
	require.Equal(t, "vip", e.Segment)
	require.Equal(t, "g1", e.Generation)
	limits := b.Policy().Limits("vip")
	require.Equal(t, []capping.Standing{
		{Limit: &limits[0], Used: 2}, {Limit: &limits[1], Used: 1, FreesAt: start + 3_600_000},
		{Limit: &limits[2], FreesAt: capping.Never},
	}, e.Standings)
	require.Equal(t, []capping.Entry{
		{At: start, Channel: push, Token: capping.Message{ID: "first"}.Token()},
		{At: start + 60_000, Token: capping.Message{ID: "second"}.Token()},
	}, e.Log.Entries())
	require.Equal(t, map[capping.Token]capping.Message{capping.Message{ID: "first"}.Token(): {ID: "first"},
		capping.Message{ID: "second"}.Token(): {ID: "second"}}, e.Messages)

	b.clock.Advance(day - time.Minute) // the first send is outside every window
	e, err = b.Explain(context.Background(), 150)
	require.NoError(t, err)
	require.Equal(t, 1, e.Log.Len())
	require.Equal(t, 1, e.Standings[0].Used)
}

func TestReleaseAndErase(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{Default: []capping.Limit{rolling("daily", 1, day)}})
	users := []capping.UserID{1000, 2000}
	require.Equal(t, []capping.Outcome{capping.Allowed, capping.Allowed},
		b.outcomes(&capping.Send{Message: capping.Message{ID: "m"}, Users: users, Enforce: true, Record: true}))
	for _, want := range []capping.Released{capping.ReleaseDone, capping.ReleaseAbsent} {
		released, err := b.Release(context.Background(), capping.Message{ID: "m"}, 0, users[:1])
		require.NoError(t, err)
		require.Equal(t, []capping.Released{want}, released)
	}
	require.NoError(t, b.Erase(context.Background(), 2000))
	require.NoError(t, b.Erase(context.Background(), 2000))
	require.Equal(t, []capping.Outcome{capping.Allowed, capping.Allowed},
		b.outcomes(&capping.Send{Message: capping.Message{ID: "m"}, Users: users, Enforce: true, Record: true}))
}

func TestPassedDeadline(t *testing.T) {
	t.Parallel()
	b := newCapper(t, &capping.Policy{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := b.Filter(ctx, &capping.Send{Message: capping.Message{ID: "m"}, Users: []capping.UserID{1, 2}, Enforce: true,
		Record: true})
	require.ErrorIs(t, d.Err, context.Canceled)
	require.Equal(t, make([]capping.Verdict, 2), d.Verdicts)
	_, err := b.Explain(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}
