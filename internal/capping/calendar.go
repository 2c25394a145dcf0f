package capping

import "time"

// Calendar is the unit of a calendar window. The zero value of Calendar means a rolling window.
type Calendar string

// The calendar windows. A week starts on Monday, and a month starts on its first day.
const (
	CalendarDay   Calendar = "day"
	CalendarWeek  Calendar = "week"
	CalendarMonth Calendar = "month"
)

// A calendarUnit defines one unit of calendar windows: a day, a week or a month.
type calendarUnit struct {
	name Calendar
	// longest is an upper bound for the length of one period of the unit. The bound is two hours longer than the
	// longest period, because the clocks of Antarctica/Troll go back by two hours. Nearly all other clocks go back by
	// one hour.
	longest time.Duration
	// period returns the first day of the period that contains today, and the first day of the next period. Days may be
	// out of range, such as 0 November or 32 November.
	period func(today date, weekday time.Weekday) (first, next date)
}

type date struct {
	year  int
	month time.Month
	day   int
}

// calendarUnits is the only list of calendar units. The configuration, the models and the tests loop over
// calendarUnits, and arrays have one element for each unit.
var calendarUnits = [...]calendarUnit{
	{CalendarDay, 26 * time.Hour, func(d date, _ time.Weekday) (first, next date) {
		return d, date{d.year, d.month, d.day + 1}
	}},
	{CalendarWeek, (7*24 + 2) * time.Hour, func(d date, weekday time.Weekday) (first, next date) {
		monday := d.day - (int(weekday)+6)%7
		return date{d.year, d.month, monday}, date{d.year, d.month, monday + 7}
	}},
	{CalendarMonth, (31*24 + 2) * time.Hour, func(d date, _ time.Weekday) (first, next date) {
		return date{d.year, d.month, 1}, date{d.year, d.month + 1, 1}
	}},
}

// Calendars returns the units of calendar windows, shortest first.
func Calendars() (calendars [len(calendarUnits)]Calendar) {
	for i := range calendarUnits {
		calendars[i] = calendarUnits[i].name
	}
	return calendars
}

// The method "unit" returns the definition of the calendar unit. The method "unit" panics for a calendar that is not in
// calendarUnits.
func (c Calendar) unit() *calendarUnit {
	for i := range calendarUnits {
		if calendarUnits[i].name == c {
			return &calendarUnits[i]
		}
	}
	panic("capping: unknown calendar " + string(c))
}

// The method "period" returns the first instant of the calendar period that contains now, and the first instant of the
// next period.
func (c Calendar) period(now Instant, location *time.Location) (start, until Instant) {
	local := now.Time().In(location)
	year, month, day := local.Date()
	first, next := c.unit().period(date{year, month, day}, local.Weekday())
	return first.start(location), next.start(location)
}

// The method "start" returns the first instant of a day in the time zone. The day of the date may be outside the month,
// because time.Date normalises days outside the month. For a day on which clocks skip midnight, time.Date may return a
// time of the day before. If clocks skip midnight, the method "start" returns the instant of the clock change. If
// clocks go back to midnight, a day has two midnights. time.Date may return the second midnight, but the method "start"
// returns the first midnight.
func (d date) start(location *time.Location) Instant {
	t := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, location)
	day := time.Date(d.year, d.month, d.day, 12, 0, 0, 0, location).Day()
	change, next := t.ZoneBounds()
	if t.Day() != day {
		return InstantOf(next)
	}
	if !change.IsZero() {
		_, before := change.Add(-1).Zone()
		_, after := t.Zone()
		first := t.Add(time.Duration(after-before) * time.Second)
		if first.Before(change) && first.Day() == day {
			t = first
		}
	}
	return InstantOf(t)
}
