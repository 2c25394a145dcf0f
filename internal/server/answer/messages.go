package answer

import (
	"capper/client/api"
	"capper/internal/campaign"
	"capper/internal/capping"
)

// AnswersOf are what the call's caller was told, as campaigns count it.
func AnswersOf(d *capping.Decisions, s *Summary, at capping.Instant) *campaign.Answers {
	a := &campaign.Answers{
		Calls: 1, Asked: int64(s.Requested), Allowed: int64(s.Allowed), Replayed: int64(s.Replayed), Unavailable: int64(s.Unavailable),
		First: at, Last: at, Configs: []string{d.Policy.Version}, Segments: make(map[string]campaign.SegmentAnswers, 1),
	}
	for code := range s.byCode {
		if counts := &s.byCode[code]; counts.Requested > 0 {
			segment := a.Segments[segmentAt(d.Names, code)] // one may be called as those in none are
			segment.Asked += int64(counts.Requested)
			segment.Allowed += int64(counts.Allowed)
			segment.Denied += int64(counts.Denied)
			a.Segments[segmentAt(d.Names, code)] = segment
		}
	}
	if s.Denied > 0 {
		a.Denied = s.deniedBy()
		s.EachSet(func(set string, users int) { addUsers(&a.Suppressed, set, users) })
	}
	if s.shadows != nil {
		s.EachShadow(d.Names, func(_, limit string, users int) { addUsers(&a.Shadow, limit, users) })
	}
	return a
}

func segmentAt(names []string, code int) string {
	if code == 0 {
		return api.NoSegment
	}
	return SegmentName(names[code-1])
}

func (s *Summary) deniedBy() map[string]int64 {
	denied := make(map[string]int64, 1)
	for code := range s.denials {
		for _, rows := range s.denials[code] {
			for _, row := range rows {
				if row.users > 0 {
					denied[row.limit] += int64(row.users)
				}
			}
		}
	}
	return denied
}

func addUsers(to *map[string]int64, name string, users int) {
	if *to == nil {
		*to = map[string]int64{}
	}
	(*to)[name] += int64(users)
}

// Message is a campaign as callers see it.
func Message(c *campaign.Campaign, policy *capping.Policy) api.Message {
	told := api.Message{
		MessageID: c.Message.ID, Namespace: c.Message.Namespace, Channel: policy.ChannelName(c.Channel),
		Allowed: c.Recorded, Released: c.Released,
		Calls: c.Calls, Asked: c.Asked, Replayed: c.Replayed, Unavailable: c.Unavailable,
		Denied: map[string]int64{}, Suppressed: c.Suppressed, ShadowDenied: c.Shadow,
		Segments: map[string]api.MessageSegment{}, ConfigVersions: append([]string{}, c.Configs...),
	}
	for name, n := range c.Denied {
		told.Denied[name] = n
	}
	for name, s := range c.Segments {
		told.Segments[name] = api.MessageSegment(s)
	}
	if c.First > 0 {
		told.FirstCall = c.First.Time()
	}
	if c.Last > 0 {
		told.LastCall = c.Last.Time()
	}
	return told
}
