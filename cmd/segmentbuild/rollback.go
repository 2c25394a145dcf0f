package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type rollbackCommand struct {
	Generation string   `arg:"" help:"Name of the generation (published version of segments and sets) that services must use again."`
	Hold       string   `placeholder:"REASON" help:"Also stop all builds from publishing, even builds with --force, until somebody runs 'segmentbuild release-hold'. Each stopped build reports the given reason. A stopped build still adds users to sets marked 'only-grows' (sets that users normally never leave)."`
	AlsoBack   []string `name:"also-roll-back" placeholder:"SET" help:"Name of a set to roll back although the set loses users and is marked 'only-grows' (users normally never leave the set). tz/* stands for all sets whose names begin with tz/; may be repeated. Services that suppress the set (deny messages to its users) accept the loss, too."`
	KeepSet    []string `name:"keep-set" placeholder:"SET" help:"Name of a set that the rollback must not change. tz/* stands for all sets whose names begin with tz/; may be repeated. The rollback removes nobody from a set marked 'only-grows' (users normally never leave the set), unless --also-roll-back names the set."`
	DryRun     bool     `name:"dry-run" help:"Check the rollback and show its changes, but publish nothing."`
	at         `embed:""`
}

// The constants rollbackDone to rollbackDry are the values of the field "status" in the report of a rollback.
const (
	rollbackDone      = "rolled back"
	rollbackUnchanged = "unchanged"
	rollbackDry       = "dry run"
)

type rollbackReport struct {
	Status  string           `json:"status"`
	Before  string           `json:"before"`
	Live    string           `json:"live"`
	Changes []publish.Change `json:"changes,omitempty"`
	// NoSegment counts users who left all segments, and users who joined a segment after being in none.
	NoSegment *publish.NoSegment `json:"no_segment,omitempty"`
	Sets      []publish.Change   `json:"set_changes,omitempty"`
	// Segments is the name of the generation (published version) whose segments become live again. Carried lists the
	// sets whose live users the rollback keeps.
	Segments string            `json:"segments_of"`
	Carried  []publish.Carried `json:"carried,omitempty"`
	// Accepted lists the sets that lose users because of the flag --also-roll-back.
	Accepted []segments.Accepted `json:"accepted,omitempty"`
	Warnings []string            `json:"warnings,omitempty"`
	// Shrinks lists the sets that lose users although they are marked only-grows.
	Shrinks []publish.Change `json:"shrinks,omitempty"`
}

// noteShrinks adds sets to the report: sets that lose users although the live manifest marks the sets as only growing.
func (r *rollbackReport) noteShrinks(before *segments.Manifest) {
	for _, s := range before.Sets {
		for _, c := range r.Sets {
			if c.Set == s.Name && s.OnlyGrows && c.Removed > 0 {
				r.Shrinks = append(r.Shrinks, c)
			}
		}
	}
}

// The method Run reads and checks an earlier generation (published version), and makes it live again.
func (c *rollbackCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if c.Hold != "" && strings.TrimSpace(c.Hold) == "" {
		return terminal.Misuse(errors.New(
			"--hold: the value must be the reason for the hold (stop of all publishing)"))
	}
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	report, err := c.rollback(ctx, location)
	if err != nil && c.Hold != "" && !c.DryRun {
		err = terminal.Hinted(err, "publishing may be on hold nevertheless: segmentbuild list shows a hold, and "+
			"release-hold ends it")
	}
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	if err := errors.Join(printChanges(on.Out, report.Changes, report.NoSegment),
		printSetChanges(on.Out, report.Sets)); err != nil {
		return err
	}
	return c.print(on.Out, report)
}

// The method "print" writes the report of a rollback as text. After a dry run, the report is about the generation that
// would become live.
func (c *rollbackCommand) print(to io.Writer, r *rollbackReport) (err error) {
	for _, set := range r.Carried {
		note := "as it is live"
		if set.Joined {
			note = "as it is live, plus users who have left it since"
		}
		fmt.Fprintf(to, "kept: set %q %s: %s\n", set.Set, note, terminal.Count(set.Users, "user", "users"))
	}
	for _, a := range r.Accepted {
		fmt.Fprintf(to, "rolled back as well: set %q loses %d of its %d users\n", a.Set, a.Removed, a.Before)
	}
	for _, c := range r.Shrinks {
		fmt.Fprintf(to, "warning: %s only grows, but %d of its %d users leave, such as %s\n", c.What(), c.Removed,
			c.Before, c.LeftText())
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(to, "warning: %s\n", text)
	}
	before := cmp.Or(r.Before, "nothing")
	switch r.Status {
	case rollbackDry:
		what := c.Generation
		if len(r.Carried)+len(r.Accepted) > 0 {
			what = "a new generation with the segments of " + c.Generation
		}
		_, err = fmt.Fprintf(to, "dry run: nothing was changed: %s would be live in %s, where %s is live\n",
			what, c.At, before)
	case rollbackUnchanged:
		_, err = fmt.Fprintf(to, "unchanged: %s is already live in %s\n", r.Live, c.At)
	default:
		with := ""
		if r.Live != c.Generation {
			with = ", with the segments of " + c.Generation
		}
		_, err = fmt.Fprintf(to, "%s: %s is live in %s%s, it was %s\n", r.Status, r.Live, c.At, with, before)
	}
	return err
}

func (c *rollbackCommand) rollback(ctx context.Context, location objects.Location) (*rollbackReport, error) {
	publisher := publish.Publisher{Location: location, ToolVersion: toolVersion()}
	if c.Hold != "" && !c.DryRun {
		// Set the hold (stop of all publishing) first, so that no build can replace the generation of the rollback,
		// even if a later step fails.
		if err := publisher.SetHold(ctx, c.Hold); err != nil {
			return nil, err
		}
	}
	base, err := publish.ReadLiveState(ctx, location)
	if err != nil {
		return nil, err
	}
	m, err := namedManifest(ctx, location, c.Generation)
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	earlier, err := m.ReadBitmaps(ctx, location)
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	if earlier, base, err = publish.SameNumbers(earlier, base); err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	plan, err := publish.PlanRollback(earlier, base, c.AlsoBack, c.KeepSet)
	if err != nil {
		return nil, terminal.Misuse(fmt.Errorf("check the flags --also-roll-back and --keep-set: %w", err))
	}
	report := &rollbackReport{Status: rollbackDry, Before: base.Name, Live: base.Name, Segments: c.Generation}
	report.note(plan, base, c.DryRun)
	if c.DryRun {
		return report, nil
	}
	done, err := publisher.RollbackWith(ctx, plan, base)
	if err != nil {
		return nil, err
	}
	report.Status, report.Live = rollbackDone, done.Manifest.Generation
	if done.Unchanged {
		report.Status = rollbackUnchanged
	}
	return report, nil
}

// The method "note" adds changes to the report: the differences between the live generation (published version in use)
// and the generation after the rollback.
func (r *rollbackReport) note(plan *publish.RollbackPlan, base *publish.LiveState, dryRun bool) {
	if base.Generation == nil {
		if base.Fault != nil {
			r.Warnings = append(r.Warnings, "the live generation cannot be read: users who joined its sets since "+
				"then are lost; build them again at once")
		}
		return
	}
	to := plan.Candidate()
	none := to.NoSegment(base.Generation)
	r.Changes, r.NoSegment, r.Sets = to.Compare(base.Generation), &none, to.CompareSets(base.Generation)
	r.Carried, r.Accepted = plan.Carried, plan.Accepted
	r.noteShrinks(base.Generation.Manifest)
	losses := &lossWarnings{accepted: plan.Accepted, live: base.Name, remedy: func(c *publish.Change) string {
		first := ""
		if !dryRun {
			first = fmt.Sprintf("roll back to %s first, then to %s with one of: ", base.Name, r.Segments)
		}
		return first + fmt.Sprintf("--keep-set %s keeps the set as it is, --also-roll-back %s makes services accept "+
			"the loss",
			c.Set, c.Set)
	}}
	r.Warnings = append(r.Warnings, losses.of(r.Sets)...)
	r.Warnings = append(r.Warnings, losses.zones(to, base.Generation)...)
}

type releaseHoldCommand struct {
	at `embed:""`
}

type releaseHoldReport struct {
	Released *publish.Hold `json:"released"` // null: there was no hold
}

// The method Run ends the hold on publishing, so that builds may publish again.
func (c *releaseHoldCommand) Run(ctx context.Context, on *terminal.Streams) error {
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	hold, err := (&publish.Publisher{Location: location}).ReleaseHold(ctx)
	if errors.Is(err, segments.ErrNothingLive) {
		return notThere(fmt.Errorf(
			"location %s has no hold (stop of publishing), because nothing is published there: %w",
			c.At, err))
	}
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, releaseHoldReport{hold})
	}
	if hold == nil {
		_, err = fmt.Fprintf(on.Out, "publishing to %s is not on hold\n", c.At)
		return err
	}
	_, err = fmt.Fprintf(on.Out, "released: publishing to %s was on hold since %s: %s\n", c.At,
		hold.Since.Format(time.RFC3339), terminal.Escape(hold.Reason))
	return err
}
