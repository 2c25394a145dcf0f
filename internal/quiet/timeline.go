package quiet

import "time"

// Timeline computes many openings of the same clocks. A Timeline caches the quiet periods of each day, so
// that a further instant costs one search among a day's periods. A Timeline is not safe for concurrent use.
type Timeline struct {
	clocks []Clock
	days   map[int64][]stretch // by day since 1970, in UTC
}

// stretch is a period of quiet within one day of UTC.
type stretch struct {
	from, end time.Time
	opens     time.Time // zero: never
}

// NewTimeline returns an empty timeline of the clocks.
func NewTimeline(clocks []Clock) *Timeline {
	return &Timeline{clocks: clocks, days: map[int64][]stretch{}}
}

// Opens returns the first instant, at or after t, at which it is not quiet. Opens returns zero when the next
// year has no such instant.
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

// stretches returns the quiet periods of the day that begins at t.
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
