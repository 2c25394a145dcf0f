package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// Proposal is what is to go live, and what is known about where it comes from.
type Proposal struct {
	Candidate *publish.Candidate
	// Base is what is live at the location.
	Base *publish.LiveState
	// Shortfalls are what the inputs lack of what was expected of them.
	Shortfalls []string
	// EmptyFiles are inputs without one good row.
	EmptyFiles []string
	// BadRows were left out.
	BadRows int64
}

// Findings are what a proposal changes, and what speaks against it.
type Findings struct {
	// ComparedWith is the newest generation, where none is live and there are some.
	ComparedWith string
	// Changes and NoSegment say what becomes of every segment, and of the users in
	// none; nil where there is nothing to compare with.
	Changes   []publish.Change
	NoSegment *publish.NoSegment
	// Sets say what becomes of every set.
	Sets []publish.Change
	// Drift is nil where nothing was live a week ago, and where nothing changes.
	Drift *Drift
	// Refusals are why the proposal must not go live without somebody's word for it.
	Refusals []string
}

// Drift is what becomes of the segments since the generation of a week ago, or the
// one that publish.FindEarlier takes in its place.
type Drift struct {
	Generation string            `json:"generation,omitempty"`
	Changes    []publish.Change  `json:"changes,omitempty"`
	NoSegment  publish.NoSegment `json:"no_segment"`
	Sets       []publish.Change  `json:"sets,omitempty"`
	Skipped    []string          `json:"skipped,omitempty"` // generations that cannot be read
}

// RefusedError: the guard does not let a proposal go live.
type RefusedError struct{ Refusals []string }

func (e *RefusedError) Error() string {
	if len(e.Refusals) == 1 {
		return "not published: " + e.Refusals[0]
	}
	return fmt.Sprintf("not published, for %d reasons:\n  %s", len(e.Refusals), strings.Join(e.Refusals, "\n  "))
}

// IsBound reports whether a refusal is of a bound that can be given another value; others need a word.
func IsBound(refusal string) bool {
	return strings.Contains(refusal, " is allowed") || strings.Contains(refusal, " expected (")
}

// Judge looks at what is to go live at a location, and refuses what looks like an
// accident. Sets of which nothing is said get from the generation that they are compared
// with whether they only grow. The error is for a location that cannot be read.
func (b *Bounds) Judge(ctx context.Context, at objects.Source, p *Proposal, now time.Time) (*Findings, error) {
	f := &Findings{Refusals: slices.Concat(p.Shortfalls, b.judgeSizes(p.Candidate))}
	if err := b.compare(ctx, at, p, f, now); err != nil {
		return nil, err
	}
	controls, err := publish.ReadControls(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, refusal := range controls.Refusals(p.Candidate.Describe(), p.Candidate.DescribeSets(), p.Base) {
		f.refuse(refusal.Error())
	}
	return f, nil
}

func (f *Findings) refuse(refusals ...string) { f.Refusals = append(f.Refusals, refusals...) }

// compare judges what changes since the last publish and since a week ago; of a
// first publish it judges what it can.
func (b *Bounds) compare(ctx context.Context, at objects.Source, p *Proposal, f *Findings, now time.Time) error {
	before, what, fault := p.Base.Generation, "live", p.Base.Fault
	if before == nil && fault == nil {
		// current.json was lost, or the first publish was cut off before it, or this is the first.
		newest, err := publish.Newest(ctx, at)
		if err != nil {
			return err
		}
		if newest == "" {
			f.refuse(b.judgeFirst(p)...)
			return nil
		}
		f.ComparedWith, what = newest, "newest"
		before, fault = segments.ReadGeneration(ctx, at, newest)
	}
	if fault != nil {
		f.refuse(fmt.Sprintf("the %s generation cannot be read, so nothing can be compared: %v", what, fault))
		return nil
	}
	none := p.Candidate.NoSegment(before)
	f.Changes, f.NoSegment, f.Sets = p.Candidate.Compare(before), &none, p.Candidate.CompareSets(before)
	f.refuse(b.judgeChanges(f.Changes, none)...)
	directions := directionsOf(p.Candidate, before.Manifest)
	f.refuse(b.judgeSets(f.Sets, directions)...)
	p.Candidate.Inherit(before.Manifest)
	if !slices.ContainsFunc(slices.Concat(f.Changes, f.Sets), func(c publish.Change) bool { return c.State != publish.Same }) {
		return nil // nothing goes live that is not live already
	}
	return b.compareWeek(ctx, at, p, f, before.Manifest.Generation, directions, now)
}

// compareWeek judges the drift: 19 % every night are not 19 % after a week.
func (b *Bounds) compareWeek(ctx context.Context, at objects.Source, p *Proposal, f *Findings, live string, directions map[string]*direction, now time.Time) error {
	earlier, err := publish.FindEarlier(ctx, at, live, now)
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
	f.refuse(b.judgeSetsWeek(drift.Generation, drift.Sets, directions)...)
	f.refuse(b.judgeWeek(drift.Generation, drift.Changes, drift.NoSegment)...)
	return nil
}
