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

// The method Amended returns the generation that an amend (a publish that replaces only some sets) would make live in
// place of the generation in the argument "base". The returned candidate (built but unpublished generation) has the
// sets of the candidate c. The returned candidate refers to the objects of the live generation for all other sets and
// for the segments. The bitmaps of the candidate c and of the live state "base" must have the user numbers of one
// dictionary; see Over. If the argument "add" is true, the users of the candidate's sets join the users of the live
// sets. If "add" is false, the users of the candidate's sets replace the live users. The argument "began" of Amended is
// the time when the amend started to read its inputs.
//
// If a set's as_of (time up to which the set reflects API calls) is earlier than the as_of of the live set, the amend
// would undo later changes. If a set with an earlier as_of only grows, Amended keeps the live users. If any other set
// has an earlier as_of, Amended returns a refusal.
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
		if is == nil { // a time zone set, which the guard needs for its comparison
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
			refusals = append(refusals, fmt.Sprintf("set %q is published with changes up to %s, "+
				"but the file contains changes only up to %s: give a later time with --as-of if the file is right",
				is.Name, AsOfText(newest),
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

// IsSegment reports whether the live generation (published version that current.json names) has a segment with the
// given name.
func (s *LiveState) IsSegment(name string) bool {
	return s.manifest != nil && slices.ContainsFunc(s.manifest.Segments, func(one segments.Segment) bool {
		return one.Name == name
	})
}

// The method "amended" returns a copy of the set for an amend (a publish that replaces only some sets). If the as_of of
// the set is unknown, the copy gets the start time of the amend as AmendedAsOf. The field AmendedAsOf prevents a later
// build with older files from removing the users of the amend.
func (s *Set) amended(began time.Time) Set {
	next := *s
	if next.AmendedAsOf = s.AsOf; s.AsOf.IsZero() {
		next.AmendedAsOf = began.UTC().Truncate(time.Millisecond)
	}
	return next
}

// AsOfText formats the as_of of a set (time up to which the set reflects API calls). The text from AsOfText contains
// milliseconds.
func AsOfText(at time.Time) string {
	if at.IsZero() {
		return "an unknown time"
	}
	return at.Format("2006-01-02T15:04:05.999Z07:00")
}

// amendPart returns a filter for the live sets that an amend (publish of some sets) must read. The filter selects the
// sets that the amend replaces. If the amend replaces a time zone set, the filter also selects all time zone sets,
// because a user has only one time zone.
func (c *Candidate) amendPart() func(set string) bool {
	zones := false
	for _, s := range c.Sets {
		zones = zones || isZone(s.Name)
	}
	return func(set string) bool { return c.set(set) != nil || zones && isZone(set) }
}

// A Kept is a set of a build that keeps the users from an amend (a publish of some sets), because the build's input
// file is older than the amend.
type Kept struct {
	Set         string    `json:"set"`
	AsOf        time.Time `json:"as_of,omitzero"` // as_of of the build's file
	AmendedAsOf time.Time `json:"amended_as_of"`
	Users       uint64    `json:"users"`
	// Joined is true if the set only grows, and so has the users of both the build and the amend.
	Joined bool `json:"joined,omitempty"`
}

// KeepAmended returns a changed copy of a build's candidate that does not undo amends (publishes of some sets) in the
// live state "base". If an amend of a set is not older than the build's input file for the set, the copy has the users
// of the live set. If such an amended set only grows, the copy has the users of both the build and the live set. The
// result "by" of KeepAmended is the live state "base" with bitmaps in the user numbers of the returned candidate. If a
// set keeps users whose ids c does not contain, the returned candidate (built but unpublished generation) has other
// user numbers than c.
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

// The method Exists reports whether the location has a live generation (published version that current.json names).
// Without a live generation, an amend (publish of some sets) is not possible.
func (s *LiveState) Exists() bool { return s.manifest != nil }

// AmendedSince reports whether only amends happened between the earlier state "before" and the state s. An amend is a
// publish that replaces only some sets. If only amends were published during a build, the build may repeat its last
// steps with the newer state.
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

// amendsAlone reports whether every publish between two generations (published versions) was an amend (a publish that
// replaces only some sets). The two generations must have the same user numbers.
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
