package quiet

import "time"

// SilentDays counts the days during which quiet hours apply in every minute, and returns the beginning of the first
// such day. SilentDays checks the days from the day of the argument "from" to the day before the argument "until", in
// the time zone of the argument "place". If every day has a minute without quiet hours, the result "first" is the zero
// time. SilentDays checks only one of the days between two clock changes, because these days are equal.
func SilentDays(clocks []Clock, place *time.Location, from, until time.Time) (first time.Time, days int) {
	all := append([]Clock{{Location: place}}, clocks...)
	for start := startOfDay(from.In(place)); start.Before(until); {
		year, month, date := start.In(place).Date()
		next := startOfDay(time.Date(year, month, date+1, 12, 0, 0, 0, place))
		alike := 1
		change := nextChange(all, start)
		// A day whose midnight is skipped begins later than the following days.
		whole := next.Sub(start) == day
		if end := earlier(change, until); whole && end.After(next) { // such a day may be longer
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

// The function "earlier" returns the earlier of two times. The zero time a means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// startOfDay returns the time at which the day that contains t begins, in the time zone of t. If a clock change skips
// midnight, the day begins at the change. If midnight occurs twice, the day begins at the first midnight.
func startOfDay(t time.Time) time.Time {
	year, month, date := t.Date()
	noon := time.Date(year, month, date, 12, 0, 0, 0, t.Location())
	start := noon.Add(-12 * time.Hour)
	for changed, _ := noon.ZoneBounds(); !changed.IsZero() && !changed.Before(start); changed,
		_ = changed.Add(-1).ZoneBounds() {
		_, before := changed.Add(-1).Zone()
		midnight := time.Date(year, month, date, 0, 0, 0, 0, time.FixedZone("", before))
		if !midnight.Before(changed) { // the clock change skips midnight
			return changed
		}
		start = midnight.In(t.Location())
	}
	return start
}
