package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

type rollbackCommand struct {
	Generation string `arg:"" help:"The generation to make live again."`
	Hold       string `placeholder:"REASON" help:"Stop all publishing, until release-hold; nothing is forced past it."`
	DryRun     bool   `name:"dry-run" help:"Check it and show what changes, and leave it at that."`
	at         `embed:""`
}

type rollbackReport struct {
	Status  string           `json:"status"` // rolled back, unchanged, dry run
	Before  string           `json:"before"`
	Live    string           `json:"live"`
	Changes []publish.Change `json:"changes,omitempty"`
	// NoSegment is who falls to no segment, and so to the default limits.
	NoSegment *publish.NoSegment `json:"no_segment,omitempty"`
}

// Run makes an earlier generation live, after it has been checked as a reader would.
func (c *rollbackCommand) Run(e *env) error {
	if c.Hold != "" && strings.TrimSpace(c.Hold) == "" {
		return usageError{errors.New("--hold needs a reason: it is what build and list say")}
	}
	ctx, cancel, store, err := c.Place.open(e, c.At)
	if err != nil {
		return err
	}
	defer cancel()
	report, err := c.rollback(ctx, store)
	if err != nil && c.Hold != "" && !c.DryRun {
		err = hinted{err, "segmentbuild list says whether publishing is on hold all the same; release-hold ends it"}
	}
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return e.printJSON(report)
	}
	if err := printChanges(e.stdout, report.Changes, report.NoSegment); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %s is live in %s, it was %s\n", report.Status, report.Live, c.At, cmp.Or(report.Before, "nothing"))
	return err
}

func (c *rollbackCommand) rollback(ctx context.Context, store objects.Location) (*rollbackReport, error) {
	publisher := publish.Publisher{Location: store}
	if c.Hold != "" && !c.DryRun {
		if err := publisher.SetHold(ctx, c.Hold); err != nil { // first: whatever becomes of the rest, nothing is published over it
			return nil, err
		}
	}
	base, err := publish.ReadLiveState(ctx, store)
	if err != nil {
		return nil, err
	}
	earlier, err := segments.ReadGeneration(ctx, store, c.Generation)
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	report := &rollbackReport{Status: "dry run", Before: base.Name, Live: base.Name}
	if base.Generation != nil {
		to := &publish.Candidate{Names: names(earlier), Bitmaps: earlier.Bitmaps}
		none := to.NoSegment(base.Generation)
		report.Changes, report.NoSegment = to.Compare(base.Generation), &none
	}
	if c.DryRun {
		return report, nil
	}
	done, err := publisher.Rollback(ctx, earlier, base)
	if err != nil {
		return nil, err
	}
	report.Status, report.Live = "rolled back", c.Generation
	if done.Unchanged {
		report.Status = "unchanged"
	}
	return report, nil
}
