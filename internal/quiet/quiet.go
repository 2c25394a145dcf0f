// Package quiet is quiet hours: the part of each day, by a clock on a wall, in which
// nothing is sent.
//
// Hours are on from their beginning, included, to their end, excluded, and over
// midnight where the beginning is later than the end: 23:59 to 00:00 is one minute.
//
// A clock on a wall shows what it shows: where it is put back over the end of the
// quiet hours it is quiet again, and where it is put forward over their beginning
// or end they begin or end at the change. A night in which it is put forward is shorter, and hours that
// are left out whole are not on that day.
//
// Of several hours, by clocks of whatever places, it is quiet while any are on. An opening is the
// first instant at which none are; where there is none within the next 400 days, whatever
// the clocks of the places do meanwhile, there is said to be none.
package quiet

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Hours is from From to To of every day, From included and To not; over midnight
// where From is after To. The two are never equal.
type Hours struct {
	From, To Minute
}

// Minute is a time of the day in minutes after midnight, 0 to 1,439.
type Minute int

const day = 24 * time.Hour

var clockRule = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

// ParseMinute reads a time such as 08:00.
func ParseMinute(text string) (Minute, error) {
	parts := clockRule.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("must be a time of the day from 00:00 to 23:59, got %q", text)
	}
	hours, _ := strconv.Atoi(parts[1])
	minutes, _ := strconv.Atoi(parts[2])
	return Minute(60*hours + minutes), nil
}

// String is the time as ParseMinute reads it.
func (m Minute) String() string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }

func (m Minute) ofDay() time.Duration { return time.Duration(m) * time.Minute }

// left is for how long the hours go on when the clock shows a time; 0: they are not on.
func (h Hours) left(shown time.Duration) time.Duration {
	length := (h.To.ofDay() - h.From.ofDay() + day) % day
	return max(length-(shown-h.From.ofDay()+day)%day, 0)
}

// Clock is quiet hours by the clocks of one place.
type Clock struct {
	Hours    Hours
	Location *time.Location // not nil
}

// Piece is a stretch of time in which it is quiet, or not.
type Piece struct {
	On bool // it is quiet
	By int  // On: the first of the clocks whose hours are on at the beginning
	// On: the first instant at which none is on, zero where none opens within a year; else one until which none is
	Until time.Time
}

// farthest bounds the search for an opening: the clocks of a whole year are looked at.
const farthest = 400 * day

// At is the piece of time that t is in, from t on.
func At(clocks []Clock, t time.Time) Piece {
	by, next := step(clocks, t)
	if by < 0 {
		return Piece{Until: next}
	}
	return Piece{On: true, By: by, Until: opening(clocks, next)}
}

// opening is the first instant from t on at which no hours are on, zero where there is
// none. A day that is quiet throughout is looked at once: as long as nobody changes
// the clocks, all that follow are like it.
func opening(clocks []Clock, t time.Time) time.Time {
	for last := t.Add(farthest); t.Before(last); {
		change := nextChange(clocks, t)
		end := t.Add(day)
		if !change.IsZero() && change.Before(end) {
			end = change
		}
		for t.Before(end) {
			by, next := step(clocks, t)
			if by < 0 {
				return t
			}
			t = next
		}
		if change.IsZero() {
			break
		}
		if t.Before(change) {
			t = change
		}
	}
	return time.Time{}
}

// nextChange is when the first of the clocks is put forward or back after t; zero: none ever is.
func nextChange(clocks []Clock, t time.Time) (first time.Time) {
	for _, c := range clocks {
		if _, change := t.In(c.Location).ZoneBounds(); first.IsZero() || !change.IsZero() && change.Before(first) {
			first = change
		}
	}
	return first
}

// step tells the first clock whose hours are on at t, -1 for none, and an instant
// after t until which that is so, as far as one change of clocks lets it see.
func step(clocks []Clock, t time.Time) (by int, until time.Time) {
	by = -1
	opens, closes := t, t.Add(day)
	for i, c := range clocks {
		shown := t.In(c.Location)
		left := c.Hours.left(ofDay(shown))
		end := t.Add(left)
		if left == 0 {
			end = t.Add(c.Hours.away(ofDay(shown)))
		}
		if _, change := shown.ZoneBounds(); !change.IsZero() && change.Before(end) {
			end = change
		}
		switch {
		case left == 0 && end.Before(closes):
			closes = end
		case left > 0 && end.After(opens):
			opens = end
		}
		if left > 0 && by < 0 {
			by = i
		}
	}
	if by < 0 {
		return by, closes
	}
	return by, opens
}

// away is for how long the hours stay off when the clock shows a time at which they are.
func (h Hours) away(shown time.Duration) time.Duration {
	return (h.From.ofDay()-shown+day-1)%day + 1
}

// ofDay is what the clock on the wall shows.
func ofDay(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second +
		time.Duration(t.Nanosecond())
}
