package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// A Proposal is a candidate (built but unpublished generation) with facts about its input files. The guard decides
// whether a Proposal may go live.
type Proposal struct {
	Candidate *Candidate
	// Base is the live state of the location.
	Base *LiveState
	// Shortfalls lists the unmet expectations of the inputs.
	Shortfalls []string
	// EmptyFiles lists the inputs without a good row.
	EmptyFiles []string
	// BadRows is the number of bad rows that the build skipped.
	BadRows int64
}

// Findings is the guard's result: the changes that a proposal would make, and the reasons for refusing the proposal.
type Findings struct {
	// If generations exist but none is live, ComparedWith is the name of the newest generation.
	ComparedWith string
	// Changes describes the change of every segment, and NoSegment describes the change of the users in no segment.
	// Without a generation for a comparison, Changes and NoSegment are nil.
	Changes   []Change
	NoSegment *NoSegment
	// Sets describes the change of every set.
	Sets []Change
	// Drift describes the changes within a week. If no generation was live a week ago, or if nothing changes, Drift is
	// nil.
	Drift *Drift
	// Refusals lists the reasons for which the proposal must not go live without an operator's approval.
	Refusals []string
	// Acceptable lists the texts for the flag --accept by which an operator would approve the refused changes.
	Acceptable []string
	// Used lists approvals by the operator that an earlier generation has already recorded, because an approval is
	// valid for one publish.
	Used []string
	// RefusedSets contains the sets that the guard refuses for another reason than leaving users.
	RefusedSets map[string]bool
}

// Drift describes the changes of segments and sets since an earlier generation (published version), usually the
// generation of a week ago. The function findEarlier chooses the earlier generation.
type Drift struct {
	Generation string    `json:"generation,omitempty"`
	Changes    []Change  `json:"changes,omitempty"`
	NoSegment  NoSegment `json:"no_segment"`
	Sets       []Change  `json:"sets,omitempty"`
	Skipped    []string  `json:"skipped,omitempty"` // generations that cannot be read
}

// RefusedError reports that the guard refuses to let a proposal go live.
type RefusedError struct{ Refusals []string }

func (e *RefusedError) Error() string {
	if len(e.Refusals) == 1 {
		return "not published: " + e.Refusals[0]
	}
	return fmt.Sprintf("not published, for %d reasons:\n  %s", len(e.Refusals), strings.Join(e.Refusals, "\n  "))
}

// IsBound reports whether a refusal by the guard concerns a configurable limit.
func IsBound(refusal string) bool {
	return strings.Contains(refusal, " is allowed") || strings.Contains(refusal, " expected (")
}

// IsWithdrawn reports whether the guard refused content because an earlier rollback replaced this content.
func IsWithdrawn(refusal string) bool {
	return strings.Contains(refusal, ", which was rolled back from at ")
}

// Judge decides whether a proposal may go live at a location, and refuses changes that look like an accident. If the
// build does not mention the setting "only grows" of a set, Judge uses the setting in the earlier generation (published
// version). If a read from the location fails, Judge returns an error.
func (b *Bounds) Judge(ctx context.Context, at objects.Source, p *Proposal, now time.Time) (*Findings, error) {
	f := &Findings{Refusals: slices.Concat(p.Shortfalls, b.judgeSizes(p.Candidate))}
	controls, err := p.Base.Controls(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := b.compare(ctx, at, controls, p, f, now); err != nil {
		return nil, err
	}
	for _, refusal := range controls.Refusals(p.Candidate.content(), p.Base) {
		f.refuse(refusal.Error())
		f.refusedSet(refusal.Set)
	}
	for _, s := range p.Candidate.Sets {
		if len(b.judgeSize("set", s.Name, s.Bitmap.Cardinality())) > 0 {
			f.refusedSet(s.Name)
		}
	}
	return f, nil
}

func (f *Findings) refuse(refusals ...string) { f.Refusals = append(f.Refusals, refusals...) }

// The method "compare" judges the changes that the proposal makes since the last publish and since a week ago. For a
// first publish, the method "compare" looks for flaws instead, because there is no earlier generation (published
// version).
func (b *Bounds) compare(ctx context.Context, at objects.Source, controls *controls, p *Proposal, f *Findings,
	now time.Time) error {
	before, what, fault := p.Base.Generation, "live", p.Base.Fault
	if before == nil && fault == nil {
		// There are three possible reasons: current.json was lost, an earlier first publish was interrupted, or this
		// publish is the first one.
		newest, err := Newest(ctx, at)
		if err != nil {
			return err
		}
		if newest == "" {
			f.refuse(b.judgeFirst(p)...)
			return b.nothingToAccept("no generation is live to compare with")
		}
		f.ComparedWith, what = newest, "newest"
		var m *segments.Manifest
		if m, fault = segments.ReadManifest(ctx, at, newest); fault == nil {
			before, fault = m.ReadForComparison(ctx, at, nil, p.Candidate.Dictionary)
		}
	}
	if fault != nil {
		f.refuse(fmt.Sprintf("the %s generation cannot be read, so the guard cannot compare the users: %v",
			what, fault))
		return b.nothingToAccept(fmt.Sprintf("the %s generation cannot be read", what))
	}
	none := p.Candidate.NoSegment(before)
	f.Changes, f.NoSegment, f.Sets = p.Candidate.Compare(before), &none, p.Candidate.CompareSets(before)
	accepted, err := b.accept(f, before.Manifest)
	if err != nil {
		return err
	}
	p.Candidate.Accepted = accepted.record(f, before.Manifest, p.Candidate)
	judged := b.newSetJudge(p.Candidate, before)
	b.judge(p, f, judged, accepted)
	p.Candidate.Inherit(before.Manifest)
	if !slices.ContainsFunc(slices.Concat(f.Changes, f.Sets),
		func(c Change) bool { return c.State != Same }) {
		return nil // the proposal has the live content
	}
	return b.compareWeek(ctx, at, controls, p, f, judged, accepted, now)
}

// nothingToAccept handles the operator's approvals for a publish without a comparison. Without a comparison, no change
// exists that an operator could approve, so nothingToAccept returns an error for an approval.
func (b *Bounds) nothingToAccept(why string) error {
	if len(b.Accept) == 0 {
		return nil
	}
	return &AcceptError{Faults: []string{fmt.Sprintf("the acceptance %q: %s", b.Accept[0].text(), why)}}
}

// The method "judge" checks the changes from the last published generation to a proposal, and adds refusals to the
// findings.
func (b *Bounds) judge(p *Proposal, f *Findings, judged *setJudge, accepted accepted) {
	segmentsLeft := accepted.rest(f.Changes)
	for _, c := range segmentsLeft {
		f.refuseChange(&c, func(c *Change) []string { return b.judgeChange(c, segmentsLeft) })
	}
	passes := func(name string) bool { return accepted[name] != nil }
	none := withoutFall(*f.NoSegment, fell(passes, judged.before, p.Candidate))
	f.refuse(b.judgeFall(none, "")...)
	setsLeft := accepted.rest(f.Sets)
	for _, c := range setsLeft {
		f.refuseChange(&c, func(c *Change) []string { return judged.change(c, setsLeft) })
	}
}

// In the counts n, withoutFall ignores the given number of users who left all segments by an approved change.
func withoutFall(n NoSegment, accepted uint64) NoSegment {
	n.Fall -= min(n.Fall, accepted)
	n.Percent = percent(n.Fall, n.Before)
	return n
}

// refuseChange calls the function "judge" for a change, and adds the returned refusals to the findings of the guard.
func (f *Findings) refuseChange(c *Change, judge func(*Change) []string) {
	reasons := judge(c)
	if len(reasons) == 0 {
		return
	}
	f.refuse(reasons...)
	joined := *c
	joined.Removed = 0
	if len(judge(&joined)) > 0 {
		f.refusedSet(c.Set)
	}
	if whole := f.change(c.Name()); whole != nil {
		if text := Suggest(whole); text != "" && !slices.Contains(f.Acceptable, text) {
			f.Acceptable = append(f.Acceptable, text)
		}
	}
}

func (f *Findings) refusedSet(name string) {
	if name == "" {
		return
	}
	if f.RefusedSets == nil {
		f.RefusedSets = map[string]bool{}
	}
	f.RefusedSets[name] = true
}

// compareWeek judges the total change of segments and sets within a week, because losses of 19 % every night would add
// up. compareWeek ignores changes that an operator approved during the week.
func (b *Bounds) compareWeek(ctx context.Context, at objects.Source, controls *controls, p *Proposal,
	f *Findings, judged *setJudge, accepted accepted, now time.Time) error {
	live := judged.before.Manifest
	earlier, err := findEarlier(ctx, at, controls, p.Base, live.Generation, now)
	if err != nil {
		return err
	}
	drift := &Drift{Skipped: earlier.Skipped}
	if earlier.Generation == nil {
		if len(earlier.Skipped) > 0 {
			f.Drift = drift
		}
		return nil
	}
	drift.Generation = earlier.Generation.Manifest.Generation
	drift.Changes, drift.NoSegment = p.Candidate.Drift(earlier.Generation), p.Candidate.NoSegment(earlier.Generation)
	drift.Sets = p.Candidate.DriftSets(earlier.Generation)
	f.Drift = drift
	passes := func(name string) bool {
		return accepted[name] != nil || acceptedAfter(live, earlier.Generation.Manifest, name)
	}
	for _, c := range drift.Sets {
		if !passes(c.Set) {
			f.refuseChange(&c, func(c *Change) []string { return judged.week(drift.Generation, c) })
		}
	}
	for _, c := range drift.Changes {
		if !passes(c.Segment) {
			f.refuseChange(&c, func(c *Change) []string { return b.judgeDrift(drift.Generation, c) })
		}
	}
	none := withoutFall(drift.NoSegment, fell(passes, earlier.Generation, p.Candidate))
	f.refuse(b.judgeFall(none, " since "+drift.Generation)...)
	return nil
}
