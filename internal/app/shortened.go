package app

import (
	"fmt"
	"sync/atomic"
	"time"

	"capper/internal/capping"
)

// shortened records the last reload that shortened the period over which limits count. A reload that shortens windows
// may be a mistake, and can be undone without harm while the older sends are kept.
type shortened struct{ last atomic.Pointer[shortening] }

type shortening struct {
	from  time.Duration
	until time.Time // when the stores drop the sends that only the earlier limits need
}

// note compares the previous policy with the new one at a reload.
func (s *shortened) note(was, is *capping.Policy, now time.Time) {
	before := was.Retention(0)
	last := s.last.Load()
	if is.Retention(0) < before && (last == nil || last.from <= before || !now.Before(last.until)) {
		s.last.Store(&shortening{before, now.Add(before)})
	}
}

// problems describes the shortened limits for the service's status. The list is empty when the limits are long enough
// again, or when the store no longer keeps any of the older sends.
func (s *shortened) problems(policy *capping.Policy, now time.Time) []string {
	last, looks := s.last.Load(), policy.Retention(0)
	if last == nil || looks >= last.from || !now.Before(last.until) {
		return nil
	}
	return []string{fmt.Sprintf("limits: a reload shortened the longest window from %s to %s: sends are kept for "+
		"the old window until %s, in case the change was a mistake",
		capping.Span(last.from), capping.Span(looks), last.until.UTC().Format(time.RFC3339))}
}
