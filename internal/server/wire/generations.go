package wire

import (
	"time"

	"capper/client/api"
	"capper/internal/segments/publish"
)

// Generations converts a list of generations to the API's form.
func Generations(inUse string, list []publish.Listing, more bool) *api.Generations {
	told := &api.Generations{InUse: inUse, Generations: []api.GenerationInfo{}, More: more}
	for i := range list {
		told.Generations = append(told.Generations, generation(&list[i]))
	}
	return told
}

func generation(l *publish.Listing) api.GenerationInfo {
	told := api.GenerationInfo{
		Generation: l.Generation, Live: l.Live, StoredAt: l.StoredAt, Fault: l.Fault,
		CheckedAt: orZero(l.CheckedAt), WithdrawnAt: orZero(l.WithdrawnAt),
	}
	if l.Hold != nil {
		told.HeldSince, told.HeldFor = l.Hold.Since, l.Hold.Reason
	}
	if l.Manifest == nil {
		return told
	}
	m := l.Manifest
	told.CreatedAt, told.ToolVersion, told.Reason = m.CreatedAt, m.ToolVersion, m.Reason
	told.Segments, told.Sets = len(m.Segments), len(m.Sets)
	for _, s := range m.Segments {
		told.Users += s.Cardinality
	}
	for _, s := range m.Entries() {
		told.SizeBytes += s.SizeBytes
	}
	return told
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Changes converts the differences between two generations to the API's form.
func Changes(c *publish.Changes) *api.GenerationChanges {
	told := &api.GenerationChanges{
		From: c.From.Generation, To: c.To.Generation, Exact: c.Exact, Segments: changes(c.Segments),
		Sets: changes(c.Sets),
	}
	if c.NoSegment != nil {
		told.InNone = &api.NoSegmentChange{Left: c.NoSegment.Fall, Joined: c.NoSegment.Rise}
	}
	return told
}

func changes(list []publish.Change) []api.SegmentChange {
	told := make([]api.SegmentChange, len(list))
	for i, c := range list {
		told[i] = api.SegmentChange{Name: c.Name(), State: c.State, Before: c.Before, After: c.After, Added: c.Added,
			Removed: c.Removed}
		for _, moved := range c.MovedFrom {
			told[i].MovedFrom = append(told[i].MovedFrom, api.SegmentMove{From: moved.From, Users: moved.Users})
		}
	}
	return told
}
