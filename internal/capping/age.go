package capping

import (
	"fmt"
	"strings"
	"time"
)

// Dated is a generation of segments that knows the age of its sets. The sets of any other Segments have no
// age.
type Dated interface {
	// AsOf returns the time that the membership data of a set describes. The zero time means unknown.
	AsOf(set string) time.Time
}

// TooOld returns the names of the suppressed sets that are older than their MaxAge, in the order of the
// policy. A send that needs one of these sets is Unavailable for every user.
func (p *Policy) TooOld(segments Segments, now time.Time) (names []string) {
	for i := range p.Suppress {
		if p.Suppress[i].tooOld(segments, now) {
			names = append(names, p.Suppress[i].Set)
		}
	}
	return names
}

// tooOld reports whether the suppressed set is older than its MaxAge.
func (s *Suppression) tooOld(segments Segments, now time.Time) bool {
	if s.MaxAge == 0 {
		return false
	}
	dated, ok := segments.(Dated)
	return ok && now.Sub(dated.AsOf(s.Set)) > s.MaxAge
}

// tooOldError returns an error that names the suppressed sets that are older than their max_age.
func tooOldError(generation string, sets []string) error {
	return fmt.Errorf("generation %s: set %s is older than its max_age", generation, strings.Join(sets, ", "))
}
