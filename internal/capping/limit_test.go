package capping

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shown returns the day, week or month that a wall calendar shows.
func (c Calendar) shown(i Instant, location *time.Location) string {
	at := i.Time().In(location)
	switch c {
	case CalendarDay:
		return at.Format(time.DateOnly)
	case CalendarWeek:
		year, week := at.ISOWeek()
		return fmt.Sprint(year, " week ", week)
	case CalendarMonth:
		return at.Format("2006-01")
	}
	panic("shown has no case for calendar " + string(c))
}

// TestCalendarPeriodsTileTime checks every day, week and month of three decades. The zones include changes
// of clocks around midnight, by half an hour, by two hours, for Ramadan, and a zone that skipped a day.
// Periods must follow each other without a gap, contain their own instants, begin and end where the wall
// calendar changes, and be no longer than logs are kept.
func TestCalendarPeriodsTileTime(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "Asia/Singapore", "America/New_York", "America/Sao_Paulo", "America/Havana",
		"Asia/Beirut", "Asia/Amman", "Asia/Damascus", "Africa/Cairo", "Atlantic/Azores", "Australia/Lord_Howe",
		"Asia/Gaza", "Asia/Tehran",
		"Antarctica/Troll", "Africa/Casablanca", "Asia/Kolkata", "Pacific/Apia", "Pacific/Kiritimati",
		"Pacific/Chatham", "Europe/Berlin", "America/Santiago"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			location, err := time.LoadLocation(zone)
			require.NoError(t, err)
			for _, calendar := range Calendars() {
				requireTiles(t, calendar, location)
			}
		})
	}
}

func requireTiles(t *testing.T, c Calendar, location *time.Location) {
	longest := (&Limit{Calendar: c}).longest()
	at := InstantOf(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC))
	for at < InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
		start, until := c.period(at, location)
		require.True(t, start <= at && at < until, "%v is not in its period %v to %v", at.Time().In(location),
			start.Time(), until.Time())
		require.Equal(t, c.shown(at, location), c.shown(start, location))
		require.NotEqual(t, c.shown(start-1, location), c.shown(start, location))
		require.Equal(t, c.shown(at, location), c.shown(until-1, location))
		require.NotEqual(t, c.shown(until-1, location), c.shown(until, location))
		require.LessOrEqual(t, until.Time().Sub(start.Time()), longest)
		for _, probe := range []Instant{start, until - 1, start + (until-start)/3} {
			s, u := c.period(probe, location)
			require.Equal(t, [2]Instant{start, until}, [2]Instant{s, u})
		}
		at = until
	}
}

func TestCalendarWeekStartsOnMonday(t *testing.T) {
	t.Parallel()
	location, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	week := CalendarWeek
	for day := range 7 { // the week in which clocks go back has 169 hours
		start, until := week.period(InstantOf(time.Date(2026, 10, 19+day, 13, 0, 0, 0, location)), location)
		require.Equal(t, time.Date(2026, 10, 19, 0, 0, 0, 0, location).UnixMilli(), start.Time().UnixMilli())
		require.Equal(t, 169*time.Hour, until.Time().Sub(start.Time()))
	}
}
