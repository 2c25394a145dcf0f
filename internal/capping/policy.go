package capping

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"capper/internal/quiet"
	"capper/internal/share"
)

// Policy maps segments to limits and says which sends are withheld. A policy in use must not be changed.
type Policy struct {
	Version  string             // the version of the configuration
	Channels map[string]Channel // configured channels by name
	// RequireChannel says that callers must name the channel of a send. The server checks this for API calls; other
	// callers may leave the channel out.
	RequireChannel bool
	Default        []Limit            // limits of users in no segment, and of segments without limits of their own
	Segments       map[string][]Limit // an empty list means no limits

	Suppress []Suppression  // the first suppression that contains a user denies
	Holdout  *Holdout       // nil: none
	Quiet    []Quiet        // at most MaxQuiet, with Sets at most MaxQuietOfSets
	Zone     *time.Location // the zone of users in no time zone set; nil is UTC
}

// MaxQuiet is the largest number of quiet hours in a policy. MaxQuietOfSets is the largest number of quiet hours that
// apply only to users of sets. It is bounded because the work of a call grows with the number of combinations of these
// sets.
const (
	MaxQuiet       = 16
	MaxQuietOfSets = 8
)

// MaxSuppress is the largest number of suppressed sets in a policy.
const MaxSuppress = 250

// Suppression denies all sends to the users of a set, without an end.
type Suppression struct {
	Set        string
	Channels   ChannelSet // zero: sends of every channel, and sends without a channel
	EvenExempt bool       // also denies sends without limits (Send.Enforce false)
	// MayLose is the largest percentage of users that may leave the set with a new generation; 100 allows any
	// loss. A generation with a larger loss is not used.
	MayLose float64
	MaxAge  time.Duration // sends are Unavailable when the set is older; 0: any age
}

// Holdout denies sends to a share of all users, so that these users can be compared with the others.
type Holdout struct {
	Share    share.Share
	Channels ChannelSet // zero: sends of every channel, and sends without a channel
}

// Quiet denies sends during quiet hours.
type Quiet struct {
	Hours    quiet.Hours
	Channels ChannelSet     // zero: sends of every channel, and sends without a channel
	UserZone bool           // the hours are in the user's time zone
	Location *time.Location // the time zone of the hours when UserZone is false; nil is UTC
	Sets     []string       // the hours apply to users of any of these sets; empty: to every user
	MayLose  float64        // the largest percentage of users that may leave each of Sets, as in Suppression
}

// in returns the time zone in which the quiet hours apply to a user of the given time zone.
func (q *Quiet) in(zone *time.Location) *time.Location {
	if q.UserZone {
		return zone
	}
	return cmp.Or(q.Location, time.UTC)
}

// Sets returns the names of the sets that the policy requires, sorted.
func (p *Policy) Sets() (names []string) {
	for i := range p.Suppress {
		names = append(names, p.Suppress[i].Set)
	}
	for i := range p.Quiet {
		names = append(names, p.Quiet[i].Sets...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Missing returns the names of required sets that the generation lacks, sorted. Sends that need a missing
// set are Unavailable for every user.
func (p *Policy) Missing(segments Segments) (names []string) {
	for _, name := range p.Sets() {
		if _, ok := segments.Set(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// UsesZones reports whether a limit or quiet hours depend on the users' time zones.
func (p *Policy) UsesZones() bool { return newZoneUses(p).any != ChannelSet{} }

// Limits returns the limits of a segment. The segment "" has the default limits.
func (p *Policy) Limits(segment string) []Limit {
	if limits, ok := p.Segments[segment]; ok && segment != "" {
		return limits
	}
	return p.Default
}

// ChannelName returns the name of a channel. ChannelName returns "" for channel 0, and the number for a
// channel that is no longer configured.
func (p *Policy) ChannelName(c Channel) string {
	if c == 0 {
		return ""
	}
	for name, number := range p.Channels {
		if number == c {
			return name
		}
	}
	return strconv.Itoa(int(c))
}

// noLimits is the retention of a policy without limits. The retention keeps the promise that a message
// retried within a day is the same send.
const noLimits = 24 * time.Hour

// Retention returns how long an entry can matter: the longest window of the policy plus widen.
func (p *Policy) Retention(widen time.Duration) time.Duration {
	longest := longestOf(p.Default)
	for _, limits := range p.Segments {
		longest = max(longest, longestOf(limits))
	}
	return cmp.Or(longest, noLimits) + widen
}

func longestOf(limits []Limit) (longest time.Duration) {
	for i := range limits {
		longest = max(longest, limits[i].longest())
	}
	return longest
}

// Unmatched compares the policy with the segments of a generation. Unmatched returns in configured the
// segments that have limits and are missing in the generation. Unmatched returns in published the segments
// of the generation that have no limits of their own and get the default. Both lists are sorted.
func (p *Policy) Unmatched(names []string) (configured, published []string) {
	for segment := range p.Segments {
		if !slices.Contains(names, segment) {
			configured = append(configured, segment)
		}
	}
	for _, name := range names {
		if _, ok := p.Segments[name]; !ok {
			published = append(published, name)
		}
	}
	slices.Sort(configured)
	slices.Sort(published)
	return configured, published
}

// inForce is a policy together with precomputed values that every call needs.
type inForce struct {
	*Policy
	retention time.Duration // without widening
	zones     zoneUses
}

func newInForce(p *Policy) *inForce {
	return &inForce{Policy: p, retention: p.Retention(0), zones: newZoneUses(p)}
}

// zoneUses says on which channels decisions depend on the users' time zones. The zero ChannelSet means no
// channel here.
type zoneUses struct {
	any       ChannelSet
	calendars [len(calendarUnits)]ChannelSet // in the order of Calendars
}

func newZoneUses(p *Policy) (uses zoneUses) {
	for i := range p.Quiet {
		if p.Quiet[i].UserZone {
			uses.any.add(p.Quiet[i].Channels)
		}
	}
	uses.addLimits(p.Default)
	for _, limits := range p.Segments {
		uses.addLimits(limits)
	}
	return uses
}

func (u *zoneUses) addLimits(limits []Limit) {
	for i := range limits {
		for k, calendar := range Calendars() {
			if limits[i].byUserZone() && limits[i].Calendar == calendar {
				u.any.add(limits[i].Channels)
				u.calendars[k].add(limits[i].Channels)
			}
		}
	}
}

// onChannel reports whether a send on the channel needs the users' time zones.
func (u *zoneUses) onChannel(c Channel) bool { return u.any.holds(c) }

// calendarsOn returns the calendars of the limits that depend on users' time zones, for a send on the
// channel.
func (u *zoneUses) calendarsOn(c Channel) (calendars []Calendar) {
	for k, calendar := range Calendars() {
		if u.calendars[k].holds(c) {
			calendars = append(calendars, calendar)
		}
	}
	return calendars
}
