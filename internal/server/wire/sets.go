package wire

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/segments"
)

// Changeable returns nil if calls may change the set: it must be a set of the generation in use, or the rules must
// name it live. Sets of time zones and segments belong to the builds alone. A nil snapshot has no sets.
func Changeable(s *segments.Snapshot, rules live.Rules, set string) error {
	var names, sets []string
	generation := "no generation is loaded that"
	if s != nil {
		names, sets, generation = s.Names(), setsOf(s), "generation "+s.Generation()
	}
	switch {
	case strings.HasPrefix(set, segments.ZonePrefix):
		return NewFailure(api.CodeConflict, "%q is a set of a time zone: builds alone change it", Clip([]byte(set)))
	case slices.Contains(names, set):
		return NewFailure(api.CodeConflict, "%q is a segment: builds alone change it", Clip([]byte(set)))
	case slices.Contains(sets, set) || rules.IsLive(set):
		return nil
	}
	known := append(sets, slices.Collect(maps.Keys(rules))...)
	return NewFailure(api.CodeNotFound, "%s has no set %q, and the configuration does not name it live (sets)%s",
		generation, Clip([]byte(set)), meant(set, known))
}

// BuiltAsOf returns the instant up to which the build of a set contains changes; 0 when the build does not say so.
func BuiltAsOf(s *segments.Snapshot, set string) capping.Instant {
	if s == nil || s.AsOf(set).IsZero() {
		return 0
	}
	return max(0, capping.InstantOf(s.AsOf(set)))
}

// SetList describes the sets of a generation and the sets that the rules name live. A nil snapshot has no sets, and
// nil lists have no changes: the store keeps none.
func SetList(s *segments.Snapshot, rules live.Rules, lists *live.Lists, policy *capping.Policy) *api.Sets {
	told := &api.Sets{Sets: []api.SetInfo{}}
	add := func(info api.SetInfo) {
		info.OnlyBuilds = lists == nil || strings.HasPrefix(info.Name, segments.ZonePrefix)
		info.Configured = rules.IsLive(info.Name)
		info.Suppressed = slices.ContainsFunc(policy.Suppress, func(s capping.Suppression) bool {
			return s.Set == info.Name
		})
		told.Sets = append(told.Sets, info)
	}
	if s != nil {
		told.Generation = s.Generation()
		for _, set := range s.Sets() {
			info := api.SetInfo{Name: set.Name, Users: &set.Cardinality}
			if at := s.AsOf(set.Name); !at.IsZero() {
				info.AsOf = &at
			}
			add(info)
		}
	}
	for name := range rules {
		if rules.IsLive(name) && (s == nil || s.Set(name) == nil) {
			add(api.SetInfo{Name: name})
		}
	}
	slices.SortFunc(told.Sets, func(a, b api.SetInfo) int { return cmp.Compare(a.Name, b.Name) })
	addLive(told.Sets, rules, lists)
	return told
}

// addLive adds the live changes to the sets that calls may change.
func addLive(sets []api.SetInfo, rules live.Rules, lists *live.Lists) {
	sizes := map[string]live.Size{}
	if lists != nil {
		for _, size := range lists.Sizes() {
			sizes[size.Set] = size
		}
	}
	for i := range sets {
		if sets[i].OnlyBuilds {
			continue
		}
		size := sizes[sets[i].Name]
		sets[i].Live = &api.LiveSet{Additions: size.Additions, Removals: size.Removals, Oldest: timeOf(size.Oldest),
			Newest: timeOf(size.Newest), Max: rules.Max(sets[i].Name)}
	}
}

func timeOf(at capping.Instant) *time.Time {
	if at == 0 {
		return nil
	}
	return pointerTo(at.Time())
}

// MembersPage converts a page of live changes to the API's form. The page has one change more than it shows when a
// further page follows.
func MembersPage(set string, changes []live.Change, n int, anonymous string) *api.SetMembers {
	told := &api.SetMembers{Set: set, Changes: []api.MemberChange{}}
	if len(changes) > n {
		next := strconv.FormatUint(uint64(changes[n].User), 10)
		changes, told.Next = changes[:n], &next
	}
	for _, c := range changes {
		if c.Kind != live.Forgotten {
			told.Changes = append(told.Changes, api.MemberChange{UserID: capping.Dense(c.User), Change: c.Kind.String(),
				At: c.At.Time(), By: cmp.Or(c.By, anonymous)})
		}
	}
	return told
}

// LiveMemberships lists the changes of a user that decide about sets, in the order of the names of the sets.
func LiveMemberships(s *segments.Snapshot, changes map[string]live.Change,
	anonymous string) (list []api.LiveMembership) {
	for _, set := range slices.Sorted(maps.Keys(changes)) {
		if c := changes[set]; c.Counts(BuiltAsOf(s, set)) {
			list = append(list, api.LiveMembership{Set: set, Change: c.Kind.String(), Since: c.At.Time(),
				By: cmp.Or(c.By, anonymous)})
		}
	}
	return list
}
