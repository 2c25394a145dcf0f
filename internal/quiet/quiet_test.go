package quiet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/quiet"
)

// zones returns time zones of all kinds: without clock changes, with changes by one hour, half an hour or
// two hours, at midnight, for Ramadan, and near the date line.
func zones() []string {
	return []string{
		"UTC", "Asia/Singapore", "Asia/Kolkata", "Asia/Kathmandu", "Europe/Berlin", "America/New_York",
		"Australia/Sydney", "Australia/Lord_Howe",
		"Pacific/Apia", "Pacific/Kiritimati", "Pacific/Chatham", "Asia/Beirut", "America/Havana", "Antarctica/Troll",
		"Africa/Casablanca",
		"Africa/Cairo", "America/Santiago", "America/St_Johns", "Atlantic/Azores",
	}
}

func place(t require.TestingT, name string) *time.Location {
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

func hours(t require.TestingT, from, to string) quiet.Hours {
	a, err := quiet.ParseMinute(from)
	require.NoError(t, err)
	b, err := quiet.ParseMinute(to)
	require.NoError(t, err)
	return quiet.Hours{From: a, To: b}
}

// shownQuiet is the oracle for one instant. shownQuiet compares the digits that a wall clock shows with the
// quiet hours.
func shownQuiet(c quiet.Clock, t time.Time) bool {
	shown, from, to := t.In(c.Location).Format("15:04"), c.Hours.From.String(), c.Hours.To.String()
	if from < to {
		return from <= shown && shown < to
	}
	return from <= shown || shown < to
}

// firstQuiet returns the index of the first clock whose hours are on, or -1.
func firstQuiet(clocks []quiet.Clock, t time.Time) int {
	for i, c := range clocks {
		if shownQuiet(c, t) {
			return i
		}
	}
	return -1
}

// naiveOpening searches minute by minute for the first minute without quiet hours, at most for the duration
// far.
func naiveOpening(clocks []quiet.Clock, t time.Time, far time.Duration) time.Time {
	for at := t; at.Before(t.Add(far)); at = at.Truncate(time.Minute).Add(time.Minute) {
		if firstQuiet(clocks, at) < 0 {
			return at
		}
	}
	return time.Time{}
}

func TestHoursByTheClockOnTheWall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ zone, from, to, at, until string }{
		"in the evening": {"Asia/Singapore", "21:00", "08:00", "2026-11-20T21:00:00+08:00",
			"2026-11-21T08:00:00+08:00"},
		"the last millisecond": {"Asia/Singapore", "21:00", "08:00", "2026-11-21T07:59:59.999+08:00",
			"2026-11-21T08:00:00+08:00"},
		"the first instant that is open": {"Asia/Singapore", "21:00", "08:00", "2026-11-21T08:00:00+08:00", ""},
		"the last that is open": {"Asia/Singapore", "21:00", "08:00", "2026-11-21T20:59:59.999+08:00",
			""},
		"within a day": {"Asia/Kolkata", "12:30", "14:00", "2026-11-21T13:00:00+05:30",
			"2026-11-21T14:00:00+05:30"},
		"a minute": {"UTC", "23:59", "00:00", "2026-11-21T23:59:59.999Z",
			"2026-11-22T00:00:00Z"},
		"before a minute": {"UTC", "23:59", "00:00", "2026-11-21T23:58:59.999Z", ""},
		"all but a minute": {"UTC", "00:00", "23:59", "2026-11-21T00:00:00Z",
			"2026-11-21T23:59:00Z"},
		"a night that is an hour short": {"Europe/Berlin", "21:00", "08:00", "2026-03-28T21:00:00+01:00",
			"2026-03-29T08:00:00+02:00"},
		"a night that is an hour long": {"Europe/Berlin", "21:00", "08:00", "2026-10-24T21:00:00+02:00",
			"2026-10-25T08:00:00+01:00"},
		"put forward over the end": {"Europe/Berlin", "21:00", "02:30", "2026-03-29T01:00:00+01:00",
			"2026-03-29T03:00:00+02:00"},
		"put forward over the beginning": {"Europe/Berlin", "02:30", "08:00", "2026-03-29T03:00:00+02:00",
			"2026-03-29T08:00:00+02:00"},
		"put forward over all of it": {"Europe/Berlin", "02:10", "02:50", "2026-03-29T03:00:00+02:00", ""},
		"put back over the end": {"Europe/Berlin", "21:00", "02:30", "2026-10-25T02:00:00+02:00",
			"2026-10-25T02:30:00+02:00"},
		"between the end and its return": {"Europe/Berlin", "21:00", "02:30", "2026-10-25T02:45:00+02:00", ""},
		"quiet again": {"Europe/Berlin", "21:00", "02:30", "2026-10-25T02:00:00+01:00",
			"2026-10-25T02:30:00+01:00"},
		"put back over the beginning": {"Europe/Berlin", "02:30", "08:00", "2026-10-25T02:59:59+02:00",
			"2026-10-25T03:00:00+02:00"},
		"put back to the very beginning": {"Europe/Berlin", "02:00", "08:00", "2026-10-25T02:00:00+02:00",
			"2026-10-25T08:00:00+01:00"},
		"the same evening in the west": {"America/New_York", "21:00", "08:00", "2026-10-31T22:00:00-04:00",
			"2026-11-01T08:00:00-05:00"},
		"half an hour back": {"Australia/Lord_Howe", "21:00", "01:45", "2026-04-05T00:00:00+11:00",
			"2026-04-05T01:45:00+11:00"},
		"half an hour back, quiet again": {"Australia/Lord_Howe", "21:00", "01:45", "2026-04-05T01:30:00+10:30",
			"2026-04-05T01:45:00+10:30"},
		"half an hour forward": {"Australia/Lord_Howe", "21:00", "02:15", "2026-10-04T01:59:00+10:30",
			"2026-10-04T02:30:00+11:00"},
		"two hours back": {"Antarctica/Troll", "21:00", "08:00", "2026-10-24T21:00:00+02:00",
			"2026-10-25T08:00:00Z"},
		"midnight is left out": {"Asia/Beirut", "22:00", "00:30", "2026-03-28T23:00:00+02:00",
			"2026-03-29T01:00:00+03:00"},
		"midnight comes twice": {"Asia/Beirut", "22:00", "00:00", "2026-10-24T23:30:00+03:00",
			"2026-10-25T00:00:00+02:00"},
		"midnight comes twice, by an hour early": {"America/Havana", "22:00", "00:30", "2026-10-31T23:00:00-04:00",
			"2026-11-01T00:30:00-04:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, err := time.Parse(time.RFC3339, c.at)
			require.NoError(t, err)
			clocks := []quiet.Clock{{Hours: hours(t, c.from, c.to), Location: place(t, c.zone)}}
			piece := quiet.At(clocks, at)
			require.Equal(t, c.until != "", piece.On)
			if c.until == "" {
				require.True(t, piece.Until.After(at))
				return
			}
			until, err := time.Parse(time.RFC3339, c.until)
			require.NoError(t, err)
			require.Equal(t, until.UTC(), piece.Until.UTC())
			require.Equal(t, until.UTC(), naiveOpening(clocks, at, 48*time.Hour).UTC(), "the oracle")
		})
	}
}

// TestHoursThatMeet checks that adjacent quiet hours count as one night: the first gives its name, the last
// its end.
func TestHoursThatMeet(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	clocks := []quiet.Clock{
		{Hours: hours(t, "06:00", "09:00"), Location: time.UTC},
		{Hours: hours(t, "21:00", "06:00"), Location: time.UTC},
		{Hours: hours(t, "22:00", "23:00"), Location: time.UTC},
	}
	require.Equal(t, quiet.Piece{On: true, By: 1, Until: at.Add(11 * time.Hour)}, quiet.At(clocks, at))
	require.Equal(t, quiet.Piece{On: true, By: 0, Until: at.Add(11 * time.Hour)}, quiet.At(clocks, at.Add(9*time.Hour)))
}

func TestNothingConfiguredIsNeverQuiet(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	require.False(t, quiet.At(nil, at).On)
	require.Equal(t, at, quiet.NewTimeline(nil).Opens(at))
}

func TestHoursThatLeaveNothingOpen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	for _, zone := range zones() {
		location := place(t, zone)
		clocks := []quiet.Clock{{hours(t, "08:00", "20:00"), location}, {hours(t, "20:00", "08:00"), location}}
		piece := quiet.At(clocks, at)
		require.True(t, piece.On, zone)
		require.Zero(t, piece.Until, zone)
		require.Zero(t, quiet.NewTimeline(clocks).Opens(at), zone)
	}
}

// TestOpeningOfAnotherSeason uses two quiet hours that leave nothing open in winter and one hour in summer.
// The opening must be where the clocks change.
func TestOpeningOfAnotherSeason(t *testing.T) {
	t.Parallel()
	clocks := []quiet.Clock{{hours(t, "07:00", "19:00"), time.UTC}, {hours(t, "20:00", "08:00"),
		place(t, "Europe/Berlin")}}
	at := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	piece := quiet.At(clocks, at)
	require.True(t, piece.On)
	opening := time.Date(2027, 3, 28, 6, 0, 0, 0, time.UTC)
	require.Equal(t, opening, piece.Until.UTC())
	require.Negative(t, firstQuiet(clocks, opening))
	for ; at.Before(opening); at = at.Add(15 * time.Minute) {
		require.GreaterOrEqual(t, firstQuiet(clocks, at), 0, at)
	}
}

// drawClocks draws one to three quiet hours in random time zones.
func drawClocks(t *rapid.T) (clocks []quiet.Clock) {
	for i := range rapid.IntRange(1, 3).Draw(t, "clocks") {
		from := rapid.IntRange(0, 1439).Draw(t, fmt.Sprint("from", i))
		length := rapid.SampledFrom([]int{1, 30, 60, 61, 180, 600, 720, 1380, 1439}).Draw(t, fmt.Sprint("length", i))
		zone := rapid.SampledFrom(zones()).Draw(t, fmt.Sprint("zone", i))
		clocks = append(clocks, quiet.Clock{
			Hours:    quiet.Hours{From: quiet.Minute(from), To: quiet.Minute((from + length) % 1440)},
			Location: place(t, zone),
		})
	}
	return clocks
}

// drawInstant draws an instant within three years, half of the time near a clock change.
func drawInstant(t *rapid.T, clocks []quiet.Clock) time.Time {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 3*365*24*3600*1000).Draw(t,
		"at")) * time.Millisecond)
	_, change := at.In(clocks[0].Location).ZoneBounds()
	if change.IsZero() || !rapid.Bool().Draw(t, "near") {
		return at
	}
	return change.Add(time.Duration(rapid.Int64Range(-30*3600*1000, 6*3600*1000).Draw(t,
		"beside")) * time.Millisecond).UTC()
}

// requirePiece compares a piece with a minute-by-minute search.
func requirePiece(t *rapid.T, clocks []quiet.Clock, at time.Time, timeline *quiet.Timeline) {
	piece, first := quiet.At(clocks, at), firstQuiet(clocks, at)
	require.Equal(t, first >= 0, piece.On)
	if !piece.On {
		require.True(t, piece.Until.After(at))
		for step := at; step.Before(piece.Until); step = step.Truncate(time.Minute).Add(time.Minute) {
			require.Negative(t, firstQuiet(clocks, step), step)
		}
		require.True(t, at.Equal(timeline.Opens(at)))
		return
	}
	require.Equal(t, first, piece.By)
	opening := naiveOpening(clocks, at, 3*24*time.Hour)
	if !opening.IsZero() {
		require.Equal(t, opening.UTC(), piece.Until.UTC())
	} else {
		require.True(t, piece.Until.IsZero() || piece.Until.After(at.Add(3*24*time.Hour)))
	}
	require.Equal(t, piece.Until.UTC(), timeline.Opens(at).UTC())
}

func TestPiecesAgreeWithStepsOfAMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clocks := drawClocks(t)
		timeline := quiet.NewTimeline(clocks)
		at := drawInstant(t, clocks)
		for i := range 4 {
			requirePiece(t, clocks, at.Add(time.Duration(i*i)*7*time.Hour), timeline)
		}
	})
}

// TestEveryMinuteOfTheDaysOfChange checks every minute of the days on which clocks change, in every zone,
// for quiet hours at night and at noon.
func TestEveryMinuteOfTheDaysOfChange(t *testing.T) {
	t.Parallel()
	for _, zone := range zones() {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			location := place(t, zone)
			night := []quiet.Clock{{hours(t, "22:15", "02:30"), location}}
			timeline := quiet.NewTimeline(night)
			for _, change := range changes(location) {
				var want time.Time // the opening, computed backwards
				for at := change.Add(34 * time.Hour); at.After(change.Add(-26 * time.Hour)); at = at.Add(-time.Minute) {
					on := shownQuiet(night[0], at)
					if !on {
						want = at
					}
					if want.IsZero() {
						continue
					}
					require.True(t, want.Equal(timeline.Opens(at)), at)
					piece := quiet.At(night, at)
					require.Equal(t, on, piece.On, at)
					require.True(t, !on || want.Equal(piece.Until), at)
				}
			}
		})
	}
}

// changes returns the clock changes in 2026, or any day without a change.
func changes(location *time.Location) (found []time.Time) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for {
		_, change := at.In(location).ZoneBounds()
		if change.IsZero() || change.Year() > 2026 {
			break
		}
		found, at = append(found, change), change
	}
	if found == nil {
		found = append(found, at.AddDate(0, 6, 0))
	}
	return found
}

// BenchmarkTimeline looks up many instants. The cache of a timeline is bounded by the number of days.
func BenchmarkTimeline(b *testing.B) {
	berlin := place(b, "Europe/Berlin")
	timeline := quiet.NewTimeline([]quiet.Clock{{hours(b, "21:00", "08:00"), berlin}})
	at, n := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC), 0
	b.ReportAllocs()
	for b.Loop() {
		timeline.Opens(at.Add(time.Duration(n%2_592_000_000) * time.Millisecond))
		n += 1_234_567
	}
}

func TestParseMinute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]quiet.Minute{"00:00": 0, "08:05": 485, "19:59": 1199, "23:59": 1439} {
		minute, err := quiet.ParseMinute(text)
		require.NoError(t, err)
		require.Equal(t, want, minute)
		require.Equal(t, text, minute.String())
	}
	for _, text := range []string{"", "24:00", "8:00", "08:60", "08:0", "08.00", "0800", " 08:00", "08:00\n",
		"08:00:00", "-1:00", "٠٨:٠٠", "21:00 "} {
		_, err := quiet.ParseMinute(text)
		require.ErrorContains(t, err, "must be a time of the day from 00:00 to 23:59", "%q", text)
	}
}

// FuzzParseMinute checks that every parsed time is formatted as it was written, and that other texts are
// rejected.
func FuzzParseMinute(f *testing.F) {
	for _, seed := range []string{"00:00", "23:59", "24:00", "7:30", "08:00\n", "0a:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		minute, err := quiet.ParseMinute(text)
		clock, clockErr := time.Parse("15:04", text)
		if err != nil {
			require.True(t, clockErr != nil || len(text) != len("15:04"), "%q is a time", text)
			return
		}
		require.NoError(t, clockErr)
		require.Equal(t, clock.Hour()*60+clock.Minute(), int(minute))
		require.Equal(t, text, minute.String())
	})
}
