package capping

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// MaxName is the largest length of a name in bytes.
const MaxName = 64

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// NameRule is the error text of the rule that IsName checks. NameRule is a format string with one verb, which the
// caller replaces by the invalid name.
const NameRule = "must be 1 to 64 letters, digits, '_', '.' and '-', beginning with a letter or digit, got %q"

// IsName reports whether text is a valid name of a limit, a channel, a client or a namespace.
func IsName(text string) bool { return namePattern.MatchString(text) }

// ChannelSet is a set of channels with one bit for each channel. The zero ChannelSet means all channels.
type ChannelSet [4]uint64

// ChannelSetOf returns the set of the given channels. Without arguments, ChannelSetOf returns the set of all channels.
func ChannelSetOf(channels ...Channel) (set ChannelSet) {
	for _, c := range channels {
		set[c/64] |= 1 << (c % 64)
	}
	return set
}

// The method All reports whether the set contains all channels.
func (s ChannelSet) All() bool { return s == ChannelSet{} }

// The method Has reports whether the channel is in the set.
func (s ChannelSet) Has(c Channel) bool {
	return s.All() || s[c/64]>>(c%64)&1 == 1
}

// The method "contains" reports whether the set contains every channel of the set "other".
func (s ChannelSet) contains(other ChannelSet) bool {
	if s.All() || other.All() {
		return s.All()
	}
	for i := range s {
		if other[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// The method "add" adds the channels of the set "other" to the set s. For the method "add", a set s with the zero value
// contains no channel. If the set "other" has the zero value, it contains all channels, as everywhere else.
func (s *ChannelSet) add(other ChannelSet) {
	for i := range s {
		if other.All() {
			s[i] = ^uint64(0)
		}
		s[i] |= other[i]
	}
}

// The method "holds" reports whether the channel is in the set s. If s has its zero value, the method "holds" returns
// false for every channel.
func (s *ChannelSet) holds(c Channel) bool { return s[c/64]>>(c%64)&1 == 1 }

// Channels returns the channels of the set in ascending order. Channels returns nil for the set of all
// channels.
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

// Limit allows at most Max sends to a user per window.
type Limit struct {
	Name     string
	Max      int            // 0 to LogBound; 0 denies every send
	Window   time.Duration  // rolling window, whole milliseconds; 0 when Calendar is set
	Calendar Calendar       // "" when Window is set
	Location *time.Location // the time zone of Calendar; nil is UTC
	UserZone bool           // Calendar uses the user's own time zone, and Location is ignored
	Channels ChannelSet     // zero: sends on every channel, and sends without a channel
	Shadow   bool           // the limit counts whom it would deny, but denies nobody
}

// AppliesTo reports whether the limit counts and denies sends on the channel.
func (l *Limit) AppliesTo(c Channel) bool { return l.Channels.Has(c) }

// The method Covers reports whether the limit counts a send whenever the limit "other" counts the send. If two limits
// with calendar periods have different time zones, Covers is false.
func (l *Limit) Covers(other *Limit) bool {
	if !l.Channels.contains(other.Channels) {
		return false
	}
	if l.Calendar == "" || other.Calendar == "" {
		return l.Calendar == "" && l.Window >= other.longest()
	}
	return l.UserZone == other.UserZone && (l.UserZone || zoneName(l) == zoneName(other)) &&
		(l.Calendar == other.Calendar || other.Calendar == CalendarDay)
}

func zoneName(l *Limit) string { return cmp.Or(l.Location, time.UTC).String() }

// byUserZone reports whether the limit's calendar periods depend on the user's time zone.
func (l *Limit) byUserZone() bool { return l.UserZone && l.Calendar != "" }

// The method "longest" returns an upper bound for the time during which a log entry can count for the limit.
func (l *Limit) longest() time.Duration {
	if l.Calendar == "" {
		return l.Window
	}
	return l.Calendar.unit().longest
}

// Rule returns the Rule (prepared form) of the limit for a decision at the instant now. The rule adds widen to a
// rolling window. For a limit in the user's time zone (UserZone), Rule uses UTC instead of the user's time zone.
func (l *Limit) Rule(now Instant, widen time.Duration) Rule { return l.RuleIn(now, widen, nil) }

// RuleIn returns the Rule (prepared form) of the limit for a decision at the instant now about users in the given time
// zone. A nil zone means UTC.
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

// Span returns the window of the limit as written in the configuration: a duration such as "24h", or a name from
// Calendars.
func (l *Limit) Span() string {
	if l.Calendar != "" {
		return string(l.Calendar)
	}
	return Span(l.Window)
}

// The function Span formats a duration without trailing zero units: 24h, not 24h0m0s.
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
