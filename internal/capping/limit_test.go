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
	at := InstantOf(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC))
	for at < InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
		start, until := c.period(at, location)
		if fault := tileFault(c, location, at, start, until); fault != "" {
			require.Fail(t, fault, "%v is in the period %v to %v", at.Time().In(location), start.Time(), until.Time())
		}
		at = until
	}
}

// tileFault is why a period is no tile of time, or empty. It compares plainly, as there are very many periods.
func tileFault(c Calendar, location *time.Location, at, start, until Instant) string {
	shown := c.shown(at, location)
	switch longest := (&Limit{Calendar: c}).longest(); {
	case start > at || at >= until:
		return "an instant is not in its period"
	case c.shown(start, location) != shown || c.shown(until-1, location) != shown:
		return "the wall calendar changes within a period"
	case c.shown(start-1, location) == shown:
		return "a period begins where the wall calendar does not change"
	case c.shown(until, location) == c.shown(until-1, location):
		return "a period ends where the wall calendar does not change"
	case until.Time().Sub(start.Time()) > longest:
		return "a period is longer than logs are kept"
	}
	for _, probe := range []Instant{start, until - 1, start + (until-start)/3} {
		if s, u := c.period(probe, location); s != start || u != until {
			return "an instant of a period is in another one"
		}
	}
	return ""
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
