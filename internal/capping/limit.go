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
const NameRule = "must be 1 to 64 letters, digits, '_', '.' and '-', beginning with a letter or digit, got %q"

// IsName reports whether a limit, a channel, a client or a namespace may be
// called so.
func IsName(text string) bool { return namePattern.MatchString(text) }

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

// longest is an upper bound for the time that an entry can count.
func (l *Limit) longest() time.Duration {
	if l.Calendar == "" {
		return l.Window
	}
	return l.Calendar.unit().longest
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

// Span is the window as configuration writes it: a duration such as "24h", or one of Calendars.
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
