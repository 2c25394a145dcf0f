package quiet

import "time"

// SilentDays counts the days by the clock of a place, from that of one instant to that before another one, of
// which no minute is open by the clocks, and tells when the first of them begins; zero: there is none. Days
// between two changes of the clocks are alike, so that one of them is looked at.
func SilentDays(clocks []Clock, place *time.Location, from, until time.Time) (first time.Time, days int) {
	all := append([]Clock{{Location: place}}, clocks...)
	for start := startOfDay(from.In(place)); start.Before(until); {
		year, month, date := start.In(place).Date()
		next := startOfDay(time.Date(year, month, date+1, 12, 0, 0, 0, place))
		alike := 1
		change := nextChange(all, start)
		// a day whose midnight is left out begins later than those after it
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

// earlier is the first of two instants, where zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// startOfDay is the first instant of t's day by the clock of t's location: where midnight is left out the change
// of the clock, where it comes twice the first.
func startOfDay(t time.Time) time.Time {
	year, month, date := t.Date()
	noon := time.Date(year, month, date, 12, 0, 0, 0, t.Location())
	start := noon.Add(-12 * time.Hour)
	for changed, _ := noon.ZoneBounds(); !changed.IsZero() && !changed.Before(start); changed,
		_ = changed.Add(-1).ZoneBounds() {
		_, before := changed.Add(-1).Zone()
		midnight := time.Date(year, month, date, 0, 0, 0, 0, time.FixedZone("", before))
		if !midnight.Before(changed) { // left out
			return changed
		}
		start = midnight.In(t.Location())
	}
	return start
}
