package capping

import (
	"fmt"
	"strings"
	"time"
)

// Dated is a generation of segments that knows the age of its sets of users. Segments that do not implement Dated have
// sets without an age.
type Dated interface {
	// AsOf returns the time at which the members of the set were exported. The zero time means that the age of the set
	// is unknown.
	AsOf(set string) time.Time
}

// TooOld returns the names of suppressed sets that no send may rely on, in the order of the policy. The returned sets
// are older than their MaxAge, or lack live changes that the store has already removed. If a send needs one of these
// sets, the decision is Unavailable for every user.
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

// behind reports whether the generation lacks live changes of the set that the store no longer has. The store removes
// live changes after a newer generation has included them.
func behind(segments Segments, set string) bool {
	live, ok := segments.(Live)
	return ok && live.Behind(set) > 0
}

// behindError returns an error that names the sets for which the generation lacks live changes.
func behindError(generation string, sets []string) error {
	return fmt.Errorf("generation %s lacks live changes of set %s, which a newer generation contained: "+
		"publish a build whose export of the set began later", generation, strings.Join(sets, ", "))
}

// tooOldError returns an error that names the suppressed sets that are older than their max_age.
func tooOldError(generation string, sets []string) error {
	return fmt.Errorf("generation %s: set %s is older than its max_age", generation, strings.Join(sets, ", "))
}
