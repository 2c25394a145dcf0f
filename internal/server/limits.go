package server

import (
	"strconv"

	"capper/client/api"
	"capper/internal/capping"
)

// limits serves GET /v1/limits.
func (s *Server) limits(c *call) error {
	policy := s.capper.Policy()
	names := channelNames(policy)
	answer := api.Policy{
		Version: policy.Version, Channels: map[string]uint8{}, Default: limitsOf(policy.Default, names),
		Segments: map[string][]api.Limit{}, ToleranceMS: s.capper.Widening().Milliseconds(),
	}
	for name, channel := range policy.Channels {
		answer.Channels[name] = uint8(channel)
	}
	for segment, limits := range policy.Segments {
		answer.Segments[segment] = limitsOf(limits, names)
	}
	return writeJSON(c.w, answer)
}

func limitsOf(limits []capping.Limit, names map[capping.Channel]string) []api.Limit {
	answers := make([]api.Limit, len(limits))
	for i := range limits {
		answers[i] = limitOf(&limits[i], names)
	}
	return answers
}

func limitOf(l *capping.Limit, names map[capping.Channel]string) api.Limit {
	answer := api.Limit{Name: l.Name, Max: l.Max, Window: l.Span(), Calendar: string(l.Calendar)}
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
