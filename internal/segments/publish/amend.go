package publish

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// Amended returns the generation that an amend (a publish that replaces only some sets) would make live in place of
// base. The returned candidate has the sets of c, and refers to all other sets and segments of the live generation. The
// bitmaps of c and base must have the user numbers of one dictionary; see Over. If add is true, the candidate's users
// join the live users of each set, and do not replace them. The argument began is the time when the amend started to
// read its inputs.
//
// If a set's as_of (the time up to which it reflects API calls) is earlier than that of the live set, the amend would
// undo a later build or amend. If such a set only grows, Amended therefore keeps its live users; for any other such
// set, Amended returns a refusal.
func (c *Candidate) Amended(base *LiveState, add bool, began time.Time) (amended *Candidate, refusals []string) {
	amended = &Candidate{Carried: base.manifest, Partial: true}
	if c.Dictionary != nil {
		amended = amended.numberedAs(c)
	}
	live := &Candidate{}
	if base.Generation != nil {
		live = CandidateOf(base.Generation)
	}
	for i := range live.Sets {
		was := &live.Sets[i]
		is := c.set(was.Name)
		if is == nil { // a set of a time zone, with which the guard compares
			amended.Sets = append(amended.Sets, *was)
			continue
		}
		next := is.amended(began)
		newest := latest(was.AsOf, was.AmendedAsOf)
		older := !is.AsOf.IsZero() && is.AsOf.Before(newest)
		switch {
		case add || older && was.Growth.OnlyGrows:
			next = next.joined(was)
		case older:
			refusals = append(refusals, fmt.Sprintf("set %q is live as of %s, but the file speaks for %s, which is "+
				"earlier: state a later time with --as-of if the file is right", is.Name, AsOfText(newest),
				AsOfText(is.AsOf)))
		}
		amended.Sets = append(amended.Sets, next)
	}
	for i := range c.Sets {
		if live.set(c.Sets[i].Name) == nil {
			amended.Sets = append(amended.Sets, c.Sets[i].amended(began))
		}
	}
	return amended, refusals
}

// IsSegment reports whether the live generation has a segment with the given name.
func (s *LiveState) IsSegment(name string) bool {
	return s.manifest != nil && slices.ContainsFunc(s.manifest.Segments, func(one segments.Segment) bool {
		return one.Name == name
	})
}

// amended returns a copy of the set for an amend (a publish that replaces only some sets). If the as_of of the set is
// unknown, amended uses the start time of the amend, so that a build of earlier files does not remove the users.
func (s *Set) amended(began time.Time) Set {
	next := *s
	if next.AmendedAsOf = s.AsOf; s.AsOf.IsZero() {
		next.AmendedAsOf = began.UTC().Truncate(time.Millisecond)
	}
	return next
}

// AsOfText formats the as_of time of a set, with milliseconds.
func AsOfText(at time.Time) string {
	if at.IsZero() {
		return "an unknown time"
	}
	return at.Format("2006-01-02T15:04:05.999Z07:00")
}

// amendPart returns a filter for the live sets that an amend must read: those that the amend replaces. If the amend
// replaces a time zone set, the filter selects all time zone sets, because a user has only one time zone.
func (c *Candidate) amendPart() func(set string) bool {
	zones := false
	for _, s := range c.Sets {
		zones = zones || isZone(s.Name)
	}
	return func(set string) bool { return c.set(set) != nil || zones && isZone(set) }
}

// Kept is a set of a build that keeps the users from an amend (a publish of some sets), because the build's input file
// is older than the amend.
type Kept struct {
	Set         string    `json:"set"`
	AsOf        time.Time `json:"as_of,omitzero"` // of the file of the build
	AmendedAsOf time.Time `json:"amended_as_of"`
	Users       uint64    `json:"users"`
	// Joined means that the set only grows and has the users of both the build and the amend.
	Joined bool `json:"joined,omitempty"`
}

// KeepAmended returns the candidate of a build, adjusted so that it does not undo amends (publishes of some sets) in
// the live state base. If a live set was amended later than the input file of the build, the live set stays unchanged.
// If such a set only grows, it gets the users of the build and of the live set. The result "by" is base with its
// bitmaps converted to the user numbers of the returned candidate. The returned candidate has other user numbers than c
// if a set keeps users whose ids c does not contain.
func (c *Candidate) KeepAmended(base *LiveState) (over *Candidate, by *LiveState, kept []Kept, err error) {
	copied := *c
	over, copied.Sets = &copied, slices.Clone(c.Sets)
	if base.Generation == nil || c.checkIDs(base) != nil { // Publish reports other ids
		return over, base, nil, nil
	}
	live := CandidateOf(base.Generation)
	for i := range over.Sets {
		is := &over.Sets[i]
		was := live.set(is.Name)
		if was == nil || was.AmendedAsOf.IsZero() || is.AsOf.After(was.AmendedAsOf) {
			continue
		}
		next, grows := *was, was.Growth.OnlyGrows || is.Growth.OnlyGrows
		if grows {
			next = is.joined(was)
		}
		next.Growth = is.Growth
		if !bytes.Equal(is.Bitmap.Bytes(), next.Bitmap.Bytes()) {
			kept = append(kept, Kept{Set: is.Name, AsOf: is.AsOf, AmendedAsOf: was.AmendedAsOf,
				Users: next.Bitmap.Cardinality(), Joined: grows})
		}
		*is = next
	}
	over, by, err = over.withUsersOf(base)
	return over, by, kept, err
}

// Exists reports whether the location has a live generation, some sets of which an amend can replace.
func (s *LiveState) Exists() bool { return s.manifest != nil }

// AmendedSince reports whether all publishes between the earlier state "before" and the state s were amends (publishes
// of some sets). A build that lost a publishing race only against amends may repeat its last steps over the newer
// state.
func (s *LiveState) AmendedSince(ctx context.Context, at objects.Source, before *LiveState) (bool, error) {
	if s.manifest == nil || before.manifest == nil {
		return false, nil
	}
	var known []*segments.Generation
	for _, g := range []*segments.Generation{before.Generation, s.Generation} {
		if g != nil {
			known = append(known, g.Original())
		}
	}
	return amendsBetween(ctx, at, before.manifest, s.manifest, known...)
}

// amendsAlone reports whether all publishes between two generations with the same user numbers were amends (publishes
// of some sets).
func amendsAlone(before, now *segments.Manifest) bool {
	if now.Generation <= before.Generation || strings.HasPrefix(now.Reason, RollbackReason) ||
		!sameSegments(now.Segments, before.Segments) {
		return false
	}
	was := map[string]segments.Set{}
	for _, set := range before.Sets {
		was[set.Name] = set
	}
	changes := 0
	for _, is := range now.Sets {
		old, there := was[is.Name]
		delete(was, is.Name)
		if there && sameSets([]segments.Set{old}, []segments.Set{is}) && old.AsOf.Equal(is.AsOf) &&
			old.AmendedAsOf.Equal(is.AmendedAsOf) {
			continue
		}
		if is.AmendedAsOf.IsZero() {
			return false
		}
		changes++
	}
	return changes > 0 && len(was) == 0
}
