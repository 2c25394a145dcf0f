// Package quiet computes quiet hours: the part of each day, by a wall clock, in which no sends are allowed.
//
// Quiet hours last from their beginning (inclusive) to their end (exclusive). They include midnight when
// the beginning is later than the end: 23:59 to 00:00 is one minute.
//
// Changes of the wall clock apply. When the clock goes back over the end of quiet hours, it is quiet again.
// When the clock goes forward over their beginning or end, they begin or end at the change. Quiet hours that
// the clock skips completely are not on that day.
//
// With several quiet hours in several time zones it is quiet while any of them is on. An opening is the
// first instant at which none is on. When the next 400 days have no such instant, there is no opening.
package quiet

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Hours is the time from From (inclusive) to To (exclusive) of every day. The time runs over midnight when
// From is after To. From and To are never equal.
type Hours struct {
	From, To Minute
}

// Minute is a time of day in minutes after midnight, 0 to 1,439.
type Minute int

const day = 24 * time.Hour

var clockRule = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

// ParseMinute parses a time such as 08:00.
func ParseMinute(text string) (Minute, error) {
	parts := clockRule.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("must be a time of the day from 00:00 to 23:59, got %q", text)
	}
	hours, _ := strconv.Atoi(parts[1])
	minutes, _ := strconv.Atoi(parts[2])
	return Minute(60*hours + minutes), nil
}

// String returns the time in the form that ParseMinute reads.
func (m Minute) String() string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }

func (m Minute) ofDay() time.Duration { return time.Duration(m) * time.Minute }

// left returns how long the hours stay on when the wall clock shows the given time. left returns 0 when they
// are off.
func (h Hours) left(shown time.Duration) time.Duration {
	length := (h.To.ofDay() - h.From.ofDay() + day) % day
	return max(length-(shown-h.From.ofDay()+day)%day, 0)
}

// Clock is quiet hours in one time zone.
type Clock struct {
	Hours    Hours
	Location *time.Location // not nil
}

// Piece is a period of time in which it is quiet throughout or open throughout.
type Piece struct {
	On bool // quiet hours are on
	By int  // when On is true: the index of the first clock whose hours are on at the beginning
	// Until is the end of the piece. When On is true it is the first instant at which no hours are on, or zero
	// without an opening within a year. Otherwise it is an instant until which no hours are on.
	Until time.Time
}

// farthest bounds the search for an opening. The bound covers the clocks of a whole year.
const farthest = 400 * day

// At returns the rest, from t on, of the piece of time that contains t.
func At(clocks []Clock, t time.Time) Piece {
	by, next := step(clocks, t)
	if by < 0 {
		return Piece{Until: next}
	}
	return Piece{On: true, By: by, Until: opening(clocks, next)}
}

// opening returns the first instant, at or after t, at which no hours are on, or zero without one. opening
// checks a day that is quiet throughout only once: all later days are equal until a clock changes.
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

// nextChange returns the first change of any clock (forward or back) after t. nextChange returns zero when
// no clock ever changes.
func nextChange(clocks []Clock, t time.Time) (first time.Time) {
	for _, c := range clocks {
		if _, change := t.In(c.Location).ZoneBounds(); first.IsZero() || !change.IsZero() && change.Before(first) {
			first = change
		}
	}
	return first
}

// step returns the index of the first clock whose hours are on at t, or -1. step also returns an instant
// after t until which this state lasts, looking no farther than the next change of a clock.
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

// away returns how long the hours stay off when the wall clock shows the given time. The hours must be off
// at that time.
func (h Hours) away(shown time.Duration) time.Duration {
	return (h.From.ofDay()-shown+day-1)%day + 1
}

// ofDay returns the time of day that a wall clock shows at t.
func ofDay(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second +
		time.Duration(t.Nanosecond())
}
