package whatif

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"capper/internal/capping"
)

var errNotAsked = errors.New("a replay of the audit does not support this operation")

// The type likeness names the users of a call for whom both policies have the same rules.
type likeness struct {
	all  bool            // all users have the same rules
	of   map[string]bool // by segment that a policy names: same rules; unused if all is true
	rest bool            // same rules for users of other segments and of no segment
}

func (l *likeness) has(segment string) bool {
	if same, named := l.of[segment]; named && segment != "" {
		return same
	}
	return l.rest
}

// The function compare finds the users for whom both policies have the same rules on a channel. The argument "exempt"
// of the function compare is true if the sends ignore limits.
func compare(a, b *capping.Policy, channel capping.Channel, exempt bool) *likeness {
	if !withholdAlike(a, b, channel, exempt) {
		return &likeness{}
	}
	if exempt {
		return &likeness{all: true, rest: true}
	}
	l := &likeness{of: map[string]bool{}, rest: limitAlike(a, b, "", channel)}
	l.all = l.rest
	for _, policy := range []*capping.Policy{a, b} {
		for segment := range policy.Segments {
			l.of[segment] = limitAlike(a, b, segment, channel)
			l.all = l.all && l.of[segment]
		}
	}
	return l
}

// withholdAlike reports whether both policies deny sends on the channel, for reasons other than limits, to the same
// users at the same times.
func withholdAlike(a, b *capping.Policy, channel capping.Channel, exempt bool) bool {
	if !slices.Equal(suppressed(a, channel, exempt), suppressed(b, channel, exempt)) {
		return false
	}
	return exempt || nameOf(a.Zone) == nameOf(b.Zone) && heldAlike(a.Holdout, b.Holdout, channel) &&
		slices.EqualFunc(quietOn(a, channel), quietOn(b, channel), quietAlike)
}

// The function "suppressed" returns the sets whose users must not receive sends on the channel, in the order of the
// policy.
func suppressed(p *capping.Policy, channel capping.Channel, exempt bool) (sets []string) {
	for i := range p.Suppress {
		if s := &p.Suppress[i]; s.Channels.Has(channel) && (!exempt || s.EvenExempt) {
			sets = append(sets, s.Set)
		}
	}
	return sets
}

func nameOf(zone *time.Location) string { return cmp.Or(zone, time.UTC).String() }

func heldAlike(a, b *capping.Holdout, channel capping.Channel) bool {
	if a != nil && !a.Channels.Has(channel) {
		a = nil
	}
	if b != nil && !b.Channels.Has(channel) {
		b = nil
	}
	if a == nil || b == nil {
		return a == b
	}
	return a.Share.Percent() == b.Share.Percent() && a.Share.Salt() == b.Share.Salt()
}

func quietOn(p *capping.Policy, channel capping.Channel) (hours []*capping.Quiet) {
	for i := range p.Quiet {
		if p.Quiet[i].Channels.Has(channel) {
			hours = append(hours, &p.Quiet[i])
		}
	}
	return hours
}

func quietAlike(a, b *capping.Quiet) bool {
	return a.Hours == b.Hours && a.UserZone == b.UserZone && slices.Equal(a.Sets, b.Sets) &&
		(a.UserZone || nameOf(a.Location) == nameOf(b.Location))
}

// limitAlike reports whether both policies have the same limits on the channel for users of the segment.
func limitAlike(a, b *capping.Policy, segment string, channel capping.Channel) bool {
	return slices.EqualFunc(limitsOn(a, segment, channel), limitsOn(b, segment, channel),
		func(a, b *capping.Limit) bool {
			return a.Name == b.Name && a.Max == b.Max && a.Window == b.Window && a.Calendar == b.Calendar &&
				a.UserZone == b.UserZone &&
				a.Shadow == b.Shadow && a.Channels == b.Channels &&
				(a.UserZone || nameOf(a.Location) == nameOf(b.Location))
		})
}

func limitsOn(p *capping.Policy, segment string, channel capping.Channel) (limits []*capping.Limit) {
	all := p.Limits(segment)
	for i := range all {
		if all[i].AppliesTo(channel) {
			limits = append(limits, &all[i])
		}
	}
	return limits
}

// The function "shadows" reports whether the policy has a shadow limit (a limit on trial, which denies nobody) on the
// channel.
func shadows(p *capping.Policy, channel capping.Channel) bool {
	shadow := func(limits []capping.Limit) bool {
		return slices.ContainsFunc(limits, func(l capping.Limit) bool { return l.Shadow && l.AppliesTo(channel) })
	}
	for _, limits := range p.Segments {
		if shadow(limits) {
			return true
		}
	}
	return shadow(p.Default)
}
