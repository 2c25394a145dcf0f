package capping_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// periodOf returns the calendar period of the limit's rule at the given time.
func periodOf(t *testing.T, unit capping.Calendar, zone string, at string) (start, until time.Time) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	now, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	limit := capping.Limit{Max: 1, Calendar: unit, Location: location}
	rule := limit.Rule(capping.InstantOf(now), time.Hour) // calendar windows are never widened
	require.Zero(t, rule.Hold)
	return rule.Start.Time().In(location), rule.Until.Time().In(location)
}

func TestCalendarPeriods(t *testing.T) {
	t.Parallel()
	tested := map[capping.Calendar]bool{}
	for _, c := range []struct {
		name, zone, at, start, until string
		unit                         capping.Calendar
	}{
		{"plain day", "UTC", "2026-11-20T10:00:00Z", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z", "day"},
		{"day ahead of UTC", "Asia/Singapore", "2026-11-20T17:00:00Z", "2026-11-21T00:00:00+08:00",
			"2026-11-22T00:00:00+08:00", "day"},
		{"last day of a year", "America/New_York", "2027-01-01T04:59:59.999Z", "2026-12-31T00:00:00-05:00",
			"2027-01-01T00:00:00-05:00", "day"},
		{"29 February", "Europe/Paris", "2028-02-29T12:00:00Z", "2028-02-29T00:00:00+01:00",
			"2028-03-01T00:00:00+01:00", "day"},
		{"a day of 23 hours", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00+01:00",
			"2026-03-30T00:00:00+02:00", "day"},
		{"a day of 25 hours", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00",
			"2026-10-26T00:00:00+01:00", "day"},
		{"midnight skipped", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T01:00:00-02:00",
			"2018-11-05T00:00:00-02:00", "day"},
		{"the day before a skipped midnight", "America/Sao_Paulo", "2018-11-04T02:59:59.999Z",
			"2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "day"},
		{"midnight skipped in the east", "Asia/Beirut", "2024-03-31T12:00:00Z", "2024-03-31T01:00:00+03:00",
			"2024-04-01T00:00:00+03:00", "day"},
		{"clocks go back at midnight", "Asia/Beirut", "2024-10-26T21:30:00Z", "2024-10-26T00:00:00+03:00",
			"2024-10-27T00:00:00+02:00", "day"},
		{"Friday's midnight skipped", "Africa/Cairo", "2024-04-26T12:00:00Z", "2024-04-26T01:00:00+03:00",
			"2024-04-27T00:00:00+03:00", "day"},
		{"midnight skipped in the west", "America/Havana", "2024-03-10T12:00:00Z", "2024-03-10T01:00:00-04:00",
			"2024-03-11T00:00:00-04:00", "day"},
		{"midnight twice in the west", "America/Havana", "2024-11-03T12:00:00Z", "2024-11-03T00:00:00-04:00",
			"2024-11-04T00:00:00-05:00", "day"},
		{"midnight twice in the east", "Asia/Amman", "2021-10-28T21:30:00Z", "2021-10-29T00:00:00+03:00",
			"2021-10-30T00:00:00+02:00", "day"},
		{"a day of 26 hours", "Antarctica/Troll", "2026-10-25T20:00:00Z", "2026-10-25T00:00:00+02:00",
			"2026-10-26T00:00:00Z", "day"},
		{"a day of 24.5 hours", "Australia/Lord_Howe", "2026-04-05T05:00:00Z", "2026-04-05T00:00:00+11:00",
			"2026-04-06T00:00:00+10:30", "day"},
		{"week from a Sunday", "UTC", "2026-11-22T23:59:59.999Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z",
			"week"},
		{"week from a Monday", "UTC", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "week"},
		{"week over a year's end", "Asia/Tokyo", "2027-01-01T00:00:00Z", "2026-12-28T00:00:00+09:00",
			"2027-01-04T00:00:00+09:00", "week"},
		{"week of 167 hours", "Europe/Berlin", "2026-03-24T12:00:00Z", "2026-03-23T00:00:00+01:00",
			"2026-03-30T00:00:00+02:00", "week"},
		{"week that ends with a skipped midnight", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
			"2018-10-29T00:00:00-03:00", "2018-11-05T00:00:00-02:00", "week"},
		{"month of the users' new year", "Pacific/Kiritimati", "2026-12-31T10:00:00Z", "2027-01-01T00:00:00+14:00",
			"2027-02-01T00:00:00+14:00", "month"},
		{"last millisecond of a February", "America/New_York", "2028-03-01T04:59:59.999Z", "2028-02-01T00:00:00-05:00",
			"2028-03-01T00:00:00-05:00", "month"},
		{"from a 31st to a month of 30 days", "Asia/Kolkata", "2026-03-31T12:00:00Z", "2026-03-01T00:00:00+05:30",
			"2026-04-01T00:00:00+05:30", "month"},
		{"month an hour short", "Europe/Berlin", "2026-03-01T12:00:00Z", "2026-03-01T00:00:00+01:00",
			"2026-04-01T00:00:00+02:00", "month"},
		{"month two hours long", "Antarctica/Troll", "2026-10-01T12:00:00Z", "2026-10-01T00:00:00+02:00",
			"2026-11-01T00:00:00Z", "month"},
	} {
		tested[c.unit] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			start, until := periodOf(t, c.unit, c.zone, c.at)
			require.Equal(t, c.start, start.Format(time.RFC3339))
			require.Equal(t, c.until, until.Format(time.RFC3339))
		})
	}
	for _, unit := range capping.Calendars() {
		require.True(t, tested[unit], "the table has no period of calendar %s", unit)
	}
}

// TestRetentionCoversTheLongestPeriods checks that logs are kept long enough: a send in the first minute of
// the longest day, week or month counts until the last millisecond of that period.
func TestRetentionCoversTheLongestPeriods(t *testing.T) {
	t.Parallel()
	for _, unit := range capping.Calendars() {
		location, err := time.LoadLocation("Antarctica/Troll")
		require.NoError(t, err)
		policy := capping.Policy{Default: []capping.Limit{{Max: 1, Calendar: unit, Location: location}}}
		start, until := periodOf(t, unit, "Antarctica/Troll", "2026-10-25T20:00:00Z")
		require.GreaterOrEqual(t, policy.Retention(0), until.Sub(start))
	}
}

// TestCalendarDayAcrossClockChange checks that a day limit allows two messages around midnight, but never
// two on one day.
func TestCalendarDayAcrossClockChange(t *testing.T) {
	t.Parallel()
	location, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	limit := capping.Limit{Max: 1, Calendar: capping.CalendarDay, Location: location}
	at := capping.InstantOf(time.Date(2026, 10, 25, 0, 0, 0, 0, location))
	end := capping.InstantOf(time.Date(2026, 10, 26, 0, 0, 0, 0, location))
	require.Equal(t, capping.Instant(25*time.Hour/time.Millisecond), end-at)
	log := capping.Log(nil).Record(nil, capping.Entry{At: at, Token: letter(0)}, 0)
	for _, now := range []capping.Instant{at, at + 1, end - 1} {
		verdict := capping.Judge(log, 0, letter(1), []capping.Rule{limit.Rule(now, 0)}, now, 0)
		require.Equal(t, capping.Verdict{Outcome: capping.Denied, FreesAt: end}, verdict)
	}
	require.Equal(t, capping.Allowed, capping.Judge(log, 0, letter(1), []capping.Rule{limit.Rule(end, 0)}, end,
		0).Outcome)
}
