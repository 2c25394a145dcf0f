package capping

import (
	"fmt"
	"strings"
	"time"
)

// Dated is an optional interface of a generation (published version) of segments that knows the export time of each
// set. If the segments do not implement the interface Dated, none of their sets is too old.
type Dated interface {
	// AsOf returns the time at which the members of the set were exported. The zero time means that the age of the set
	// is unknown.
	AsOf(set string) time.Time
}

// TooOld returns the suppressed sets whose list of users is too old or too incomplete to decide sends, in the order of
// the policy. Each returned set is older than its MaxAge, or lacks live changes (changes by API calls) that the store
// has already removed. If a send needs one of the returned sets, every user of the send gets the outcome Unavailable.
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

// The function "behind" reports whether the generation (published version) of segments lacks live changes (changes by
// API calls) of the set. The store has already removed these changes. The store removes a change by an API call as soon
// as a newer generation of segments contains the change.
func behind(segments Segments, set string) bool {
	live, ok := segments.(Live)
	return ok && live.Behind(set) > 0
}

// behindError returns an error that names the given sets. The generation (published version) of segments lacks changes
// that API calls made to the named sets.
func behindError(generation string, sets []string) error {
	return fmt.Errorf("generation (published version) %s of the segments lacks changes that API calls made to set %s: "+
		"export the set again, and publish a build with the new export",
		generation, strings.Join(sets, ", "))
}

// tooOldError returns an error that names the suppressed sets that are older than their max_age.
func tooOldError(generation string, sets []string) error {
	return fmt.Errorf(
		"in generation (published version) %s of the segments, the data of set %s is older than the set's max_age",
		generation, strings.Join(sets, ", "))
}
