package wire

import (
	"time"

	"capper/client/api"
	"capper/internal/segments/publish"
)

// The function Generations converts a list of segments generations (published versions) to the type of package api.
func Generations(inUse string, list []publish.Listing, more bool) *api.Generations {
	answer := &api.Generations{InUse: inUse, Generations: []api.GenerationInfo{}, More: more}
	for i := range list {
		answer.Generations = append(answer.Generations, generation(&list[i]))
	}
	return answer
}

func generation(l *publish.Listing) api.GenerationInfo {
	answer := api.GenerationInfo{
		Generation: l.Generation, Live: l.Live, StoredAt: l.StoredAt, Fault: l.Fault,
		CheckedAt: orZero(l.CheckedAt), WithdrawnAt: orZero(l.WithdrawnAt),
	}
	if l.Hold != nil {
		answer.HeldSince, answer.HeldFor = l.Hold.Since, l.Hold.Reason
	}
	if l.Manifest == nil {
		return answer
	}
	m := l.Manifest
	answer.CreatedAt, answer.ToolVersion, answer.Reason = m.CreatedAt, m.ToolVersion, m.Reason
	answer.Segments, answer.Sets = len(m.Segments), len(m.Sets)
	for _, s := range m.Segments {
		answer.Users += s.Cardinality
	}
	for _, s := range m.Entries() {
		answer.SizeBytes += s.SizeBytes
	}
	return answer
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Changes converts the differences between two segments generations (published versions) to the type of package api.
func Changes(c *publish.Changes) *api.GenerationChanges {
	answer := &api.GenerationChanges{
		From: c.From.Generation, To: c.To.Generation, Exact: c.Exact, Segments: changes(c.Segments),
		Sets: changes(c.Sets),
	}
	if c.NoSegment != nil {
		answer.InNone = &api.NoSegmentChange{Left: c.NoSegment.Fall, Joined: c.NoSegment.Rise}
	}
	return answer
}

func changes(list []publish.Change) []api.SegmentChange {
	answer := make([]api.SegmentChange, len(list))
	for i, c := range list {
		answer[i] = api.SegmentChange{Name: c.Name(), State: c.State, Before: c.Before, After: c.After, Added: c.Added,
			Removed: c.Removed}
		for _, moved := range c.MovedFrom {
			answer[i].MovedFrom = append(answer[i].MovedFrom, api.SegmentMove{From: moved.From, Users: moved.Users})
		}
	}
	return answer
}
