package server

import (
	"strconv"

	"capper/internal/capping"
)

type limitsAnswer struct {
	Version     string                   `json:"version"`
	Channels    map[string]uint8         `json:"channels"`
	Default     []limitAnswer            `json:"default"`
	Segments    map[string][]limitAnswer `json:"segments"`
	ToleranceMS int64                    `json:"tolerance_ms"`
}

// limitAnswer is a limit. Calendar and timezone are those of calendar windows.
type limitAnswer struct {
	Name     string           `json:"name"`
	Max      int              `json:"max"`
	Window   string           `json:"window"` // "24h", or "day" or "week" of the calendar
	Calendar capping.Calendar `json:"calendar,omitempty"`
	Timezone string           `json:"timezone,omitempty"`
	Channels []string         `json:"channels,omitempty"`
}

// limits serves GET /v1/limits.
func (s *Server) limits(c *call) error {
	policy := s.capper.Policy()
	names := channelNames(policy)
	answer := limitsAnswer{
		Version: policy.Version, Channels: map[string]uint8{}, Default: limitsOf(policy.Default, names),
		Segments: map[string][]limitAnswer{}, ToleranceMS: s.capper.Widening().Milliseconds(),
	}
	for name, channel := range policy.Channels {
		answer.Channels[name] = uint8(channel)
	}
	for segment, limits := range policy.Segments {
		answer.Segments[segment] = limitsOf(limits, names)
	}
	return writeJSON(c.w, answer)
}

func limitsOf(limits []capping.Limit, names map[capping.Channel]string) []limitAnswer {
	answers := make([]limitAnswer, len(limits))
	for i := range limits {
		answers[i] = limitOf(&limits[i], names)
	}
	return answers
}

func limitOf(l *capping.Limit, names map[capping.Channel]string) limitAnswer {
	answer := limitAnswer{Name: l.Name, Max: l.Max, Window: l.Span(), Calendar: l.Calendar}
	if l.Calendar != "" {
		answer.Timezone = "UTC"
		if l.Location != nil {
			answer.Timezone = l.Location.String()
		}
	}
	for _, channel := range l.Channels.Channels() {
		answer.Channels = append(answer.Channels, channelName(names, channel))
	}
	return answer
}

func channelNames(p *capping.Policy) map[capping.Channel]string {
	names := make(map[capping.Channel]string, len(p.Channels))
	for name, channel := range p.Channels {
		names[channel] = name
	}
	return names
}

// channelName is the name of a channel, or its number when it is no longer
// configured.
func channelName(names map[capping.Channel]string, c capping.Channel) string {
	if name, ok := names[c]; ok {
		return name
	}
	return strconv.Itoa(int(c))
}
