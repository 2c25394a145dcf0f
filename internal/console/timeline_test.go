package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/zones"
)

// TestWindowStartsWhereTheDomainsDoes compares the console's start of a window with the domain's for every calendar,
// because the console does not import the domain.
func TestWindowStartsWhereTheDomainsDoes(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 9, 30, 0, 0, time.UTC)
	for _, calendar := range capping.Calendars() {
		for _, zone := range []string{"UTC", "Asia/Singapore", "America/New_York", "Europe/Berlin"} {
			place, err := zones.Load(zone)
			require.NoError(t, err)
			domain := capping.Limit{Max: 1, Calendar: calendar, Location: place}
			for now := first; now.Before(first.AddDate(2, 0, 0)); now = now.Add(17 * time.Hour) {
				want := domain.Rule(capping.InstantOf(now), 0).Start.Time()
				for _, l := range []api.Limit{
					{Calendar: string(calendar), Timezone: zone}, {Calendar: string(calendar), Timezone: "user"},
				} {
					start, known := windowStart(l, zone, now)
					require.True(t, known, "windowStart has no case for calendar %s", calendar)
					require.Equal(t, want.UTC(), start.UTC(), "calendar %s in %s at %v", calendar, zone, now)
				}
			}
		}
	}
}

func TestWindowStartOfARollingLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	start, known := windowStart(api.Limit{Window: "36h"}, "Asia/Singapore", now)
	require.True(t, known)
	require.Equal(t, now.Add(-36*time.Hour), start)
	_, known = windowStart(api.Limit{Window: "century", Calendar: "century"}, "UTC", now)
	require.False(t, known)
}

func TestEveryOutcomeHasWords(t *testing.T) {
	t.Parallel()
	for _, outcome := range audit.Outcomes() {
		require.Contains(t, outcomeTexts, outcome.String())
	}
	require.Len(t, outcomeTexts, len(audit.Outcomes()))
}
