package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/capping"
	"capper/internal/yamltree"
)

// Acknowledged lists the suppressions that the file declares as removed, so that a reload may remove them.
type Acknowledged struct {
	Dropped  []string // no_longer_suppressed: sets that suppress no longer names
	Narrowed []string // less_suppressed: sets that suppress names for fewer sends than before
}

// suppresses reports whether suppress names the set.
func (r *reader) suppresses(name string) bool {
	return slices.ContainsFunc(r.Policy.Suppress, func(s capping.Suppression) bool { return s.Set == name })
}

// droppedSets reads no_longer_suppressed. droppedSets runs after suppress is known.
func (r *reader) droppedSets(v yamltree.Value) {
	r.Acknowledged.Dropped = setNames(v, func(v yamltree.Value, name string) {
		if r.suppresses(name) {
			v.Fault("must not name a set of suppress, but suppress names %s", name)
		}
	})
}

// narrowedSets reads less_suppressed. narrowedSets runs after suppress is known.
func (r *reader) narrowedSets(v yamltree.Value) {
	r.Acknowledged.Narrowed = setNames(v, func(v yamltree.Value, name string) {
		if !r.suppresses(name) {
			v.Fault("must be a set that suppress names, but suppress does not name %s: use no_longer_suppressed for "+
				"sets removed from suppress", name)
		}
	})
}

// setNames reads a list of distinct names of sets. The function check adds the rules of the key.
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

// Lost is a suppression of a set in one policy that another policy lacks.
type Lost struct {
	Set   string
	Whole bool   // the other policy does not name the set
	Sends string // the sends that are no longer suppressed, in words
}

// LostSuppression lists the suppressions in policy was that policy is lacks, in the order of was. Channels that are
// no longer configured are ignored, because no sends use them.
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

// unsuppressed returns a fault for each suppression that a reload removes without acknowledgement.
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
