package wire

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// rfc3339 is the form of a time; the time package takes others too, such as
// hours of one digit.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// forecastGrace is how far in the past the field at may be and still mean now:
// callers write whole seconds, take time to call, and have clocks of their own.
const forecastGrace = time.Minute

// ForecastAt is the instant of the field at; 0, which is now, when it was not
// given or is no later than now.
func ForecastAt(at string, now time.Time) (capping.Instant, error) {
	if at == "" {
		return 0, nil
	}
	return forecastAt("at", at, now)
}

// forecastAt is the instant of a field; 0 when it is no later than now.
func forecastAt(field, at string, now time.Time) (capping.Instant, error) {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil || !rfc3339.MatchString(at) {
		return 0, Invalid(field, "%q is not an RFC 3339 time such as 2026-11-21T09:00:00Z",
			Clip([]byte(at)))
	}
	instant, current := capping.InstantOf(t), capping.InstantOf(now)
	switch {
	case instant < capping.InstantOf(now.Add(-forecastGrace)):
		return 0, Invalid(field, "%s is more than a minute in the past: the time is now %s", at,
			current.Time().Format(api.Milliseconds))
	case instant <= current:
		return 0, nil
	case instant >= capping.Never:
		return 0, Invalid(field, "%s is too late: the time must be before %s", at,
			capping.Never.Time().Format(time.RFC3339))
	}
	return instant, nil
}

// ChannelOf is the number of the request's channel in the policy.
func ChannelOf(name string, policy *capping.Policy) (capping.Channel, error) {
	if name == "" {
		return 0, nil
	}
	if channel, ok := policy.Channels[name]; ok {
		return channel, nil
	}
	return 0, Invalid("channel", "%q is not a configured channel (configured channels: %s)",
		Clip([]byte(name)),
		channelsOf(policy))
}

func channelsOf(policy *capping.Policy) string {
	return strings.Join(slices.Sorted(maps.Keys(policy.Channels)), ", ")
}

// SendChannel is the channel of a send that the request decides or records: it must be named where the
// policy requires that.
func SendChannel(name string, policy *capping.Policy) (capping.Channel, error) {
	if err := needsChannel(name, "channel", policy); err != nil {
		return 0, err
	}
	return ChannelOf(name, policy)
}

func needsChannel(name, field string, policy *capping.Policy) error {
	if name != "" || !policy.RequireChannel {
		return nil
	}
	return Invalid(field, "is required by the configuration (configured channels: %s)",
		channelsOf(policy))
}

// SendsHaveChannels reports the first imported send without a channel where the policy requires one.
func (r *ImportRequest) SendsHaveChannels(policy *capping.Policy) error {
	for i := range r.Sends {
		if err := needsChannel(r.Channels[r.Sends[i].Channel], fmt.Sprintf("sends[%d].channel", i),
			policy); err != nil {
			return err
		}
	}
	return nil
}
