package quiet

import "time"

// Timeline computes the end of quiet hours for many points in time. The quiet hours and their clocks never change. A
// Timeline caches the periods of quiet hours of each day, so that a further time on the same day needs only a search in
// these periods. A Timeline is not safe for concurrent use.
type Timeline struct {
	clocks []Clock
	days   map[int64][]stretch // by the number of days since 1970, in UTC
}

// The type "stretch" is a period of quiet hours within one day in UTC.
type stretch struct {
	from, end time.Time
	opens     time.Time // zero: never
}

// NewTimeline returns a Timeline for the clocks, with an empty cache.
func NewTimeline(clocks []Clock) *Timeline {
	return &Timeline{clocks: clocks, days: map[int64][]stretch{}}
}

// The method Opens returns the first time at or after t at which no quiet hours apply. If quiet hours apply without a
// break for 400 days, Opens returns zero.
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

// The method "stretches" returns the periods of quiet hours on the day in UTC that begins at t.
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
