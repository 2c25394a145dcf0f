package capping

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every day of three decades in zones whose clocks change around midnight:
// days follow each other without a gap, each instant is in its own period, and
// the periods' bounds are where the date changes.
func TestCalendarPeriodsTileTime(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "Asia/Singapore", "America/New_York", "America/Sao_Paulo", "America/Havana",
		"Asia/Beirut", "Asia/Amman", "Asia/Damascus", "Africa/Cairo", "Atlantic/Azores", "Australia/Lord_Howe", "Asia/Gaza", "Asia/Tehran"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			location, err := time.LoadLocation(zone)
			require.NoError(t, err)
			day := CalendarDay
			at := InstantOf(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC))
			for at < InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
				start, until := day.period(at, location)
				require.True(t, start <= at && at < until, "%v is not in its period %v to %v", at.Time().In(location), start.Time(), until.Time())
				date := func(i Instant) string { return i.Time().In(location).Format(time.DateOnly) }
				require.Equal(t, date(at), date(start))
				require.NotEqual(t, date(start-1), date(start))
				require.Equal(t, date(at), date(until-1))
				for _, probe := range []Instant{start, until - 1} {
					s, u := day.period(probe, location)
					require.Equal(t, [2]Instant{start, until}, [2]Instant{s, u})
				}
				at = until
			}
		})
	}
}

func TestCalendarWeekStartsOnMonday(t *testing.T) {
	t.Parallel()
	location, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	week := CalendarWeek
	for day := range 7 { // the week in which clocks go back: 169 hours
		start, until := week.period(InstantOf(time.Date(2026, 10, 19+day, 13, 0, 0, 0, location)), location)
		require.Equal(t, time.Date(2026, 10, 19, 0, 0, 0, 0, location).UnixMilli(), start.Time().UnixMilli())
		require.Equal(t, 169*time.Hour, until.Time().Sub(start.Time()))
	}
}
