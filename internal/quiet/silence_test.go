package quiet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/quiet"
)

// naiveSilence checks every minute of the days.
func naiveSilence(clocks []quiet.Clock, place *time.Location, from, until time.Time) (first string, days int) {
	open := false
	date := from.In(place).Format(time.DateOnly)
	at := from.Add(-30 * time.Hour)
	for ; at.In(place).Format(time.DateOnly) != date; at = at.Add(time.Minute) {
	}
	for {
		if today := at.In(place).Format(time.DateOnly); today != date {
			if !open {
				if days++; days == 1 {
					first = date
				}
			}
			if !at.Before(until) {
				return first, days
			}
			date, open = today, false
		}
		open = open || firstQuiet(clocks, at) < 0
		at = at.Add(time.Minute)
	}
}

// TestSilentDaysAgreeWithEveryMinute compares SilentDays with a check of every minute, in zones with clock
// changes at midnight, by half an hour, by two hours and never.
func TestSilentDaysAgreeWithEveryMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(append(zones(), "Africa/El_Aaiun", "America/Asuncion")).Draw(t, "place")
		here := place(t, name)
		open := rapid.SampledFrom([]int{1, 10, 30, 59, 60, 61, 90}).Draw(t, "open")
		from := rapid.IntRange(0, 1439).Draw(t, "from")
		clocks := []quiet.Clock{{Hours: quiet.Hours{From: quiet.Minute(from),
			To: quiet.Minute((from + 1440 - open) % 1440)}, Location: here}}
		if rapid.Bool().Draw(t, "two clocks") {
			length := rapid.IntRange(30, 200).Draw(t, "length")
			begin := rapid.IntRange(0, 1439).Draw(t, "begin")
			other := place(t, rapid.SampledFrom(zones()).Draw(t, "other"))
			clocks = append(clocks, quiet.Clock{Hours: quiet.Hours{From: quiet.Minute(begin),
				To: quiet.Minute((begin + length) % 1440)}, Location: other})
		}
		begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 200*24).Draw(t,
			"begin at")) * time.Hour)
		if _, change := begin.In(here).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "near") {
			begin = change.Add(-time.Duration(rapid.IntRange(1, 100).Draw(t, "before")) * time.Hour)
		}
		until := begin.Add(6 * 24 * time.Hour)
		wantFirst, want := naiveSilence(clocks, here, begin, until)
		first, days := quiet.SilentDays(clocks, here, begin, until)
		require.Equal(t, want, days)
		if days > 0 {
			require.Equal(t, wantFirst, first.In(here).Format(time.DateOnly))
		}
	})
}
