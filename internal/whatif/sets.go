package whatif

import (
	"slices"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
)

// The type recordedSets is the segments generation (published version) of a call, in which suppressed sets have the
// members that the record of the call shows. Changes of sets by API calls are visible only in the audit record, and not
// in the published segments generation.
//
// If a suppressed set was the reason for a denial, the user was in this set, and in no earlier set of the policy. If
// the record shows another outcome for a user, the user was in no set that the policy suppressed for the send. If the
// record does not show a user's membership in a set, the membership comes from the segments generation (published
// version). The replay may use another segments generation in place of the call's generation. If the replay uses
// another generation, recordedSets takes the sets of the other generation unchanged. If the other generation lacks a
// set, recordedSets takes the set's members from the record.
type recordedSets struct {
	capping.Segments
	own    bool           // Segments is the generation in the record; otherwise its sets are used unchanged
	names  []string       // the sets that the policy in force suppressed for the send, in its order
	shown  [][]membership // by set and group
	groups []uint16       // for each user of the next decision, an index into the record's groups
}

// A membership tells whether the users in a group of an audit record were in a certain set at the time of the call.
type membership uint8

const (
	unknown  membership = iota // the record does not show whether the users were in the set
	member                     // the users were in the set
	stranger                   // the users were not in the set
)

// The method take reads, from the groups of an audit record, the members of the sets that the call's policy suppressed.
func (s *recordedSets) take(r *audit.Record, policy *capping.Policy, from capping.Segments, own bool) {
	s.Segments, s.own, s.names, s.shown = from, own, suppressed(policy, r.Channel, r.Exempt), nil
	for k, name := range s.names {
		of := make([]membership, len(r.Groups))
		for g := range r.Groups {
			of[g] = shows(&r.Groups[g], s.names, k, name)
		}
		s.shown = append(s.shown, of)
	}
}

// The function "shows" tells whether the users of a group were, according to the record, in the set with the given
// name. The argument "k" selects the set: its name is names[k].
func shows(g *audit.Group, names []string, k int, name string) membership {
	switch {
	case g.Outcome != audit.Allowed && g.Outcome != audit.Replayed && g.Outcome != audit.Denied:
		return unknown
	case g.By != capping.BySuppression: // the zero value is ByLimit
		return stranger
	case g.Set == name:
		return member
	case k < slices.Index(names, g.Set):
		return stranger
	}
	return unknown
}

// The method Set returns a set by its name. If the segments generation (published version) lacks a set that the policy
// suppressed, Set returns the members that the audit record shows.
func (s *recordedSets) Set(name string) (capping.Set, bool) {
	published, ok := s.Segments.Set(name)
	k := slices.Index(s.names, name)
	if k < 0 || ok && !s.own {
		return published, ok
	}
	if !ok {
		published = nil
	}
	return &recordedSet{published, s.shown[k], s.groups}, true
}

// AsOf returns the as-of time of a set in the segments generation (published version): the set includes all changes up
// to this time. If the segments generation lacks a set, the set has only members from API calls, and is never too old.
func (s *recordedSets) AsOf(set string) time.Time {
	dated, ok := s.Segments.(capping.Dated)
	if _, published := s.Segments.Set(set); !ok || !published {
		return capping.Never.Time()
	}
	return dated.AsOf(set)
}

// recordedSet is a set of users whose members an audit record shows.
type recordedSet struct {
	published capping.Set  // nil: the generation lacks the set
	shown     []membership // by group
	groups    []uint16     // by user
}

// The method Mark marks the given users who are in the set. The argument "users" of Mark must hold all users of the
// decision, in the order of the decision.
func (s *recordedSet) Mark(users []capping.UserID, numbers []uint32, marks []uint8, mark uint8) {
	in := make([]uint8, len(users))
	if s.published != nil && slices.Contains(s.shown, unknown) {
		s.published.Mark(users, numbers, in, 1)
	}
	for i, group := range s.groups[:len(users)] {
		if s.shown[group] != unknown {
			in[i] = uint8(one(s.shown[group] == member))
		}
		if in[i] == 1 && marks[i] == 0 {
			marks[i] = mark
		}
	}
}
