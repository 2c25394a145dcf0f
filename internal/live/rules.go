package live

import "capper/internal/capping"

// DefaultMax is the largest number of live changes of a set without max_live in the configuration.
const DefaultMax = 10_000_000

// Rule is the configuration of a set (sets.NAME). The zero value holds the defaults.
type Rule struct {
	Live bool // live: the set may exist only by calls, without a generation that contains the set
	Max  int  // max_live: the largest number of live changes; 0: DefaultMax
}

// Rules holds the rules of the configured sets, by name.
type Rules map[string]Rule

// IsLive reports whether the set may exist without a build, made only of live changes.
func (r Rules) IsLive(set string) bool { return r[set].Live }

// Max returns the largest number of live changes of the set.
func (r Rules) Max(set string) int {
	if rule := r[set]; rule.Max > 0 {
		return rule.Max
	}
	return DefaultMax
}

// NearlyFull reports whether a number of live changes is at least 90 % of the set's bound.
func (r Rules) NearlyFull(set string, changes int) bool {
	return 10*int64(changes) >= 9*int64(r.Max(set))
}

// Counts reports whether the change decides about its user, in a set whose build contains the changes up to asOf.
func (c Change) Counts(asOf capping.Instant) bool {
	decides, _ := infoOf(c.At, 0, c.Kind).in(asOf)
	return decides
}
