package wire

import (
	"cmp"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// The function Policy converts the current policy (the limits in force) to the type of package api. The argument
// "widening" is the duration by which the store of capper extends rolling windows.
func Policy(policy *capping.Policy, widening time.Duration) *api.Policy {
	answer := &api.Policy{
		Version: policy.Version, Channels: map[string]uint8{}, Default: limitsOf(policy.Default, policy),
		Segments: map[string][]api.Limit{}, ToleranceMS: widening.Milliseconds(), RequireChannel: policy.RequireChannel,
	}
	for name, channel := range policy.Channels {
		answer.Channels[name] = uint8(channel)
	}
	for segment, limits := range policy.Segments {
		answer.Segments[segment] = limitsOf(limits, policy)
	}
	for i := range policy.Suppress {
		answer.Suppress = append(answer.Suppress, suppressionOf(&policy.Suppress[i], policy))
	}
	answer.Holdout = holdoutOf(policy)
	for i := range policy.Quiet {
		answer.Quiet = append(answer.Quiet, quietOf(&policy.Quiet[i], policy))
	}
	if policy.UsesZones() {
		answer.Timezone = cmp.Or(policy.Zone, time.UTC).String()
	}
	return answer
}

func suppressionOf(s *capping.Suppression, policy *capping.Policy) api.Suppression {
	return api.Suppression{Set: s.Set, Channels: channelNames(s.Channels, policy), EvenExempt: s.EvenExempt}
}

// holdoutOf returns the policy's holdout (fraction of users who receive no messages), or nil if the policy has no
// holdout.
func holdoutOf(policy *capping.Policy) *api.Holdout {
	h := policy.Holdout
	if h == nil {
		return nil
	}
	return &api.Holdout{Percent: h.Share.Percent(), Salt: h.Share.Salt(), Channels: channelNames(h.Channels, policy)}
}

func quietOf(q *capping.Quiet, policy *capping.Policy) api.Quiet {
	zone := userZone
	if !q.UserZone {
		zone = cmp.Or(q.Location, time.UTC).String()
	}
	return api.Quiet{
		From: q.Hours.From.String(), To: q.Hours.To.String(), Zone: zone,
		Channels: channelNames(q.Channels, policy), Sets: q.Sets,
	}
}

// userZone is the name in the API that means "the time zone of each user".
const userZone = "user"

func channelNames(set capping.ChannelSet, policy *capping.Policy) (names []string) {
	for _, channel := range set.Channels() {
		names = append(names, policy.ChannelName(channel))
	}
	return names
}

func limitsOf(limits []capping.Limit, policy *capping.Policy) []api.Limit {
	answers := make([]api.Limit, len(limits))
	for i := range limits {
		answers[i] = limitOf(&limits[i], policy)
	}
	return answers
}

func limitOf(l *capping.Limit, policy *capping.Policy) api.Limit {
	answer := api.Limit{
		Name: l.Name, Max: l.Max, Window: l.Span(), Calendar: string(l.Calendar), Shadow: l.Shadow,
		Channels: channelNames(l.Channels, policy),
	}
	switch {
	case l.Calendar == "":
	case l.UserZone:
		answer.Timezone = userZone
	default:
		answer.Timezone = cmp.Or(l.Location, time.UTC).String()
	}
	return answer
}
