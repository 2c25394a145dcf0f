// Package quiet computes quiet hours. Quiet hours are a part of each day, by local time, in which no sends are allowed.
//
// Quiet hours last from their beginning (inclusive) to their end (exclusive). If the beginning is later than the end,
// quiet hours include midnight, so quiet hours from 23:59 to 00:00 last one minute.
//
// Quiet hours follow changes of daylight saving time. When the clock goes back over the end of quiet hours, the quiet
// hours apply a second time. When the clock goes forward over the beginning or the end of quiet hours, the quiet hours
// begin or end at the clock change. When the clock skips quiet hours completely, there are no quiet hours on that day.
//
// If several quiet hours apply to a user, possibly in several time zones, sends are forbidden while any of them
// applies. An opening is the first time at which none of the quiet hours applies. If quiet hours apply without a break
// during the next 400 days, there is no opening (time without quiet hours).
package quiet

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Hours are quiet hours: a period of each day from From (inclusive) to To (exclusive). If From is after To, the quiet
// hours include midnight. From and To always differ.
type Hours struct {
	From, To Minute
}

// Minute is a time of day, in minutes after midnight from 0 to 1,439.
type Minute int

const day = 24 * time.Hour

var clockRule = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

// ParseMinute parses a time of day such as 08:00.
func ParseMinute(text string) (Minute, error) {
	parts := clockRule.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("must be a time of the day from 00:00 to 23:59, got %q", text)
	}
	hours, _ := strconv.Atoi(parts[1])
	minutes, _ := strconv.Atoi(parts[2])
	return Minute(60*hours + minutes), nil
}

// String returns the time of day in the form that ParseMinute parses, such as 08:00.
func (m Minute) String() string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }

func (m Minute) ofDay() time.Duration { return time.Duration(m) * time.Minute }

// The method "left" returns the remaining length of the quiet hours at the given local time of day. If the quiet hours
// do not apply at this time, "left" returns 0.
func (h Hours) left(shown time.Duration) time.Duration {
	length := (h.To.ofDay() - h.From.ofDay() + day) % day
	return max(length-(shown-h.From.ofDay()+day)%day, 0)
}

// Clock combines quiet hours with the time zone in which they apply.
type Clock struct {
	Hours    Hours
	Location *time.Location // never nil
}

// Piece is a period of time that lies completely inside or completely outside of quiet hours.
type Piece struct {
	On bool // quiet hours apply
	By int  // if On: index of the first clock whose quiet hours apply at the beginning
	// Until is the end of the period. If On is true, Until is the first time at which no quiet hours apply, or zero if
	// there is no such time within 400 days. If On is false, no quiet hours apply before Until.
	Until time.Time
}

// The constant "farthest" is the length of the search for an opening (time without quiet hours). The period "farthest"
// is longer than a year, so that it contains all clock changes of a year.
const farthest = 400 * day

// The function At returns a period that begins at t. During the whole period, quiet hours either apply or do not apply.
func At(clocks []Clock, t time.Time) Piece {
	by, next := step(clocks, t)
	if by < 0 {
		return Piece{Until: next}
	}
	return Piece{On: true, By: by, Until: opening(clocks, next)}
}

// The function "opening" returns the first time at or after t at which no quiet hours apply, or zero if there is no
// such time. If quiet hours apply during a whole day, opening() skips all following days up to the next clock change,
// because these days are equal.
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

// nextChange returns the first time after t at which a clock in any of the time zones goes forward or back. If no clock
// ever changes, nextChange returns the zero time.
func nextChange(clocks []Clock, t time.Time) (first time.Time) {
	for _, c := range clocks {
		if _, change := t.In(c.Location).ZoneBounds(); first.IsZero() || !change.IsZero() && change.Before(first) {
			first = change
		}
	}
	return first
}

// The function "step" returns the index of the first element of "clocks" (quiet hours with their time zones) whose
// quiet hours apply at the time t. If no quiet hours apply at the time t, "step" returns -1. The result "until" of step
// is a later time, at most the next clock change, until which the index stays the same.
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

// The method "away" returns the time from the local time of day "shown" until the quiet hours begin. The caller of away
// makes sure that the quiet hours do not apply at that time.
func (h Hours) away(shown time.Duration) time.Duration {
	return (h.From.ofDay()-shown+day-1)%day + 1
}

// ofDay returns the time of day of the argument t as a duration since midnight.
func ofDay(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second +
		time.Duration(t.Nanosecond())
}
