package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		rate     Rate
		interval time.Duration
		written  string
	}{
		"250/s":         {Rate{250, time.Second}, 4 * time.Millisecond, "250/s"},
		"250/sec":       {Rate{250, time.Second}, 4 * time.Millisecond, "250/s"},
		"250/second":    {Rate{250, time.Second}, 4 * time.Millisecond, "250/s"},
		"10/m":          {Rate{10, time.Minute}, 6 * time.Second, "10/m"},
		"10/min":        {Rate{10, time.Minute}, 6 * time.Second, "10/m"},
		"10/1m":         {Rate{10, time.Minute}, 6 * time.Second, "10/m"},
		"600000/minute": {Rate{600_000, time.Minute}, 100 * time.Microsecond, "600000/m"},
		"6/hour":        {Rate{6, time.Hour}, 10 * time.Minute, "6/h"},
		"2/day":         {Rate{2, 24 * time.Hour}, 12 * time.Hour, "2/d"},
		"100/10s":       {Rate{100, 10 * time.Second}, 100 * time.Millisecond, "100/10s"},
		"1/90m":         {Rate{1, 90 * time.Minute}, 90 * time.Minute, "1/1h30m"},
		"3/s":           {Rate{3, time.Second}, 333_334 * time.Microsecond, "3/s"},
		"1/1500ns":      {Rate{1, 1500}, 2 * time.Microsecond, "1/1.5µs"},
		"1000000/s":     {Rate{1_000_000, time.Second}, time.Microsecond, "1000000/s"},
		"10000000/10s":  {Rate{10_000_000, 10 * time.Second}, time.Microsecond, "10000000/10s"},
		"1/744h":        {Rate{1, MaxWindow}, MaxWindow, "1/744h"},
		"10000000/2562047h": {Rate{10_000_000, 2_562_047 * time.Hour}, 922_336_920 * time.Microsecond,
			"10000000/2562047h"},
	} {
		got, ok := ParseRate(text)
		require.True(t, ok, text)
		require.Equal(t, want.rate, got, text)
		require.Equal(t, want.interval, got.Interval(), text)
		require.Equal(t, want.written, got.String(), text)
		again, ok := ParseRate(got.String())
		require.True(t, ok, text)
		require.Equal(t, got, again, text)
	}
	for _, text := range []string{
		"", "250", "/s", "250/", "0/s", "-1/s", "+1/s", "2.5/s", "1e3/s", "250/S", "250 / s", "250/s/s", "250/0s",
		"250/-1s", "250/x",
		"1000001/s", "10000001/m", "1/745h", "1/2562047h", "99999999999999999999/s", "2/1.5µs",
	} {
		_, ok := ParseRate(text)
		require.False(t, ok, text)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	for rate, want := range map[Rate]float64{
		{}: 0, {250, time.Second}: 0, {1_000_000, time.Second}: 0, {300_000, time.Second}: 1. / 6,
		{1, 1001}: 999. / 2000,
	} {
		require.InDelta(t, want, rate.Lost(), 1e-12, rate)
	}
}

func TestMost(t *testing.T) {
	t.Parallel()
	limit := Limit{100, time.Second}
	for window, want := range map[time.Duration]int{
		time.Microsecond: 100, time.Second: 100, time.Second + time.Microsecond: 200, time.Minute: 6000,
	} {
		require.Equal(t, want, limit.Most(window), window)
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add("250/s")
	f.Add("10000000/2562047h47m16.854775807s")
	f.Fuzz(func(t *testing.T, text string) {
		rate, ok := ParseRate(text)
		if !ok {
			require.Zero(t, rate)
			return
		}
		require.NoError(t, Limit{1, rate.Interval()}.Check())
		require.Less(t, (rate.Per-1)/time.Duration(rate.Permits), rate.Interval())
		again, ok := ParseRate(rate.String())
		require.True(t, ok, rate.String())
		require.Equal(t, rate, again)
	})
}

func TestPerSecond(t *testing.T) {
	t.Parallel()
	day, minute := Limit{864, 24 * time.Hour}, Limit{120, time.Minute}
	for _, c := range []struct {
		pacer Pacer
		want  float64
	}{
		{Pacer{Rate: Rate{250, time.Second}}, 250},
		{Pacer{Rate: Rate{6, time.Hour}}, 1. / 600},
		{Pacer{Limits: []Limit{day, minute}}, 2},
		{Pacer{Limits: []Limit{minute, day}, Rate: Rate{1, time.Second}}, 1},
		{Pacer{Limits: []Limit{day}}, 0},
		{Pacer{Rate: Rate{250, time.Second}, Per: PerKey}, 0},
	} {
		require.InDelta(t, c.want, c.pacer.PerSecond(), 1e-9)
	}
}
