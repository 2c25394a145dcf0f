package quiet

import "time"

// SilentDays counts the days that have no open minute under the clocks, and returns the beginning of the
// first such day. SilentDays counts from the day of from to the day before until, in the time zone place.
// Without such a day, first is zero. Days between two changes of the clocks are equal, so that SilentDays
// checks one of them.
func SilentDays(clocks []Clock, place *time.Location, from, until time.Time) (first time.Time, days int) {
	all := append([]Clock{{Location: place}}, clocks...)
	for start := startOfDay(from.In(place)); start.Before(until); {
		year, month, date := start.In(place).Date()
		next := startOfDay(time.Date(year, month, date+1, 12, 0, 0, 0, place))
		alike := 1
		change := nextChange(all, start)
		// A day whose midnight is skipped begins later than the following days.
		whole := next.Sub(start) == day
		if end := earlier(change, until); whole && end.After(next) { // a day that ends with a change may be longer
			alike += int((end.Sub(next) - 1) / day)
		}
		if piece := At(clocks, start); piece.On && (piece.Until.IsZero() || !piece.Until.Before(next)) {
			if days == 0 {
				first = start
			}
			days += alike
		}
		start = next.Add(time.Duration(alike-1) * day)
	}
	return first, days
}

// earlier returns the earlier of two instants, where the zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// startOfDay returns the first instant of t's day in t's location. A skipped midnight gives the change of
// the clock, and a repeated midnight gives the first one.
func startOfDay(t time.Time) time.Time {
	year, month, date := t.Date()
	noon := time.Date(year, month, date, 12, 0, 0, 0, t.Location())
	start := noon.Add(-12 * time.Hour)
	for changed, _ := noon.ZoneBounds(); !changed.IsZero() && !changed.Before(start); changed,
		_ = changed.Add(-1).ZoneBounds() {
		_, before := changed.Add(-1).Zone()
		midnight := time.Date(year, month, date, 0, 0, 0, 0, time.FixedZone("", before))
		if !midnight.Before(changed) { // midnight is skipped
			return changed
		}
		start = midnight.In(t.Location())
	}
	return start
}
