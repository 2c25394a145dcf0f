package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/console"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/build"
	"capper/internal/segments/publish"
)

// usualMaxChange is --max-change where nothing is said, in per cent.
const usualMaxChange = 20

// boundFlags are the guard's bounds on the command line; they go over those of the
// build file, but for the ones that it gives to single segments.
type boundFlags struct {
	AllowNew      []string     `name:"allow-new" placeholder:"NAME" help:"A segment that may appear beside a live generation, or fill after it was empty; may be repeated."`
	AllowFirst    []build.Flaw `name:"allow-first" placeholder:"FLAW" help:"What a first publish may have: empty-segments, empty-files (files without a good row), bad-rows; may be repeated."`
	MaxChange     *percentage  `name:"max-change" placeholder:"20%" help:"Refuse when more of a segment's users come and go than this."`
	MaxWeekChange *percentage  `name:"max-week-change" placeholder:"50%" help:"The same since a week ago; 2.5 times --max-change if not given, or a segment's own max_change."`
	MaxUnassigned *percentage  `name:"max-unassigned" placeholder:"20%" help:"Refuse when more of all users fall to no segment than this, since the last publish or a week ago; as --max-change if not given."`
}

// percentage is a number with or without a per cent sign.
type percentage float64

func (p *percentage) UnmarshalText(text []byte) error {
	v, err := build.ParsePercent(string(text))
	*p = percentage(v)
	return err
}

// over puts the flags over what the plan has from its build file.
func (f *boundFlags) over(plan *build.Plan) error {
	b := &plan.Bounds
	if f.MaxChange != nil {
		b.MaxChange = float64(*f.MaxChange)
	}
	if f.MaxWeekChange != nil {
		b.MaxWeekChange = (*float64)(f.MaxWeekChange)
	}
	if f.MaxUnassigned != nil {
		b.MaxUnassigned = (*float64)(f.MaxUnassigned)
	}
	for _, name := range f.AllowNew {
		if !slices.Contains(plan.Order, name) && !slices.ContainsFunc(plan.Segments, func(r build.Recipe) bool { return r.Name == name }) {
			return fmt.Errorf("--allow-new %q is none of the segments", name)
		}
	}
	b.New = append(b.New, f.AllowNew...)
	for _, flaw := range f.AllowFirst {
		if !slices.Contains(build.Flaws, flaw) {
			return fmt.Errorf("--allow-first %q is none of %v", flaw, build.Flaws)
		}
	}
	plan.AllowFirst = append(plan.AllowFirst, f.AllowFirst...)
	return nil
}

// guarded is a build that is ready to go live if the guard lets it.
type guarded struct {
	plan   *build.Plan
	store  objects.Location
	result *build.Result
	base   *publish.LiveState
	report *buildReport
}

// guard looks at what is to go live, and refuses what looks like an accident.
func (c *buildCommand) guard(ctx context.Context, g *guarded) error {
	refusals := slices.Concat(g.result.Shortfalls, g.plan.Bounds.JudgeSizes(g.result.Candidate))
	compared, err := g.compare(ctx)
	if err != nil {
		return err
	}
	refusals = append(refusals, compared...)
	withdrawn, err := g.withdrawn(ctx)
	if err != nil {
		return err
	}
	refusals = append(refusals, withdrawn...)
	if len(refusals) == 0 {
		return nil
	}
	g.report.Refusals = refusals
	if c.Force {
		g.report.Forced = true
		return nil
	}
	g.report.Status = "refused"
	if len(refusals) == 1 {
		return refused(errors.New("not published: " + refusals[0]))
	}
	return refused(fmt.Errorf("not published, for %d reasons:\n  %s", len(refusals), strings.Join(refusals, "\n  ")))
}

func refused(err error) error {
	return console.Hinted(console.WithStatus(console.Refused, err), "if all of this is what you want: --force --reason \"…\"; the bounds are --max-change and its kin, and those of the build file")
}

// withdrawn refuses what was rolled back from, unless it is live.
func (g *guarded) withdrawn(ctx context.Context) (refusals []string, err error) {
	controls, err := publish.ReadControls(ctx, g.store)
	if err != nil {
		return nil, err
	}
	for _, refusal := range controls.Refusals(g.result.Candidate.Describe(), g.base) {
		refusals = append(refusals, refusal.Error())
	}
	return refusals, nil
}

// compare judges what changes since the last publish and since a week ago; of a
// first publish it judges what it can.
func (g *guarded) compare(ctx context.Context) (refusals []string, err error) {
	g.report.Before = g.base.Name
	before, what, fault := g.base.Generation, "live", g.base.Fault
	if before == nil && fault == nil {
		// current.json was lost, or the first publish was cut off before it, or this is the first.
		newest, err := publish.Newest(ctx, g.store)
		if err != nil {
			return nil, err
		}
		if newest == "" {
			return g.result.Flawed(g.plan.AllowFirst), nil
		}
		g.report.ComparedWith, what = newest, "newest"
		before, fault = segments.ReadGeneration(ctx, g.store, newest)
	}
	if fault != nil {
		return []string{fmt.Sprintf("the %s generation cannot be read, so nothing can be compared: %v", what, fault)}, nil
	}
	candidate, bounds := g.result.Candidate, &g.plan.Bounds
	none := candidate.NoSegment(before)
	g.report.Changes, g.report.NoSegment = candidate.Compare(before), &none
	refusals = bounds.JudgeChanges(g.report.Changes, none)
	if !slices.ContainsFunc(g.report.Changes, func(c publish.Change) bool { return c.State != publish.Same }) {
		return refusals, nil // nothing goes live that is not live already
	}
	drifted, err := g.compareWeek(ctx, before)
	return append(refusals, drifted...), err
}

// compareWeek judges the drift: 19 % every night are not 19 % after a week.
func (g *guarded) compareWeek(ctx context.Context, live *segments.Generation) ([]string, error) {
	earlier, err := publish.FindEarlier(ctx, g.store, live.Manifest.Generation, time.Now())
	if err != nil {
		return nil, err
	}
	week := &weekReport{Skipped: earlier.Skipped}
	if earlier.Generation == nil {
		if len(earlier.Skipped) > 0 {
			g.report.Week = week
		}
		return nil, nil
	}
	week.Generation = earlier.Generation.Manifest.Generation
	week.Changes, week.NoSegment = g.result.Candidate.Drift(earlier.Generation), g.result.Candidate.NoSegment(earlier.Generation)
	g.report.Week = week
	return g.plan.Bounds.JudgeWeek(week.Generation, week.Changes, week.NoSegment), nil
}
