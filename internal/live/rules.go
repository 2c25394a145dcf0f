package live

import "capper/internal/capping"

// DefaultMax is the maximum number of live changes (changes by API calls) of a set whose configuration has no max_live.
const DefaultMax = 10_000_000

// Rule is the configuration of one set (key "sets.NAME"). The zero Rule contains the defaults.
type Rule struct {
	Live bool // live: the set may exist only in live changes, without a build
	Max  int  // max_live: maximum number of live changes; 0: DefaultMax
}

// Rules holds the configured rules for sets, by the name of the set.
type Rules map[string]Rule

// IsLive reports whether the set may exist only through API calls, without a build.
func (r Rules) IsLive(set string) bool { return r[set].Live }

// Max returns the maximum number of live changes (changes by API calls) of the set.
func (r Rules) Max(set string) int {
	if rule := r[set]; rule.Max > 0 {
		return rule.Max
	}
	return DefaultMax
}

// NearlyFull reports whether a number of live changes (changes by API calls) is at least 90 % of the set's maximum.
func (r Rules) NearlyFull(set string, changes int) bool {
	return 10*int64(changes) >= 9*int64(r.Max(set))
}

// The method Counts reports whether the live change (change by an API call) overrides a build of the set that includes
// all changes up to asOf.
func (c Change) Counts(asOf capping.Instant) bool {
	decides, _ := infoOf(c.At, 0, c.Kind).in(asOf)
	return decides
}
