package publish

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// Carried describes a set whose live users a rollback keeps. The rollback may also add users of the earlier generation
// (published version) to the set.
type Carried struct {
	Set   string `json:"set"`
	Users uint64 `json:"users"`
	// Joined is true if the rollback also adds users of the earlier generation who had left the live set.
	Joined bool `json:"joined,omitempty"`
}

// RollbackPlan describes the generation (published version) that a rollback makes live. The planned generation has the
// segments of an earlier generation, but the live content of sets that only grow. If a user objected to messages in the
// meantime, the user therefore gets no message after the rollback.
type RollbackPlan struct {
	Earlier *segments.Generation
	Carried []Carried
	// Accepted lists the sets that lose users because the caller named them in the argument "back" of PlanRollback.
	Accepted []segments.Accepted

	sets []Set // in the order of the manifest
	new  bool  // true if the content differs from the earlier generation
}

// The method Candidate returns the planned generation as a candidate (built but unpublished generation).
func (p *RollbackPlan) Candidate() *Candidate {
	c := CandidateOf(p.Earlier)
	c.Sets, c.Accepted = p.sets, p.Accepted
	return c
}

// PlanRollback plans the rollback from the live state in the argument "base" to an earlier generation (published
// version). The bitmaps of base and of the earlier generation must have the user numbers of one dictionary; see
// SameNumbers. The argument "back" of PlanRollback names sets, or folders of sets ("tz/*"), that get their earlier
// content although the rollback would otherwise keep their live users. The argument "keep" of PlanRollback names sets
// that keep their live content in the rollback.
func PlanRollback(earlier *segments.Generation, base *LiveState, back, keep []string) (*RollbackPlan, error) {
	p := &RollbackPlan{Earlier: earlier, sets: CandidateOf(earlier).Sets}
	if base.Generation == nil {
		if len(back)+len(keep) > 0 {
			return nil, fmt.Errorf(
				"--also-roll-back and --keep-set must be unset, because the published sets cannot be read")
		}
		return p, nil
	}
	live := CandidateOf(base.Generation)
	for _, name := range slices.Concat(back, keep) {
		if !slices.ContainsFunc(live.Sets, func(s Set) bool { return named(s.Name, []string{name}) }) {
			return nil, fmt.Errorf("%q: must be a published set, or a folder of published sets (such as tz/*)", name)
		}
	}
	zones := p.lacksZone(live.Sets, back)
	if zones { // all time zone sets come from one generation; otherwise a user who moved could be in two of them
		p.sets = slices.DeleteFunc(p.sets, func(s Set) bool { return isZone(s.Name) })
	}
	for _, is := range live.Sets {
		switch {
		case named(is.Name, back):
			p.giveBack(&is, base.manifest)
		case named(is.Name, keep) || zones && isZone(is.Name):
			p.put(is, false)
		case is.Growth.OnlyGrows:
			p.carry(&is, acceptedSince(base.manifest, earlier.Manifest, is.Name))
		}
	}
	was := earlier.Manifest.Sets
	if earlier.Original() != earlier { // the manifest describes bitmaps with other user numbers
		was = CandidateOf(earlier).DescribeSets()
	}
	p.new = len(p.Accepted) > 0 || !sameSets(p.Candidate().DescribeSets(), was) || p.forgets(base)
	return p, nil
}

func isZone(name string) bool { return strings.HasPrefix(name, segments.ZonePrefix) }

// The function "named" reports whether a list contains the name of the set, or a folder of sets ("tz/*") that contains
// the set.
func named(set string, list []string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		folder, all := strings.CutSuffix(name, "*")
		return name == set || all && strings.HasSuffix(folder, "/") && strings.HasPrefix(set, folder)
	})
}

// acceptedSince reports whether, after the generation "earlier" (published version), users left the set in a build with
// an operator's approval. acceptedSince ignores users who left by a rollback, because a second rollback may restore
// them.
func acceptedSince(live, earlier *segments.Manifest, set string) bool {
	return slices.ContainsFunc(live.Accepted, func(a segments.Accepted) bool {
		return a.Set == set && a.At.After(earlier.CreatedAt) && !strings.HasPrefix(a.Reason, RollbackReason)
	})
}

func (p *RollbackPlan) index(set string) int {
	return slices.IndexFunc(p.sets, func(s Set) bool { return s.Name == set })
}

// lacksZone reports whether the earlier generation (published version) lacks a time zone set of the live generation.
// The rollback must not remove a time zone set that services need.
func (p *RollbackPlan) lacksZone(live []Set, back []string) bool {
	return slices.ContainsFunc(live, func(s Set) bool {
		return isZone(s.Name) && !named(s.Name, back) && p.index(s.Name) < 0
	})
}

// The method "put" plans the set s in the generation (published version) after the rollback, instead of the set of this
// name in the earlier generation.
func (p *RollbackPlan) put(s Set, joined bool) {
	if i := p.index(s.Name); i < 0 {
		p.sets = append(p.sets, s)
	} else {
		p.sets[i] = s
	}
	m := p.Earlier.Manifest
	i := slices.IndexFunc(m.Sets, func(was segments.Set) bool { return was.Name == s.Name })
	if i >= 0 && bytes.Equal(p.Earlier.Sets[i].Bytes(), s.Bitmap.Bytes()) {
		return
	}
	p.Carried = append(p.Carried, Carried{Set: s.Name, Users: s.Bitmap.Cardinality(), Joined: joined})
}

// The method "carry" plans a rollback of a set that only grows: the set keeps its live users. Users of the earlier
// generation (published version) who left the set without an operator's approval return to it, because a rollback may
// repair a truncated list.
func (p *RollbackPlan) carry(is *Set, leftOnPurpose bool) {
	i := p.index(is.Name)
	if i < 0 || leftOnPurpose {
		p.put(*is, false)
		return
	}
	was := p.sets[i].Bitmap
	both, _ := bitmap.Common(was, is.Bitmap, 0)
	switch both {
	case was.Cardinality():
		p.put(*is, false)
	case is.Bitmap.Cardinality():
		p.sets[i].Growth = is.Growth
		p.sets[i].AmendedAsOf = latest(p.sets[i].AmendedAsOf, is.AmendedAsOf)
	default:
		both := p.sets[i].joined(is)
		both.Growth = is.Growth
		p.put(both, true)
	}
}

// giveBack plans the earlier content for a set, and records the operator's approval that users leave the set.
func (p *RollbackPlan) giveBack(is *Set, live *segments.Manifest) {
	c := Change{Set: is.Name, State: Vanishes, Before: is.Bitmap.Cardinality(), Removed: is.Bitmap.Cardinality()}
	to := ""
	if i := p.index(is.Name); i >= 0 {
		c, to = p.sets[i].compare(is.Bitmap), p.Candidate().users(is.Name)
	}
	if c.Removed == 0 && c.State != Vanishes {
		return
	}
	words := c.State
	if c.State == changed {
		words = c.Words()
	}
	p.Accepted = append(p.Accepted, segments.Accepted{Set: is.Name, FromSHA256: sumIn(live, is.Name), ToSHA256: to,
		Before: c.Before, Removed: c.Removed, Change: words, Reason: RollbackReason + p.Earlier.Manifest.Generation})
}

// shownCarried is the maximum number of sets whose names the text about a rollback lists.
const shownCarried = 8

// The method "reason" returns a text about the rollback, for the field Reason of the new generation's manifest.
func (p *RollbackPlan) reason() string {
	text := RollbackReason + p.Earlier.Manifest.Generation
	var carried, back []string
	for _, c := range p.Carried {
		carried = append(carried, c.Set)
	}
	for _, a := range p.Accepted {
		back = append(back, a.Set)
	}
	for _, l := range []struct {
		what string
		sets []string
	}{{" with live sets ", carried}, {", also of ", back}} {
		if len(l.sets) == 0 {
			continue
		}
		text += l.what + strings.Join(l.sets[:min(len(l.sets), shownCarried)], ", ")
		if more := len(l.sets) - shownCarried; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// The method "undo" returns the live state "base" without the recorded approvals for sets that the rollback changes.
// After the rollback, the users who left the set are in the set again, so the approval of their loss no longer applies.
func (p *RollbackPlan) undo(base *LiveState) *LiveState {
	kept, live := *base, *base.manifest
	changed := map[string]bool{}
	for _, c := range p.Candidate().CompareSets(base.Generation) {
		changed[c.Set] = c.State != Same
	}
	live.Accepted = slices.DeleteFunc(slices.Clone(live.Accepted),
		func(a segments.Accepted) bool { return changed[a.Set] })
	kept.manifest = &live
	return &kept
}

// The method "forgets" reports whether the earlier manifest lacks an approval that services still need. If a service
// still uses a generation (published version) from before the approval, it needs the approval. Without the approval,
// the service would reject a generation without the users who left the set.
func (p *RollbackPlan) forgets(base *LiveState) bool {
	return slices.ContainsFunc(p.undo(base).manifest.Accepted, func(a segments.Accepted) bool {
		return a.Set != "" && !slices.ContainsFunc(p.Earlier.Manifest.Accepted, func(has segments.Accepted) bool {
			return has.Set == a.Set && has.FromSHA256 == a.FromSHA256 && has.ToSHA256 == a.ToSHA256
		})
	})
}

// RollbackWith makes the planned content of a rollback live, provided that the generation (published version) in the
// argument "base" is still live; see Rollback. If the rollback plan changes sets of the earlier generation,
// RollbackWith publishes the result as a new generation. RollbackWith stores the bitmaps of the result again, except
// those that the live generation also has.
func (p *Publisher) RollbackWith(ctx context.Context, plan *RollbackPlan, base *LiveState) (*Published, error) {
	if !plan.new {
		return p.Rollback(ctx, plan.Earlier.Original(), base)
	}
	c := plan.Candidate()
	list, sets := plan.Earlier.Manifest.Segments, c.DescribeSets()
	if plan.Earlier.Original() != plan.Earlier {
		list = c.Describe()
	}
	if len(c.Accepted) == 0 && c.sameIDs(base.manifest) && sameSegments(base.Generation.Manifest.Segments, list) &&
		sameSets(base.Generation.Manifest.Sets, sets) {
		return &Published{Manifest: base.Generation.Manifest, Unchanged: true}, nil
	}
	m, err := p.manifest(plan.undo(base), plan.reason(), c, list, sets)
	if err != nil {
		return nil, err
	}
	return p.rollback(ctx, c.generation(m), base)
}

// A Grown describes a set that only grows and that users join in a publish. The published set keeps the live users whom
// the candidate (built but unpublished generation) lacks.
type Grown struct {
	Change
	// Stay is the number of users whom the candidate's set lacks, but who stay in the published set.
	Stay uint64 `json:"stay,omitempty"`
}

// SetsThatGrew returns the sets of a refused candidate (built but unpublished generation) that may still go live.
// SetsThatGrew selects the sets that only grow and that users joined, and keeps all live users of these sets. The
// segments and all other sets of the returned candidate have their live content. The argument "refused" of SetsThatGrew
// is a function that reports whether the guard refused a set for another reason. If no set may go live, the returned
// list is empty.
func (c *Candidate) SetsThatGrew(live *segments.Generation, refused func(set string) bool) (*Candidate, []Grown) {
	only := CandidateOf(live)
	only.Carried, only.Partial = c.Carried, true
	var grew []Grown
	for i := range only.Sets {
		was := &only.Sets[i]
		is := c.set(was.Name)
		if is == nil || !was.Growth.OnlyGrows && !is.Growth.OnlyGrows || refused(was.Name) {
			continue
		}
		change := is.compare(was.Bitmap)
		if change.Added == 0 {
			continue
		}
		next := *is
		if change.Removed > 0 {
			next = next.joined(was)
		}
		grew = append(grew, Grown{next.compare(was.Bitmap), change.Removed})
		was.Bitmap, was.AsOf, was.AmendedAsOf = next.Bitmap, next.AsOf, next.AmendedAsOf
	}
	return only, grew
}

func union(a, b *bitmap.Bitmap) *bitmap.Bitmap {
	var both bitmap.Set
	both.AddBitmap(a)
	both.AddBitmap(b)
	return both.Bitmap()
}

// hasSegmentsOf reports whether the segments of the candidate (built but unpublished generation) have the same users as
// the segments of the live generation. The bitmaps of the candidate and of the live generation must have the user
// numbers of one dictionary.
func (c *Candidate) hasSegmentsOf(live *segments.Generation) bool {
	if c.Dictionary == nil {
		return sameSegments(c.Describe(), live.Manifest.Segments)
	}
	return slices.EqualFunc(c.Names, live.Manifest.Segments,
		func(name string, s segments.Segment) bool { return name == s.Name }) &&
		slices.EqualFunc(c.Bitmaps, live.Bitmaps,
			func(a, b *bitmap.Bitmap) bool { return bytes.Equal(a.Bytes(), b.Bytes()) })
}

// onlyGrew reports whether users who joined sets that only grow are the only difference between a candidate (built but
// unpublished generation) and the live generation. If onlyGrew returns true, a publisher may publish the candidate even
// while publishing is on hold.
func (c *Candidate) onlyGrew(base *LiveState) bool {
	live := base.Generation
	if live == nil || len(c.Sets) != len(live.Sets) ||
		c.Carried == nil && !c.hasSegmentsOf(live) {
		return false
	}
	for i, s := range live.Manifest.Sets {
		is := &c.Sets[i]
		change := is.compare(live.Sets[i])
		grows := s.OnlyGrows || is.Growth.OnlyGrows
		if is.Name != s.Name || s.OnlyGrows && !is.Growth.OnlyGrows || change.Removed > 0 || change.Added > 0 &&
			!grows {
			return false
		}
	}
	return true
}
