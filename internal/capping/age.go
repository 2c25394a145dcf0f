package capping

import (
	"fmt"
	"strings"
	"time"
)

// Dated is a Segments that knows for which time its sets speak. The sets of others have
// no age.
type Dated interface {
	// AsOf is the time for which the users of a set are known; zero: not known.
	AsOf(set string) time.Time
}

// TooOld lists the suppressed sets that are older than their MaxAge, in the order of the
// policy. Nobody may be sent to what needs one.
func (p *Policy) TooOld(segments Segments, now time.Time) (names []string) {
	for i := range p.Suppress {
		if p.Suppress[i].tooOld(segments, now) {
			names = append(names, p.Suppress[i].Set)
		}
	}
	return names
}

// tooOld reports whether the set is older than its MaxAge.
func (s *Suppression) tooOld(segments Segments, now time.Time) bool {
	if s.MaxAge == 0 {
		return false
	}
	dated, ok := segments.(Dated)
	return ok && now.Sub(dated.AsOf(s.Set)) > s.MaxAge
}

// tooOldError says which lists are too old to decide by.
func tooOldError(generation string, sets []string) error {
	return fmt.Errorf("generation %s: set %s is older than its max_age", generation, strings.Join(sets, ", "))
}
