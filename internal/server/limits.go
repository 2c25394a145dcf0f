package server

import (
	"capper/client/api"
	"capper/internal/capping"
)

// limits serves GET /v1/limits.
func (s *Server) limits(c *call) error {
	policy := s.capper.Policy()
	answer := api.Policy{
		Version: policy.Version, Channels: map[string]uint8{}, Default: limitsOf(policy.Default, policy),
		Segments: map[string][]api.Limit{}, ToleranceMS: s.capper.Widening().Milliseconds(),
	}
	for name, channel := range policy.Channels {
		answer.Channels[name] = uint8(channel)
	}
	for segment, limits := range policy.Segments {
		answer.Segments[segment] = limitsOf(limits, policy)
	}
	return writeJSON(c.w, answer)
}

func limitsOf(limits []capping.Limit, policy *capping.Policy) []api.Limit {
	answers := make([]api.Limit, len(limits))
	for i := range limits {
		answers[i] = limitOf(&limits[i], policy)
	}
	return answers
}

func limitOf(l *capping.Limit, policy *capping.Policy) api.Limit {
	answer := api.Limit{Name: l.Name, Max: l.Max, Window: l.Span(), Calendar: string(l.Calendar)}
	if l.Calendar != "" {
		answer.Timezone = "UTC"
		if l.Location != nil {
			answer.Timezone = l.Location.String()
		}
	}
	for _, channel := range l.Channels.Channels() {
		answer.Channels = append(answer.Channels, policy.ChannelName(channel))
	}
	return answer
}
