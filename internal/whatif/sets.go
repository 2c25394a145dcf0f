package whatif

import (
	"slices"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
)

// recordedSets is the generation of a call, but its suppressed sets have the members that the record shows. The record
// reflects the changes of sets by API calls, and the generation does not.
//
// A user whom the service denied because of a suppressed set was in this set, and in no set that the policy names
// before this set. A user with another outcome was in none of the sets that the policy suppressed for the send. The
// generation decides about all other users and sets. If another generation replaces the generation of the call,
// recordedSets uses the sets of the replacing generation unchanged. In this case, the record shows only the members of
// sets that the replacing generation lacks.
type recordedSets struct {
	capping.Segments
	own    bool           // Segments is the generation in the record; otherwise its sets are used unchanged
	names  []string       // the sets that the policy in force suppressed for the send, in its order
	shown  [][]membership // by set and group
	groups []uint16       // for each user of the next decision, an index into the record's groups
}

// membership says whether the users of a group were in a set, according to the record.
type membership uint8

const (
	unknown  membership = iota // the record does not show it
	member                     // the users were in the set
	stranger                   // the users were not in the set
)

// take reads the groups of a record whose users were decided under the policy.
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

// shows returns the membership of a group in the set with the given name, which is names[k].
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

// Set returns a set by its name. If the generation lacks a set that the policy suppressed, Set returns the members that
// the record shows.
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

// AsOf returns the as_of of a set in the generation. A set that the generation lacks exists only because of API calls,
// and is never too old.
func (s *recordedSets) AsOf(set string) time.Time {
	dated, ok := s.Segments.(capping.Dated)
	if _, published := s.Segments.Set(set); !ok || !published {
		return capping.Never.Time()
	}
	return dated.AsOf(set)
}

// recordedSet is a set with the members that a record shows.
type recordedSet struct {
	published capping.Set  // nil: the generation lacks the set
	shown     []membership // by group
	groups    []uint16     // by user
}

// Mark marks the users who are in the set. The users must be the users of the whole decision, in their order.
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
