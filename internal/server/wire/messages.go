package wire

import (
	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
)

// AddAnswers adds the decisions of a call to the counts of its message.
func AddAnswers(to *messages.Answers, d *capping.Decisions, s *Summary, at capping.Instant) {
	to.AddCall(at, d.Policy.Version)
	to.Asked += int64(s.Requested)
	to.Allowed += int64(s.Allowed)
	to.Replayed += int64(s.Replayed)
	to.Unavailable += int64(s.Unavailable)
	for code := range s.byCode {
		if s.byCode[code].Requested > 0 {
			addSegment(to, segmentAt(d.Names, code), &s.byCode[code])
		}
	}
	if s.Denied > 0 {
		s.eachDenial(func(limit string, users int) { addUsers(&to.Denied, limit, users) })
		s.EachSet(func(set string, users int) { addUsers(&to.Suppressed, set, users) })
	}
	if s.shadows != nil {
		s.EachShadow(d.Names, func(_, limit string, users int) { addUsers(&to.Shadow, limit, users) })
	}
}

func addSegment(to *messages.Answers, name string, counts *Counts) {
	if to.Segments == nil {
		to.Segments = make(map[string]messages.SegmentAnswers, 1)
	}
	segment := to.Segments[name] // a segment may have the name that stands for no segment
	segment.Asked += int64(counts.Requested)
	segment.Allowed += int64(counts.Allowed)
	segment.Denied += int64(counts.Denied)
	to.Segments[name] = segment
}

func segmentAt(names []string, code int) string {
	if code == 0 {
		return api.NoSegment
	}
	return SegmentName(names[code-1])
}

func addUsers(to *map[string]int64, name string, users int) {
	if *to == nil {
		*to = map[string]int64{}
	}
	(*to)[name] += int64(users)
}

// Message converts the counts of a message to the API's form.
func Message(c *messages.Counts, policy *capping.Policy) api.Message {
	answer := api.Message{
		MessageID: c.Message.ID, Namespace: c.Message.Namespace, Channel: policy.ChannelName(c.Channel),
		Allowed: c.Recorded, Released: c.Released, AtLeast: c.AtLeast,
		Calls: c.Calls, Asked: c.Asked, Replayed: c.Replayed, Unavailable: c.Unavailable,
		Denied: map[string]int64{}, Suppressed: c.Suppressed, ShadowDenied: c.Shadow,
		Segments: map[string]api.MessageSegment{}, ConfigVersions: append([]string{}, c.Configs...),
	}
	for name, n := range c.Denied {
		answer.Denied[name] = n
	}
	for name, s := range c.Segments {
		answer.Segments[name] = api.MessageSegment(s)
	}
	if c.First > 0 {
		answer.FirstCall = c.First.Time()
	}
	if c.Last > 0 {
		answer.LastCall = c.Last.Time()
	}
	return answer
}
