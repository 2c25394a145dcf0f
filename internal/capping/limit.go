package capping

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// MaxName is the most bytes of a name.
const MaxName = 64

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// NameRule says what IsName demands, to be formatted with what was found.
const NameRule = "must be 1 to 64 letters, digits, '_', '.' and '-', the first a letter or digit, got %q"

// IsName reports whether a limit, a channel, a client or a namespace may be
// called so.
func IsName(text string) bool { return namePattern.MatchString(text) }

// Calendar is the unit of a calendar window. The zero value is none: the
// window is rolling.
type Calendar string

// The calendar windows. A week starts on Monday, a month on its first.
const (
	CalendarDay   Calendar = "day"
	CalendarWeek  Calendar = "week"
	CalendarMonth Calendar = "month"
)

// ChannelSet is a set of channels, a bit each. The zero set stands for all.
type ChannelSet [4]uint64

// ChannelSetOf is the set of the channels; of none it is all.
func ChannelSetOf(channels ...Channel) (set ChannelSet) {
	for _, c := range channels {
		set[c/64] |= 1 << (c % 64)
	}
	return set
}

// All reports whether the set stands for all channels.
func (s ChannelSet) All() bool { return s == ChannelSet{} }

// Has reports whether the channel is in the set.
func (s ChannelSet) Has(c Channel) bool {
	return s.All() || s[c/64]>>(c%64)&1 == 1
}

// add puts the channels of other into s, of which the zero value, unlike other's, is none.
func (s *ChannelSet) add(other ChannelSet) {
	for i := range s {
		if other.All() {
			s[i] = ^uint64(0)
		}
		s[i] |= other[i]
	}
}

// holds is Has of a set of which the zero value is none.
func (s *ChannelSet) holds(c Channel) bool { return s[c/64]>>(c%64)&1 == 1 }

// Channels lists the set in ascending order; of all it is empty.
func (s ChannelSet) Channels() (channels []Channel) {
	if s.All() {
		return nil
	}
	for c := range 256 {
		if s.Has(Channel(c)) {
			channels = append(channels, Channel(c))
		}
	}
	return channels
}

// Limit allows at most Max sends per window.
type Limit struct {
	Name     string
	Max      int            // 0 to LogBound; 0 denies always
	Window   time.Duration  // rolling window, whole milliseconds; 0 when Calendar is set
	Calendar Calendar       // "" when Window is set
	Location *time.Location // of Calendar; nil is UTC
	UserZone bool           // of Calendar: in the user's own time zone, and Location is not used
	Channels ChannelSet     // zero: sends of every channel, and of none
	Shadow   bool           // judged and counted, and denies nobody
}

// AppliesTo reports whether a send on the channel is judged by the limit.
func (l *Limit) AppliesTo(c Channel) bool { return l.Channels.Has(c) }

// byUserZone reports whether the limit's periods are those of the user's time zone.
func (l *Limit) byUserZone() bool { return l.UserZone && l.Calendar != "" }

// longest is a bound of how long an entry can count. For calendar windows it
// is two hours more than a day, a week and 31 days: clocks go back by one hour nearly
// everywhere, and by two at Antarctica/Troll.
func (l *Limit) longest() time.Duration {
	switch l.Calendar {
	case CalendarDay:
		return 26 * time.Hour
	case CalendarWeek:
		return 7*24*time.Hour + 2*time.Hour
	case CalendarMonth:
		return 31*24*time.Hour + 2*time.Hour
	}
	return l.Window
}

// Rule is the limit as it stands at now, with rolling windows longer by widen.
// A limit with UserZone is that of users in UTC.
func (l *Limit) Rule(now Instant, widen time.Duration) Rule { return l.RuleIn(now, widen, nil) }

// RuleIn is Rule for users of a time zone, nil for UTC.
func (l *Limit) RuleIn(now Instant, widen time.Duration, zone *time.Location) Rule {
	r := Rule{Max: l.Max, Channels: l.Channels, Shadow: l.Shadow}
	if l.Calendar == "" {
		r.Hold = (l.Window + widen).Milliseconds()
		return r
	}
	if !l.UserZone {
		zone = l.Location
	}
	r.Start, r.Until = l.Calendar.period(now, cmp.Or(zone, time.UTC))
	return r
}

// period is the calendar period that holds now: its first instant, and the
// first one of the next. time.Date normalises days past the end of a month,
// and moves a midnight that a change of clocks skips to the first instant
// after it.
func (c Calendar) period(now Instant, location *time.Location) (start, until Instant) {
	y, m, d := now.Time().In(location).Date()
	switch c {
	case CalendarMonth:
		return startOfDay(y, m, 1, location), startOfDay(y, m+1, 1, location)
	case CalendarWeek:
		d -= (int(now.Time().In(location).Weekday()) + 6) % 7
		return startOfDay(y, m, d, location), startOfDay(y, m, d+7, location)
	}
	return startOfDay(y, m, d, location), startOfDay(y, m, d+1, location)
}

// startOfDay is the first instant of a day. Where clocks skip midnight,
// time.Date may answer with an hour of the day before: the day then begins at
// the change. Where clocks go back to midnight, it may answer with the second
// midnight of two: the day began at the first.
func startOfDay(y int, m time.Month, d int, location *time.Location) Instant {
	t := time.Date(y, m, d, 0, 0, 0, 0, location)
	day := time.Date(y, m, d, 12, 0, 0, 0, location).Day()
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

// Span is the window as configuration writes it: "24h", "90m", "day", "week" or "month".
func (l *Limit) Span() string {
	if l.Calendar != "" {
		return string(l.Calendar)
	}
	return Span(l.Window)
}

// Span writes a duration without trailing units of zero: 24h, not 24h0m0s.
func Span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
