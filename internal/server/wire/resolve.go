package wire

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// rfc3339 matches a time in the strict form of RFC 3339. Package time also accepts other forms of a time, such as
// hours with one digit.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// If a time in the field "at" is at most forecastGrace in the past, it means the current time. A small age is normal,
// because callers round times to whole seconds, their calls take time, and their clocks differ.
const forecastGrace = time.Minute

// ForecastAt converts the field "at" of a request to an instant. If the field is absent or the time is not in the
// future, ForecastAt returns 0, which means the current time.
func ForecastAt(at string, now time.Time) (capping.Instant, error) {
	if at == "" {
		return 0, nil
	}
	return forecastAt("at", at, now)
}

// forecastAt converts a request field with a time to an instant. If the requested time is not in the future,
// forecastAt returns 0, which means the current time.
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

// ChannelOf returns the number that the policy gives the named channel.
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

// SendChannel returns the number that the policy gives the named channel of a send. If the policy requires a channel
// and the name is empty, SendChannel returns an error.
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

// ChannelNumbers returns the numbers that the policy gives the channels of the request. If the policy lacks a channel,
// the error names the field of the first send with this channel, or the field for all sends.
func (r *ImportRequest) ChannelNumbers(policy *capping.Policy) ([]capping.Channel, error) {
	numbers := make([]capping.Channel, len(r.Channels))
	for i, name := range r.Channels {
		number, err := ChannelOf(name, policy)
		if f := (*Failure)(nil); errors.As(err, &f) && i != r.common {
			return nil, Invalid(r.fieldOf(i), "%s", strings.TrimPrefix(f.Message, f.Field+": "))
		}
		if err != nil {
			return nil, err
		}
		numbers[i] = number
	}
	return numbers, nil
}

// fieldOf returns the field of the first send with the channel of the given index.
func (r *ImportRequest) fieldOf(channel int) string {
	i := slices.IndexFunc(r.Sends, func(s importedSend) bool { return s.Channel == channel })
	return fmt.Sprintf("sends[%d].channel", i)
}

// SendsHaveChannels returns an error for the first imported send without a channel, if the policy requires channels.
func (r *ImportRequest) SendsHaveChannels(policy *capping.Policy) error {
	for i := range r.Sends {
		if err := needsChannel(r.Channels[r.Sends[i].Channel], fmt.Sprintf("sends[%d].channel", i),
			policy); err != nil {
			return err
		}
	}
	return nil
}
