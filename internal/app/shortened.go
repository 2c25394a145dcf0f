package app

import (
	"fmt"
	"sync/atomic"
	"time"

	"capper/internal/capping"
)

// shortened is the last reload after which limits look back less far than
// before. It may be a mistake, and can be undone without harm while the sends
// are kept.
type shortened struct{ last atomic.Pointer[shortening] }

type shortening struct {
	from  time.Duration
	until time.Time // when the stores forget what only the earlier limits need
}

// note compares the policy in force with the one that replaces it at now.
func (s *shortened) note(was, is *capping.Policy, now time.Time) {
	before := was.Retention(0)
	last := s.last.Load()
	if is.Retention(0) < before && (last == nil || last.from <= before || !now.Before(last.until)) {
		s.last.Store(&shortening{before, now.Add(before)})
	}
}

// problems is what a status says of it: nothing when limits look back as far
// again, or when nothing that was recorded before is kept any more.
func (s *shortened) problems(policy *capping.Policy, now time.Time) []string {
	last, looks := s.last.Load(), policy.Retention(0)
	if last == nil || looks >= last.from || !now.Before(last.until) {
		return nil
	}
	return []string{fmt.Sprintf("limits: a reload shortened the longest window from %s to %s: sends are kept for "+
		"the old window until %s, in case the change was a mistake",
		capping.Span(last.from), capping.Span(looks), last.until.UTC().Format(time.RFC3339))}
}
