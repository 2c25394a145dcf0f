package capping

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"capper/internal/quiet"
	"capper/internal/share"
)

// Policy maps segments to limits. It is immutable once in use.
type Policy struct {
	Version  string             // names the configuration it came from
	Channels map[string]Channel // configured channels by name
	// RequireChannel: callers must name the channel of a send. It is kept where calls are
	// read; whoever decides without a call may leave it out.
	RequireChannel bool
	Default        []Limit            // of users in no segment, and of segments without limits of their own
	Segments       map[string][]Limit // an empty list: uncapped

	Suppress []Suppression  // of a user in several sets, the first one denies
	Holdout  *Holdout       // nil: none
	Quiet    []Quiet        // at most MaxQuiet, with Sets at most MaxQuietOfSets
	Zone     *time.Location // of users in no set of a time zone; nil is UTC
}

// MaxQuiet is the most quiet hours of a policy, and MaxQuietOfSets the most of them that
// are for users of sets only: what a call works out grows with the ways to be in some
// of these and not in others.
const (
	MaxQuiet       = 16
	MaxQuietOfSets = 8
)

// MaxSuppress is the most sets that a policy suppresses.
const MaxSuppress = 250

// Suppression denies the users of a set, for good.
type Suppression struct {
	Set        string
	Channels   ChannelSet // zero: sends of every channel, and of none
	EvenExempt bool       // also sends to which no limit applies (Send.Enforce false)
	// MayLose is how many users may leave the set with a new generation, per 100 users; at
	// 100 all may. A generation that more left is not used.
	MayLose float64
	MaxAge  time.Duration // an older set leaves everybody undecided; 0: any age
}

// Holdout denies a share of all users, so that they can be compared with the others.
type Holdout struct {
	Share    share.Share
	Channels ChannelSet // zero: sends of every channel, and of none
}

// Quiet denies while the hours are on.
type Quiet struct {
	Hours    quiet.Hours
	Channels ChannelSet     // zero: sends of every channel, and of none
	UserZone bool           // by the clock of the user's time zone
	Location *time.Location // otherwise by that of this one; nil is UTC
	Sets     []string       // users of any of these only; none: everybody
	MayLose  float64        // how many users may leave each of Sets, as of a Suppression
}

// in is by whose clocks the hours are, for a user of a zone.
func (q *Quiet) in(zone *time.Location) *time.Location {
	if q.UserZone {
		return zone
	}
	return cmp.Or(q.Location, time.UTC)
}

// Sets lists the sets without which the policy must not be applied, sorted.
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

// Missing lists those of Sets that a generation lacks, sorted. As long as there is one, nobody
// may be sent to what needs it.
func (p *Policy) Missing(segments Segments) (names []string) {
	for _, name := range p.Sets() {
		if _, ok := segments.Set(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// UsesZones reports whether anything goes by the users' time zones.
func (p *Policy) UsesZones() bool { return newZoneUses(p).any != ChannelSet{} }

// Limits is the limits of a segment; of "" they are the default.
func (p *Policy) Limits(segment string) []Limit {
	if limits, ok := p.Segments[segment]; ok && segment != "" {
		return limits
	}
	return p.Default
}

// ChannelName is the name of a channel; of 0 it is "", of one that is no longer
// configured its number.
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

// noLimits is the retention of a policy without limits: what remains is that
// a message retried within a day is the same send.
const noLimits = 24 * time.Hour

// Retention is how long an entry can matter: the longest window, longer by widen.
func (p *Policy) Retention(widen time.Duration) time.Duration {
	longest := longestOf(p.Default)
	for _, limits := range p.Segments {
		longest = max(longest, longestOf(limits))
	}
	if longest == 0 {
		longest = noLimits
	}
	return longest + widen
}

func longestOf(limits []Limit) (longest time.Duration) {
	for i := range limits {
		longest = max(longest, limits[i].longest())
	}
	return longest
}

// Unmatched compares the policy with the segments of a generation: configured
// lists those with limits that the generation lacks, published those of the
// generation that have no limits of their own and get the default. Both are
// sorted.
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

// inForce is a policy with what every call asks of it, worked out once.
type inForce struct {
	*Policy
	retention time.Duration // not widened
	zones     zoneUses
}

func newInForce(p *Policy) *inForce {
	return &inForce{Policy: p, retention: p.Retention(0), zones: newZoneUses(p)}
}

// zoneUses is on which channels sends are decided by the users' time zones, where the
// zero ChannelSet is no channel.
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

// onChannel reports whether a send on the channel asks for users' time zones.
func (u *zoneUses) onChannel(c Channel) bool { return u.any.holds(c) }

// calendarsOn lists the calendars of limits that go by users' time zones, of a send on the channel.
func (u *zoneUses) calendarsOn(c Channel) (calendars []Calendar) {
	for k, calendar := range Calendars() {
		if u.calendars[k].holds(c) {
			calendars = append(calendars, calendar)
		}
	}
	return calendars
}
