package main

import (
	"fmt"
	"slices"
	"strings"

	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// boundFlags contains the flags for the limits of the guard (the check of a build against the live generation). The
// flags override the limits in the build file, except the limits for single segments and sets.
type boundFlags struct {
	changeFlags   `embed:""`
	AllowFirst    []publish.Flaw `name:"allow-first" placeholder:"FLAW" help:"Fault that the command accepts in the first build to a location: empty-segments, empty-sets, empty-files (files without a valid row) or bad-rows (invalid rows). Without this flag, the command rejects a first build with one of these faults. May be repeated."`
	MaxUnassigned *percentage    `name:"max-unassigned" placeholder:"20%" help:"Maximum percentage of the users in segments who may lose their segment without joining another segment. The limit applies to each build and to each week. Default: the value of --max-change."`
}

// changeFlags contains the flags that limit the changes of segments and sets.
type changeFlags struct {
	AllowNew      []string    `name:"allow-new" placeholder:"NAME" help:"Name of a segment or set that may be new in this build. The flag also permits users in a segment or set that was empty before. country/* stands for all sets whose names begin with country/; may be repeated."`
	MaxChange     *percentage `name:"max-change" placeholder:"20%" help:"Maximum percentage of the users of a segment or set who may join or leave with this build. A build with a larger change is rejected."`
	MaxWeekChange *percentage `name:"max-week-change" placeholder:"50%" help:"Maximum percentage of the users of a segment or set who may join or leave within a week. Default: 2.5 times --max-change, or 2.5 times the segment's setting 'max_change' in the build file."`
}

// A percentage is the value of a flag: a number with an optional percent sign.
type percentage float64

func (p *percentage) UnmarshalText(text []byte) error {
	v, err := publish.ParsePercent(string(text))
	*p = percentage(v)
	return err
}

// onlyGrow stores the values of the flags --only-grows in the plan. Each flag --only-grows names a set that must only
// grow, and optionally a percentage of users who may leave the set.
func onlyGrow(plan *ingest.Plan, list []string) error {
	for _, arg := range list {
		name, text, given := strings.Cut(arg, "=")
		if !given {
			text = "true"
		}
		growth, err := ingest.ParseGrowth(text)
		if err != nil {
			return fmt.Errorf("--only-grows %q: %w", arg, err)
		}
		if err := plan.SetGrowth(name, growth); err != nil {
			return fmt.Errorf("--only-grows: %w", err)
		}
	}
	return nil
}

// The method "override" replaces limits of the plan by the limits in the flags. The limits of the plan come from the
// build file.
func (f *boundFlags) override(plan *ingest.Plan) error {
	b := &plan.Bounds
	if f.MaxUnassigned != nil {
		b.MaxUnassigned = (*float64)(f.MaxUnassigned)
	}
	if err := f.changeFlags.override(plan); err != nil {
		return err
	}
	for _, flaw := range f.AllowFirst {
		if !slices.Contains(publish.Flaws, flaw) {
			return fmt.Errorf("--allow-first %q must be one of %v", flaw, publish.Flaws)
		}
	}
	b.AllowFirst = append(b.AllowFirst, f.AllowFirst...)
	return nil
}

func (f *changeFlags) override(plan *ingest.Plan) error {
	b := &plan.Bounds
	if f.MaxChange != nil {
		b.MaxChange = float64(*f.MaxChange)
	}
	if f.MaxWeekChange != nil {
		b.MaxWeekChange = (*float64)(f.MaxWeekChange)
	}
	for _, name := range f.AllowNew {
		if !plan.Publishes(name) {
			return fmt.Errorf("--allow-new %q must be the name of a segment or set in this build", name)
		}
	}
	b.New = append(b.New, f.AllowNew...)
	return nil
}

// The function "refused" returns the error for a build that the guard (the check against the live generation) refused.
// The error has a hint about flags that permit the publish. If flags such as --allow-new permit all refused changes,
// there is no hint about --force, because --force permits more than these flags.
func refused(found *publish.Findings) error {
	ended := terminal.WithStatus(terminal.Refused, &publish.RefusedError{Refusals: found.Refusals})
	if !slices.ContainsFunc(found.Refusals, func(reason string) bool {
		return !strings.Contains(reason,
			": use --allow-")
	}) {
		return ended
	}
	hint := "if all of this is intended: --force --reason \"…\""
	if len(found.Acceptable) > 0 {
		hint = fmt.Sprintf("if one of these changes is intended, --accept %q --reason \"…\" accepts only this "+
			"change; %s",
			found.Acceptable[0], hint)
	}
	if slices.ContainsFunc(found.Refusals, publish.IsWithdrawn) {
		hint += "; users who were rolled back require --force, even with --accept"
	}
	if slices.ContainsFunc(found.Refusals, publish.IsBound) {
		hint += "; the limits are --max-change and the other --max flags, and those of the build file"
	}
	return terminal.Hinted(ended, hint)
}
