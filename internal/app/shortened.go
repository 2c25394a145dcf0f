package app

import (
	"fmt"
	"sync/atomic"
	"time"

	"capper/internal/capping"
)

// The type "shortened" remembers the last reload that shortened the longest window of the limits. A reload that
// shortens a window may be a mistake. While the store keeps the older sends, operators can undo the reload without
// harm.
type shortened struct{ last atomic.Pointer[shortening] }

type shortening struct {
	from  time.Duration
	until time.Time // time at which the store removes sends that only the earlier limits need
}

// The method note remembers a reload if the longest window is shorter in the new policy ("is") than in the previous
// policy ("was").
func (s *shortened) note(was, is *capping.Policy, now time.Time) {
	before := was.Retention(0)
	last := s.last.Load()
	if is.Retention(0) < before && (last == nil || last.from <= before || !now.Before(last.until)) {
		s.last.Store(&shortening{before, now.Add(before)})
	}
}

// The method "problems" describes the shortened limits for the status of the service. The method "problems" returns nil
// if the windows of the current limits are long enough again, or if the store has removed the older sends.
func (s *shortened) problems(policy *capping.Policy, now time.Time) []string {
	last, looks := s.last.Load(), policy.Retention(0)
	if last == nil || looks >= last.from || !now.Before(last.until) {
		return nil
	}
	return []string{fmt.Sprintf("limits: a reload shortened the longest window from %s to %s: sends are kept for "+
		"the old window until %s, in case the change was a mistake",
		capping.Span(last.from), capping.Span(looks), last.until.UTC().Format(time.RFC3339))}
}
