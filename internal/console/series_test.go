package console_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/console"
)

var start = time.Date(2026, 11, 20, 9, 12, 44, 5e8, time.UTC)

func TestCountsOfTheLastHourAndDay(t *testing.T) {
	t.Parallel()
	s, allowed := console.NewSeries(start), console.Name{Kind: console.Allowed}
	daily := console.Name{Kind: console.Denied, Of: "daily"}
	s.Observe(start.Add(time.Second), console.Totals{allowed: 100, daily: 7})
	s.Observe(start.Add(2*time.Second), console.Totals{allowed: 100, daily: 7})
	s.Observe(start.Add(11*time.Second), console.Totals{allowed: 350, daily: 7})
	s.Observe(start.Add(30*time.Second), console.Totals{allowed: 350, daily: 7})

	hour := s.Hour(10)
	require.Equal(t, 360, hour.Steps)
	require.Equal(t, 350.0, hour.Sum(allowed))
	require.Equal(t, 7.0, hour.Sum(daily))
	require.Equal(t, start.Truncate(10*time.Second).Add(30*time.Second), hour.Start.Add(time.Hour),
		"the step that is being counted is not shown")
	require.Equal(t, []float64{10, 25, 0}, hour.PerSecond(allowed)[357:],
		"steps of ten seconds, the last one that of 9:13:00")
	day := s.Day(2)
	require.Equal(t, 720, day.Steps)
	require.Equal(t, 350.0, day.Sum(allowed))
	require.Equal(t, start, day.Since)
	require.NotContains(t, day.Counts, console.Name{Kind: console.Unavailable})
}

func TestATotalThatBeganAnewCountsFromThere(t *testing.T) {
	t.Parallel()
	s, shadow := console.NewSeries(start), console.Name{Kind: console.Shadow, Of: "stricter"}
	s.Observe(start, console.Totals{shadow: 50})
	s.Observe(start.Add(time.Second), console.Totals{})
	s.Observe(start.Add(2*time.Second), console.Totals{shadow: 3})
	require.Equal(t, 53.0, s.Day(1).Sum(shadow))
}

// TestWindowsAgreeWithAListOfAllCounts compares the ring buffers with a simple list over several days, with random
// pauses and a clock that is set back.
func TestWindowsAgreeWithAListOfAllCounts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	s, name, now, total := console.NewSeries(start), console.Name{Kind: console.Allowed}, start, 0.0
	type event struct {
		at time.Time
		n  float64
	}
	var all []event
	newest := start.Truncate(time.Second)
	for range 4000 {
		now = now.Add([]time.Duration{time.Second, time.Second, 3 * time.Second, time.Minute, 40 * time.Minute,
			-5 * time.Second, 30 * time.Hour}[min(6, rng.IntN(400)%7*rng.IntN(2))])
		n := float64(rng.IntN(3) * rng.IntN(1000))
		total += n
		if at := now.Truncate(time.Second); at.After(newest) {
			newest = at
		}
		all = append(all, event{newest, n})
		s.Observe(now, console.Totals{name: total})
		if rng.IntN(20) > 0 {
			continue
		}
		for _, w := range []*console.Window{s.Hour(1), s.Hour(10), s.Hour(60), s.Day(1), s.Day(5), s.Day(60)} {
			want := 0.0
			for _, e := range all {
				if !e.at.Before(w.Start) && e.at.Before(w.Start.Add(w.Step*time.Duration(w.Steps))) {
					want += e.n
				}
			}
			require.Equal(t, want, w.Sum(name), "%s × %d at %s", w.Step, w.Steps, newest)
		}
	}
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	s, totals := console.NewSeries(start), console.Totals{}
	for i := range 500 {
		totals[console.Name{Kind: console.Denied, Of: string(rune('a' + i))}] = 1
	}
	s.Observe(start, totals)
	require.Len(t, s.Day(1).Counts, 200)
}

func TestPoliciesAreRememberedOnce(t *testing.T) {
	t.Parallel()
	var p console.Policies
	for i := range 60 {
		p.Note(start.Add(time.Duration(i)*time.Minute), version(i/2))
	}
	list, err := p.Versions(t.Context(), start)
	require.NoError(t, err)
	require.Len(t, list, 30)
	require.Equal(t, version(29), list[0].Policy)
	require.Equal(t, start.Add(58*time.Minute), list[0].Since)
}

func version(n int) *api.Policy { return &api.Policy{Version: string(rune('a' + n))} }

func TestPoliciesGoOnWhereThePastEnds(t *testing.T) {
	t.Parallel()
	var p console.Policies
	asked, failing := 0, false
	p.SetPast(func(context.Context) ([]console.Version, error) {
		if asked++; failing {
			return nil, errors.New("the place is away")
		}
		return []console.Version{{Policy: version(0), Since: start.Add(-2 * time.Hour)},
			{Policy: version(1), Since: start.Add(-time.Hour)},
			{Policy: version(2), Since: start.Add(2 * time.Minute)}}, nil
	})
	p.Note(start, version(1)) // as before the start
	p.Note(start.Add(time.Minute), version(2))
	want := []console.Version{{Policy: version(2), Since: start.Add(time.Minute)},
		{Policy: version(1), Since: start.Add(-time.Hour)}, {Policy: version(0), Since: start.Add(-2 * time.Hour)}}
	for range 3 {
		list, err := p.Versions(t.Context(), start.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, want, list)
	}
	require.Equal(t, 1, asked, "once a minute")
	failing = true
	list, err := p.Versions(t.Context(), start.Add(2*time.Hour))
	require.ErrorContains(t, err, "away")
	require.Equal(t, want, list, "what is known stays")
}
