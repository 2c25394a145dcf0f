package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/live"
	"capper/internal/segments"
	"capper/internal/yamltree"
)

// maxSets is the maximum number of sets in the section "sets". The keys "suppress" and "quiet" permit fewer sets.
const maxSets = 1000

// The method "sets" reads the section "sets" of a configuration file: rules for sets of users that API calls can
// change.
func (r *reader) sets(v yamltree.Value) {
	r.Sets = live.Rules{}
	v.Pairs(func(key string, at, val yamltree.Value) {
		setName(at, key)
		if strings.HasPrefix(key, segments.ZonePrefix) {
			at.Fault("must not be a set of a time zone, because only builds change such sets, got %q", key)
		}
		var rule live.Rule
		given := val.Object(map[string]yamltree.Field{
			"live":     yamltree.Bool(&rule.Live),
			"max_live": yamltree.Within(&rule.Max, 1, 1_000_000_000),
		})
		if val.IsMapping() && len(given) == 0 {
			val.Fault("must have live or max_live")
		}
		r.Sets[key] = rule
	})
	if n := len(r.Sets); n > maxSets {
		v.Fault("must be at most %d sets, got %d", maxSets, n)
	}
}

// checkSets warns of live sets (sets that API calls can change) that no rule uses, because changes of an unused set
// have no effect. The method checkSets also warns of API keys for sets that the configuration does not name.
func (r *reader) checkSets() {
	used := r.Policy.Sets()
	for _, name := range slices.Sorted(maps.Keys(r.Sets)) {
		if r.Sets.IsLive(name) && !slices.Contains(used, name) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("sets.%s: neither suppress nor quiet names the set, so calls "+
				"that change it have no effect on decisions", name))
		}
	}
	for i, key := range r.Server.Access.Keys {
		for _, name := range key.Sets {
			if _, declared := r.Sets[name]; !declared && !slices.Contains(used, name) {
				r.Warnings = append(r.Warnings, fmt.Sprintf("server.api_keys[%d].sets: key %s is bound to the set %s, "+
					"but sets, suppress and quiet do not name it: calls that change the set are rejected with 404 "+
					"unless a generation contains it", i, key.ID, name))
			}
		}
	}
}
