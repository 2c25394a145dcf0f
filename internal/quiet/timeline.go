package quiet

import "time"

// Timeline tells openings of the same clocks again and again. What it has worked out of
// a day it keeps, so that each of many instants costs a search among a day's pieces. It is
// for one goroutine.
type Timeline struct {
	clocks []Clock
	days   map[int64][]stretch // by days since 1970, in UTC
}

// stretch is one in which it is quiet, within a day of UTC.
type stretch struct {
	from, end time.Time
	opens     time.Time // zero: never
}

// NewTimeline is the timeline of the clocks.
func NewTimeline(clocks []Clock) *Timeline {
	return &Timeline{clocks: clocks, days: map[int64][]stretch{}}
}

// Opens is the first instant from t on at which it is not quiet: t where it is not. It
// is zero where there is none within a year.
func (l *Timeline) Opens(t time.Time) time.Time {
	number := dayOf(t)
	stretches, known := l.days[number]
	if !known {
		stretches = l.stretches(time.Unix(number*int64(day/time.Second), 0))
		l.days[number] = stretches
	}
	for i := range stretches {
		if s := &stretches[i]; !t.Before(s.from) && t.Before(s.end) {
			return s.opens
		}
	}
	return t
}

func dayOf(t time.Time) int64 {
	const seconds = int64(day / time.Second)
	number := t.Unix() / seconds
	if t.Unix()%seconds < 0 {
		number--
	}
	return number
}

// stretches is the quiet ones of the day that begins at t.
func (l *Timeline) stretches(t time.Time) (stretches []stretch) {
	for end := t.Add(day); t.Before(end); {
		piece := At(l.clocks, t)
		next := piece.Until
		if next.IsZero() || next.After(end) {
			next = end
		}
		if piece.On {
			stretches = append(stretches, stretch{from: t, end: next, opens: piece.Until})
		}
		t = next
	}
	return stretches
}
