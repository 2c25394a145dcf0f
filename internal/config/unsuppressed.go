package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/capping"
	"capper/internal/yamltree"
)

// Acknowledged lists the sets whose suppression (rule that denies sends to the users of a set) the configuration
// deliberately removes or weakens. If a configuration removes a set from the key "suppress" without acknowledging the
// removal, the service rejects the reload.
type Acknowledged struct {
	Dropped  []string // no_longer_suppressed: sets that are no longer in suppress
	Narrowed []string // less_suppressed: sets in suppress that apply to fewer sends than before
}

// The method "suppresses" reports whether the configuration key "suppress" contains the set.
func (r *reader) suppresses(name string) bool {
	return slices.ContainsFunc(r.Policy.Suppress, func(s capping.Suppression) bool { return s.Set == name })
}

// droppedSets reads the key "no_longer_suppressed". The caller must read the configuration key "suppress" first.
func (r *reader) droppedSets(v yamltree.Value) {
	r.Acknowledged.Dropped = setNames(v, func(v yamltree.Value, name string) {
		if r.suppresses(name) {
			v.Fault("must not name %s, because suppress still names this set", name)
		}
	})
}

// narrowedSets reads the key "less_suppressed". The caller must read the configuration key "suppress" first.
func (r *reader) narrowedSets(v yamltree.Value) {
	r.Acknowledged.Narrowed = setNames(v, func(v yamltree.Value, name string) {
		if !r.suppresses(name) {
			v.Fault("must name sets under suppress, but suppress does not name %s: "+
				"use no_longer_suppressed for sets removed from suppress", name)
		}
	})
}

// setNames reads a list of distinct set names from a configuration file. The argument "check" is a function that
// applies further rules to each name.
func setNames(v yamltree.Value, check func(v yamltree.Value, name string)) (names []string) {
	v.List(func(v yamltree.Value) {
		name, ok := v.Text()
		switch {
		case !ok:
		case slices.Contains(names, name):
			v.Fault("is given twice: %q", name)
		default:
			setName(v, name)
			check(v, name)
		}
		names = append(names, name)
	})
	return names
}

// The struct Lost describes a suppression (rule that keeps the users of a set from messages) that a new policy no
// longer contains.
type Lost struct {
	Set   string
	Whole bool   // true: the new policy does not name the set
	Sends string // description of the sends that are no longer suppressed
}

// LostSuppression lists the suppressions of the earlier policy ("was") that the new policy ("is") lacks, in the order
// of the earlier policy. LostSuppression ignores removed channels, because sends can no longer use such channels.
func LostSuppression(was, is *capping.Policy) (list []Lost) {
	for i := range was.Suppress {
		before := &was.Suppress[i]
		at := slices.IndexFunc(is.Suppress, func(s capping.Suppression) bool { return s.Set == before.Set })
		if at < 0 {
			list = append(list, Lost{Set: before.Set, Whole: true, Sends: "all sends"})
			continue
		}
		now := &is.Suppress[at]
		var sends []string
		if before.Channels.All() && !now.Channels.All() {
			sends = append(sends, "sends without a channel")
		}
		for _, name := range slices.Sorted(maps.Keys(is.Channels)) {
			if channel := is.Channels[name]; before.Channels.Has(channel) && !now.Channels.Has(channel) {
				sends = append(sends, "sends on "+name)
			}
		}
		if before.EvenExempt && !now.EvenExempt {
			sends = append(sends, "exempt sends")
		}
		if len(sends) > 0 {
			list = append(list, Lost{Set: before.Set, Sends: strings.Join(sends, ", ")})
		}
	}
	return list
}

// The method "unsuppressed" returns a fault for each suppression that the new configuration "next" removes without
// acknowledging the removal.
func (c *Config) unsuppressed(next *Config) (found []yamltree.Fault) {
	for _, lost := range LostSuppression(c.Policy, next.Policy) {
		key, said, what := "less_suppressed", next.Acknowledged.Narrowed,
			"must not allow "+lost.Sends+" after a reload"
		if lost.Whole {
			key, said, what = "no_longer_suppressed", next.Acknowledged.Dropped, "must not be removed by a reload"
		}
		if !slices.Contains(said, lost.Set) {
			found = append(found, yamltree.Fault{Path: "suppress." + lost.Set,
				Rule: fmt.Sprintf("%s: its users would receive messages; if this is intended, add %s: [%s]", what, key,
					lost.Set)})
		}
	}
	return found
}
