package main

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type diffCommand struct {
	A  string `arg:"" help:"Name of the earlier generation (published version) to compare."`
	B  string `arg:"" optional:"" help:"Name of the later generation (published version) to compare. Default: the generation that services use."`
	at `embed:""`
}

// The type difference is the report of `segmentbuild diff`, which compares two generations (published versions).
type difference struct {
	From    string           `json:"from"`
	To      string           `json:"to"`
	Changes []publish.Change `json:"changes"`
	// NoSegment counts users who left all segments, and users who joined a segment after being in none.
	NoSegment publish.NoSegment `json:"no_segment"`
	Sets      []publish.Change  `json:"set_changes,omitempty"`
	// AsOf lists the sets whose as-of times (times up to which a set reflects all changes) differ between the two
	// generations.
	AsOf []asOfChange `json:"as_of_changes,omitempty"`
}

// The method Run compares two generations (published versions) and prints the differences.
func (c *diffCommand) Run(ctx context.Context, on *terminal.Streams) error {
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	report, err := diff(ctx, location, c.A, c.B)
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	fmt.Fprintf(on.Out, "from %s to %s\n", report.From, report.To)
	return errors.Join(printChanges(on.Out, report.Changes, &report.NoSegment), printSetChanges(on.Out, report.Sets),
		printAsOfChanges(on.Out, report.AsOf))
}

func diff(ctx context.Context, location objects.Location, from, to string) (*difference, error) {
	a, err := readGeneration(ctx, location, from)
	if err != nil {
		return nil, err
	}
	b, err := readGeneration(ctx, location, to)
	if err != nil {
		return nil, err
	}
	if a, err = publish.ForComparison(a, b); err != nil {
		return nil, err
	}
	later := publish.CandidateOf(b)
	return &difference{From: a.Manifest.Generation, To: b.Manifest.Generation,
		Changes: later.Compare(a), NoSegment: later.NoSegment(a), Sets: later.CompareSets(a),
		AsOf: asOfChanges(a.Manifest, b.Manifest)}, nil
}
