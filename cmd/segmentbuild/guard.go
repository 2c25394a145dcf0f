package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments/build"
	"capper/internal/segments/publish/guard"
	"capper/internal/terminal"
)

// boundFlags are the guard's bounds on the command line; they go over those of the
// build file, but for the ones that it gives to single segments.
type boundFlags struct {
	AllowNew      []string     `name:"allow-new" placeholder:"NAME" help:"A segment or set that may appear beside a live generation, or fill after it was empty; country/* is all sets of a folder; may be repeated."`
	AllowFirst    []guard.Flaw `name:"allow-first" placeholder:"FLAW" help:"What a first publish may have: empty-segments, empty-sets, empty-files (files without a good row), bad-rows; may be repeated."`
	MaxChange     *percentage  `name:"max-change" placeholder:"20%" help:"Refuse when more of a segment's or set's users come and go than this."`
	MaxWeekChange *percentage  `name:"max-week-change" placeholder:"50%" help:"The same since a week ago; 2.5 times --max-change if not given, or a segment's own max_change."`
	MaxUnassigned *percentage  `name:"max-unassigned" placeholder:"20%" help:"Refuse when more of all users fall to no segment than this, since the last publish or a week ago; as --max-change if not given."`
}

// percentage is a number with or without a per cent sign.
type percentage float64

func (p *percentage) UnmarshalText(text []byte) error {
	v, err := guard.ParsePercent(string(text))
	*p = percentage(v)
	return err
}

// onlyGrow are sets that only grow, with how many users may leave.
func onlyGrow(plan *build.Plan, list []string) error {
	for _, arg := range list {
		name, text, given := strings.Cut(arg, "=")
		if !given {
			text = "true"
		}
		growth, err := build.ParseGrowth(text)
		if err != nil {
			return fmt.Errorf("--only-grows %q: %w", arg, err)
		}
		if err := plan.SetGrowth(name, growth); err != nil {
			return fmt.Errorf("--only-grows: %w", err)
		}
	}
	return nil
}

// override puts the flags over what the plan has from its build file.
func (f *boundFlags) override(plan *build.Plan) error {
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
		if !plan.Publishes(name) {
			return fmt.Errorf("--allow-new %q is not one of the segments and sets to publish", name)
		}
	}
	b.New = append(b.New, f.AllowNew...)
	for _, flaw := range f.AllowFirst {
		if !slices.Contains(guard.Flaws, flaw) {
			return fmt.Errorf("--allow-first %q is not one of %v", flaw, guard.Flaws)
		}
	}
	b.AllowFirst = append(b.AllowFirst, f.AllowFirst...)
	return nil
}

// guard has the bounds look at what is to go live.
func (c *buildCommand) guard(ctx context.Context, at objects.Source, bounds *guard.Bounds, p *guard.Proposal, report *buildReport) error {
	report.Before = p.Base.Name
	found, err := bounds.Judge(ctx, at, p, time.Now())
	if err != nil {
		return err
	}
	report.noteFindings(found)
	report.noteSets(p.Candidate)
	if len(found.Refusals) == 0 || c.Force {
		report.Forced = len(found.Refusals) > 0
		return nil
	}
	report.Status = "refused"
	return refused(&guard.RefusedError{Refusals: found.Refusals})
}

// refused adds how to publish all the same, unless every reason names a flag of
// its own: that one lets less through than --force.
func refused(err *guard.RefusedError) error {
	ended := terminal.WithStatus(terminal.Refused, err)
	if !slices.ContainsFunc(err.Refusals, func(reason string) bool { return !strings.Contains(reason, ": --allow-") }) {
		return ended
	}
	hint := "if all of this is what you want: --force --reason \"…\""
	if slices.ContainsFunc(err.Refusals, guard.IsBound) {
		hint += "; the bounds are --max-change and its kin, and those of the build file"
	}
	return terminal.Hinted(ended, hint)
}
