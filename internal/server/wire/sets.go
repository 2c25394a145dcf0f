package wire

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/segments"
)

// The function Changeable returns nil if API calls may change the set. API calls may change a set that exists in the
// segments generation in use, or that the configuration declares live (open to changes by API calls). API calls cannot
// change segments or sets of time zones, which only a new build changes. A nil snapshot contains no sets. The error
// text of Changeable names only sets that the caller may see.
func Changeable(s *segments.Snapshot, rules live.Rules, set string, sees func(set string) bool) error {
	var names, sets []string
	generation := "no generation is loaded"
	if s != nil {
		names, sets, generation = s.Names(), setsOf(s), "generation "+s.Generation()+" has no set of this name"
	}
	switch {
	case strings.HasPrefix(set, segments.ZonePrefix):
		return NewFailure(api.CodeConflict, "%q is a set of a time zone: only builds change such sets",
			Clip([]byte(set)))
	case slices.Contains(names, set):
		return NewFailure(api.CodeConflict, "%q is a segment: only builds change segments", Clip([]byte(set)))
	case slices.Contains(sets, set) || rules.IsLive(set):
		return nil
	}
	var known []string
	for _, name := range sets {
		if !strings.HasPrefix(name, segments.ZonePrefix) {
			known = append(known, name)
		}
	}
	for name := range rules {
		if rules.IsLive(name) {
			known = append(known, name)
		}
	}
	known = slices.DeleteFunc(known, func(name string) bool { return !sees(name) })
	slices.Sort(known)
	clipped := Clip([]byte(set))
	return NewFailure(api.CodeNotFound, "there is no set %q%s: %s, and the configuration does not declare the set "+
		"(sets: {%s: {live: true}}); calls may change %s", clipped, meant(set, known), generation, clipped,
		namesText(slices.Compact(known)))
}

// mostNames is the maximum number of sets that an error text lists.
const mostNames = 10

// namesText lists set names for an error text. If there are too many names, namesText lists the first names and the
// number of the other sets.
func namesText(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "no set"
	case n > mostNames:
		return fmt.Sprintf("%s and %d other sets", strings.Join(names[:mostNames], ", "), n-mostNames)
	}
	return strings.Join(names, ", ")
}

// BuiltAsOf returns the time up to which the published build of a set includes all changes. If the build of the set
// states no such time, BuiltAsOf returns 0.
func BuiltAsOf(s *segments.Snapshot, set string) capping.Instant {
	if s == nil || s.AsOf(set).IsZero() {
		return 0
	}
	return max(0, capping.InstantOf(s.AsOf(set)))
}

// SetList describes the sets of a segments generation (published version), and the sets that the configured rules
// declare live. A nil snapshot contains no sets. If the argument "lists" is nil, the store does not support live
// changes (by API calls).
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
	addLive(told.Sets, s, rules, lists)
	return told
}

// addLive adds the number of live changes (additions and removals by API calls) to the description of each set that API
// calls may change.
func addLive(sets []api.SetInfo, s *segments.Snapshot, rules live.Rules, lists *live.Lists) {
	sizes := map[string]live.Size{}
	if lists != nil {
		for _, size := range LiveSizes(s, lists) {
			sizes[size.Set] = size
		}
	}
	for i := range sets {
		if sets[i].OnlyBuilds {
			continue
		}
		size := sizes[sets[i].Name]
		sets[i].Live = &api.LiveSet{Additions: size.Additions, Removals: size.Removals, Superseded: size.Superseded,
			Oldest: timeOf(size.Oldest), Newest: timeOf(size.Newest), Max: rules.Max(sets[i].Name)}
	}
}

// LiveSizes counts the live changes (by API calls) of each set. LiveSizes counts the changes that override the set's
// published build separately from the changes that the build overrides.
func LiveSizes(s *segments.Snapshot, lists *live.Lists) []live.Size {
	return lists.SizesIn(func(set string) capping.Instant { return BuiltAsOf(s, set) })
}

func timeOf(at capping.Instant) *time.Time {
	if at == 0 {
		return nil
	}
	return pointerTo(at.Time())
}

// MembersPage converts a page of a set's live changes (changes by API calls) to the type of package api. If a further
// page follows, the argument "changes" has one more element than the page. The argument asOf is the time up to which
// the published build of the set includes all changes of the set.
func MembersPage(set string, changes []live.Change, n int, asOf capping.Instant, anonymous string) *api.SetMembers {
	told := &api.SetMembers{Set: set, Changes: []api.MemberChange{}}
	if len(changes) > n {
		next := strconv.FormatUint(uint64(changes[n].User), 10)
		changes, told.Next = changes[:n], &next
	}
	for _, c := range changes {
		if c.Kind != live.Forgotten {
			told.Changes = append(told.Changes, api.MemberChange{UserID: capping.Dense(c.User), Change: c.Kind.String(),
				At: c.At.Time(), By: cmp.Or(c.By, anonymous), Superseded: !c.Counts(asOf)})
		}
	}
	return told
}

// MembersPageOfIDs works like MembersPage, for user ids that are not dense (not 32-bit numbers). The segments
// snapshot s contains the ids that belong to id images (64-bit hashes). A nil snapshot finds no ids.
func MembersPageOfIDs(
	set string, changes []live.Change, n int, asOf capping.Instant, anonymous string, scheme *ids.Scheme,
	s *segments.Snapshot,
) *api.SetMemberStrings {
	told := &api.SetMemberStrings{Set: set, Changes: []api.MemberChangeOfID{}}
	if len(changes) > n {
		next := imageText(changes[n].User)
		changes, told.Next = changes[:n], &next
	}
	changes = slices.DeleteFunc(changes, func(c live.Change) bool { return c.Kind == live.Forgotten })
	users := make([]capping.UserID, len(changes))
	for i := range changes {
		users[i] = changes[i].User
	}
	for i, id := range namesOf(scheme, s, users) {
		c := &changes[i]
		change := api.MemberChangeOfID{UserID: id, Change: c.Kind.String(), At: c.At.Time(),
			By: cmp.Or(c.By, anonymous), Superseded: !c.Counts(asOf)}
		if id == "" {
			change.Image = imageText(c.User)
		}
		told.Changes = append(told.Changes, change)
	}
	return told
}

// namesOf returns the canonical ids of users. If the segments snapshot does not contain the id of a user, the result
// has "" for the user.
func namesOf(scheme *ids.Scheme, s *segments.Snapshot, users []capping.UserID) []string {
	names, numbers := make([]string, len(users)), make([]uint32, len(users))
	if s != nil {
		s.Numbers(users, numbers)
	}
	for i, user := range users {
		var name []byte
		var err error
		switch {
		case scheme.Kind() == ids.Uint64:
			name, err = scheme.Back(nil, uint64(user), 0)
		case s != nil && s.HasNames() && int64(numbers[i]) < int64(s.KnownIDs()):
			name, err = s.Back(nil, numbers[i])
		}
		if err == nil {
			names[i] = string(name)
		}
	}
	return names
}

// imageText returns the text of an id image (64-bit keyed hash of an id): 16 hexadecimal digits.
func imageText(image capping.UserID) string { return ids.ImageText(uint64(image)) }

// parseImage parses an id image (64-bit keyed hash of an id) from its text of 16 hexadecimal digits.
func parseImage(text string) (capping.UserID, bool) {
	image, ok := ids.ParseImage(text)
	return capping.UserID(image), ok
}

// LiveMemberships lists the changes by API calls that now override the published builds of sets for a user. The list is
// in the order of the set names.
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
