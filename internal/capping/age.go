package capping

import (
	"fmt"
	"strings"
	"time"
)

// Dated is a generation of segments that knows the age of its sets. A type of Segments that does not implement Dated
// has sets without an age.
type Dated interface {
	// AsOf returns the time that the membership data of a set describes. The zero time means unknown.
	AsOf(set string) time.Time
}

// TooOld returns the names of suppressed sets in the order of the policy: sets that are older than their MaxAge, and
// sets that are older than live changes that the store has removed. A send that needs one of these sets is Unavailable
// for every user.
func (p *Policy) TooOld(segments Segments, now time.Time) (names []string) {
	for i := range p.Suppress {
		if p.Suppress[i].tooOld(segments, now) || behind(segments, p.Suppress[i].Set) {
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

// behind reports whether the generation lacks changes of the set that the store has removed, because a newer
// generation contains them.
func behind(segments Segments, set string) bool {
	live, ok := segments.(Live)
	return ok && live.Behind(set) > 0
}

// behindError returns an error that names the sets whose changes the generation lacks.
func behindError(generation string, sets []string) error {
	return fmt.Errorf("generation %s lacks live changes of set %s, which a newer generation contained: "+
		"publish a build whose export of the set began later", generation, strings.Join(sets, ", "))
}

// tooOldError returns an error that names the suppressed sets that are older than their max_age.
func tooOldError(generation string, sets []string) error {
	return fmt.Errorf("generation %s: set %s is older than its max_age", generation, strings.Join(sets, ", "))
}
