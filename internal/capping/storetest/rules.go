package storetest

import (
	"fmt"
	"slices"
	"time"

	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/share"
)

// The type "rules" holds a policy in the form that the naive model of policies uses.
type rules struct {
	suppress []suppression
	held     *heldOut
	quiet    []quietHours
	zone     string             // for users in no time zone set
	limits   map[string][]limit // by segment; "" holds the default limits
}

// policyChannels lists the channels to which a rule of the policy applies. If the list of channels is empty, the rule
// applies to every send, with or without a channel.
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

// quietHours is an entry of quiet hours in the naive model, from one minute of the day to another minute.
type quietHours struct {
	from, to int
	channels policyChannels
	zone     string // "": the user's zone
	sets     []string
}

// The type "limit" is a maximum number of sends in a rolling window or in a calendar period.
type limit struct {
	name     string
	most     int
	window   time.Duration
	unit     string // name of a calendar unit; "": a rolling window
	zone     string // time zone of the calendar; "": the user's zone
	channels policyChannels
	shadow   bool
}

func (r *rules) of(segment string) []limit {
	if limits, ok := r.limits[segment]; ok {
		return limits
	}
	return r.limits[""]
}

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

// The function "clock" returns a minute of the day in the form "15:04".
func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }
