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
	Generation string `arg:"" help:"The generation to make live again."`
	Hold       string `placeholder:"REASON" help:"Stop all publishing, until release-hold; nothing is forced past it."`
	DryRun     bool   `name:"dry-run" help:"Check it and show what changes, and leave it at that."`
	at         `embed:""`
}

// What becomes of a rollback, as its report says it.
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
	// NoSegment is who falls to no segment, and so to the default limits.
	NoSegment *publish.NoSegment `json:"no_segment,omitempty"`
	Sets      []publish.Change   `json:"set_changes,omitempty"`
	// Shrinks are those of Sets that only grow, and that users leave all the same.
	Shrinks []publish.Change `json:"shrinks,omitempty"`
}

// noteShrinks notes what before says that it only grows.
func (r *rollbackReport) noteShrinks(before *segments.Manifest) {
	for _, s := range before.Sets {
		for _, c := range r.Sets {
			if c.Set == s.Name && s.OnlyGrows && c.Removed > 0 {
				r.Shrinks = append(r.Shrinks, c)
			}
		}
	}
}

// Run makes an earlier generation live, after it has been checked as a reader would.
func (c *rollbackCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if c.Hold != "" && strings.TrimSpace(c.Hold) == "" {
		return terminal.Misuse(errors.New("--hold needs a reason: it is what build and list say"))
	}
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	report, err := c.rollback(ctx, location)
	if err != nil && c.Hold != "" && !c.DryRun {
		err = terminal.Hinted(err, "segmentbuild list says whether publishing is on hold all the same; release-hold ends it")
	}
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	if err := errors.Join(printChanges(on.Out, report.Changes, report.NoSegment), printSetChanges(on.Out, report.Sets)); err != nil {
		return err
	}
	return c.print(on.Out, report)
}

// print says what is live, or would be, in the words of build.
func (c *rollbackCommand) print(to io.Writer, r *rollbackReport) (err error) {
	for _, c := range r.Shrinks {
		fmt.Fprintf(to, "warning: %s only grows, and %d of its %d users leave, such as %s\n", c.What(), c.Removed, c.Before, ids(c.Left))
	}
	before := cmp.Or(r.Before, "nothing")
	switch r.Status {
	case rollbackDry:
		_, err = fmt.Fprintf(to, "dry run: nothing was changed, %s would be live in %s, live is %s\n", c.Generation, c.At, before)
	case rollbackUnchanged:
		_, err = fmt.Fprintf(to, "unchanged: %s is live in %s already\n", r.Live, c.At)
	default:
		_, err = fmt.Fprintf(to, "%s: %s is live in %s, it was %s\n", r.Status, r.Live, c.At, before)
	}
	return err
}

func (c *rollbackCommand) rollback(ctx context.Context, location objects.Location) (*rollbackReport, error) {
	publisher := publish.Publisher{Location: location}
	if c.Hold != "" && !c.DryRun {
		if err := publisher.SetHold(ctx, c.Hold); err != nil { // first: whatever becomes of the rest, nothing is published over it
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
	report := &rollbackReport{Status: rollbackDry, Before: base.Name, Live: base.Name}
	if base.Generation != nil {
		to := publish.CandidateOf(earlier)
		none := to.NoSegment(base.Generation)
		report.Changes, report.NoSegment, report.Sets = to.Compare(base.Generation), &none, to.CompareSets(base.Generation)
		report.noteShrinks(base.Generation.Manifest)
	}
	if c.DryRun {
		return report, nil
	}
	done, err := publisher.Rollback(ctx, earlier, base)
	if err != nil {
		return nil, err
	}
	report.Status, report.Live = rollbackDone, c.Generation
	if done.Unchanged {
		report.Status = rollbackUnchanged
	}
	return report, nil
}

type releaseHoldCommand struct {
	at `embed:""`
}

type releaseHoldReport struct {
	Released *publish.Hold `json:"released"` // null when there was no hold
}

// Run ends a hold.
func (c *releaseHoldCommand) Run(ctx context.Context, on *terminal.Streams) error {
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	hold, err := (&publish.Publisher{Location: location}).ReleaseHold(ctx)
	if errors.Is(err, segments.ErrNothingLive) {
		return notThere(fmt.Errorf("there is no hold at %s, and nothing is published there: %w", c.At, err))
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
	_, err = fmt.Fprintf(on.Out, "released: publishing to %s was on hold since %s: %s\n", c.At, hold.Since.Format(time.RFC3339), terminal.Escape(hold.Reason))
	return err
}
