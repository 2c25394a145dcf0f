package capping

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"capper/internal/quiet"
	"capper/internal/share"
)

// Policy assigns limits to segments, and defines the sends to withhold. A policy in use must not be changed.
type Policy struct {
	Version  string             // the version of the configuration
	Channels map[string]Channel // configured channels by name
	// If RequireChannel is true, API calls must name the channel of a send. Other callers may omit the channel.
	RequireChannel bool
	Default        []Limit            // limits of users in no segment, and of segments without limits of their own
	Segments       map[string][]Limit // an empty list means no limits

	Suppress []Suppression  // the first suppression that contains a user denies the send
	Holdout  *Holdout       // nil: none
	Quiet    []Quiet        // at most MaxQuiet entries, at most MaxQuietOfSets of them with Sets
	Zone     *time.Location // the zone of users in no time zone set; nil is UTC
}

// MaxQuiet is the largest number of quiet hours in a policy. MaxQuietOfSets is the largest number of quiet hours that
// apply only to users of sets. MaxQuietOfSets is small, because every combination of sets with quiet hours adds to the
// work of a call.
const (
	MaxQuiet       = 16
	MaxQuietOfSets = 8
)

// MaxSuppress is the largest number of suppressed sets in one policy.
const MaxSuppress = 250

// Suppression denies all sends to the users of a set. A suppression has no end.
type Suppression struct {
	Set        string
	Channels   ChannelSet // zero: sends on every channel, and sends without a channel
	EvenExempt bool       // also denies sends without limits (Send.Enforce false)
	// MayLose is the largest percentage of the set's users that a new generation (published version) of segments may
	// lack; 100 allows any loss. The service rejects a generation that lacks more users of the set.
	MayLose float64
	MaxAge  time.Duration // if the set is older, sends are Unavailable; 0: any age
}

// Holdout denies sends to a share of all users, so that these users can be compared with the other users.
type Holdout struct {
	Share    share.Share
	Channels ChannelSet // zero: sends on every channel, and sends without a channel
}

// The type Quiet is an entry of quiet hours, during which the Capper denies sends.
type Quiet struct {
	Hours    quiet.Hours
	Channels ChannelSet     // zero: sends on every channel, and sends without a channel
	UserZone bool           // the hours are in the user's time zone
	Location *time.Location // the time zone of the hours when UserZone is false; nil is UTC
	Sets     []string       // the hours apply to users of any of these sets; empty: to every user
	MayLose  float64        // the largest percentage of users that may leave each set in Sets, as in Suppression
}

// The method "in" returns the time zone in which the quiet hours apply: their own zone, or the zone of the user.
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

// The method Missing returns the names of required sets that the generation (published version) of segments lacks,
// sorted. If a send needs a missing set, the decision is Unavailable for every user.
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

// Limits returns the limits of a segment. Limits returns the default limits for a segment without limits of its own,
// and for "", which means no segment.
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

// ChannelConflict returns the error of a store for a policy whose channel has a number that contradicts the channels of
// stored sends. The arguments "stored" and "has" are the name and the number of the contradicting channel in stored
// sends.
func ChannelConflict(name, number, stored, has string) error {
	return fmt.Errorf(
		"channels.%s: has the numeric id %s in the configuration, "+
			"but in stored sends channel %s has the numeric id %s: "+
			"give a new channel a numeric id that was never used", name, number, stored, has)
}

// noLimits is the time for which a store keeps sends under a policy without limits. With the retention noLimits,
// callers can retry a message within a day without a second send.
const noLimits = 24 * time.Hour

// Retention returns the largest age of a log entry that a limit can count: the longest window of the policy plus the
// duration in the argument "widen".
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

// The method Unmatched compares the policy with the segments of a generation. The result "configured" of Unmatched
// lists segments that have limits in the policy, but are missing in the generation (published version). The result
// "published" of Unmatched lists segments of the generation that have no limits of their own in the policy. Users of
// these segments get the default limits. Both result lists of Unmatched are sorted.
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

// inForce holds the policy that is in use, and precomputed values that every call needs.
type inForce struct {
	*Policy
	retention time.Duration // without the widening
	zones     zoneUses
}

func newInForce(p *Policy) *inForce {
	return &inForce{Policy: p, retention: p.Retention(0), zones: newZoneUses(p)}
}

// zoneUses holds the channels on which the decisions of a policy depend on the users' time zones. In zoneUses, the zero
// ChannelSet means no channel.
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

// onChannel reports whether a decision about a send on the channel depends on the time zones of users.
func (u *zoneUses) onChannel(c Channel) bool { return u.any.holds(c) }

// calendarsOn returns the calendar units of limits that apply on the channel and depend on users' time zones.
func (u *zoneUses) calendarsOn(c Channel) (calendars []Calendar) {
	for k, calendar := range Calendars() {
		if u.calendars[k].holds(c) {
			calendars = append(calendars, calendar)
		}
	}
	return calendars
}
