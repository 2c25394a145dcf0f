package storetest

import (
	"fmt"
	"slices"
	"time"

	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/share"
)

// rules is a policy in the words of the model.
type rules struct {
	suppress []suppression
	held     *heldOut
	quiet    []quietHours
	zone     string             // of users in no set of one
	limits   map[string][]limit // by segment; of "", the default
}

// channels are those that a rule is about; none: every one, and no channel.
type policyChannels []capping.Channel

func (c policyChannels) has(channel capping.Channel) bool {
	return len(c) == 0 || slices.Contains(c, channel)
}

type suppression struct {
	set        string
	channels   policyChannels
	evenExempt bool
}

type heldOut struct {
	share    share.Share
	channels policyChannels
}

// quietHours is from and to by minutes of the day.
type quietHours struct {
	from, to int
	channels policyChannels
	zone     string // "": the user's
	sets     []string
}

// limit is at most so many sends in a window, or in a unit of the calendar.
type limit struct {
	name     string
	most     int
	window   time.Duration
	unit     string // a calendar by its name; "": a window
	zone     string // of unit; "": the user's
	channels policyChannels
	shadow   bool
}

// of is the limits of a segment.
func (r *rules) of(segment string) []limit {
	if limits, ok := r.limits[segment]; ok {
		return limits
	}
	return r.limits[""]
}

// policy is the rules as the domain takes them.
func (r *rules) policy() *capping.Policy {
	p := &capping.Policy{Zone: load(r.zone), Segments: map[string][]capping.Limit{}}
	for _, s := range r.suppress {
		p.Suppress = append(p.Suppress, capping.Suppression{Set: s.set, Channels: capping.ChannelSetOf(s.channels...),
			EvenExempt: s.evenExempt})
	}
	if r.held != nil {
		p.Holdout = &capping.Holdout{Share: r.held.share, Channels: capping.ChannelSetOf(r.held.channels...)}
	}
	for _, q := range r.quiet {
		hours := capping.Quiet{
			Hours:    quiet.Hours{From: quiet.Minute(q.from), To: quiet.Minute(q.to)},
			Channels: capping.ChannelSetOf(q.channels...),
			UserZone: q.zone == "", Sets: q.sets,
		}
		if q.zone != "" {
			hours.Location = load(q.zone)
		}
		p.Quiet = append(p.Quiet, hours)
	}
	for segment, limits := range r.limits {
		var converted []capping.Limit
		for _, l := range limits {
			converted = append(converted, l.limit())
		}
		if segment == "" {
			p.Default = converted
		} else {
			p.Segments[segment] = converted
		}
	}
	return p
}

func (l limit) limit() capping.Limit {
	limit := capping.Limit{
		Name: l.name, Max: l.most, Window: l.window, Calendar: capping.Calendar(l.unit),
		Channels: capping.ChannelSetOf(l.channels...), Shadow: l.shadow,
	}
	if l.unit != "" {
		limit.UserZone = l.zone == ""
		if l.zone != "" {
			limit.Location = load(l.zone)
		}
	}
	return limit
}

// clock writes minutes of the day as a clock on the wall shows them.
func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }
