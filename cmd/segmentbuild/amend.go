package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type amendCommand struct {
	To        string   `required:"" placeholder:"LOCATION" help:"Location to publish to: a directory or s3://bucket/prefix, to which a build has already published segments."`
	Set       []string `required:"" sep:"none" placeholder:"NAME=FILE" help:"Name of a set, and a file with the ids of all users of the set; may be repeated. FILE may be a file name pattern, an s3:// object or - for standard input."`
	OnlyGrows bool     `name:"only-grows" help:"Add the users in the files to the published sets, and remove nobody. With this flag, the files need to contain only the new users."`
	AsOf      []string `name:"as-of" sep:"none" placeholder:"SET=TIME" help:"Name of a set, and the time up to which its file contains all changes, such as opted-out=2026-11-23T02:00Z; may be repeated. A later build replaces the users of this set only if the build's --as-of time for the set is later. Default: the time at which the newest input file of the set was written."`

	Input    inputFlags  `embed:""`
	Bounds   changeFlags `embed:""`
	Approval approval    `embed:""`
	DryRun   bool        `name:"dry-run" help:"Compare the new sets with the published sets, but publish nothing."`
	JSON     bool        `name:"json" help:"Print the report as JSON."`
	Place    place       `embed:""`
}

// Help returns the text below the flags in the help of the command.
func (c *amendCommand) Help() string {
	return `The command publishes a new generation (version of all segments and sets) with other users in some sets.
All segments and all other sets keep their users. The command neither reads nor stores their bitmaps, so it
usually takes seconds. The guard (safety checks) checks the changed sets as in a build.

If the files contain new user ids of the kind uint64, uuid or text, the command must number all users again.
In this case, the command reads and stores all bitmaps, which takes longer.

  segmentbuild amend --to s3://segments/prod --set opted-out=opted-out.csv
  segmentbuild amend --to s3://segments/prod --set opted-out=last-minute.csv --only-grows
`
}

// The method Run replaces the users of some sets in the live generation (published version in use) by users from files,
// and publishes the result.
func (c *amendCommand) Run(ctx context.Context, on *terminal.Streams) error {
	plan, err := c.plan()
	if err != nil {
		return terminal.Misuse(err)
	}
	ctx, cancel, location, err := c.Place.open(ctx, on, c.To)
	if err != nil {
		return err
	}
	defer cancel()
	report := &buildReport{Location: c.To, Status: "failed", forcing: c.Approval.Force, dryRun: c.DryRun}
	for _, s := range plan.Sets {
		report.Amended = append(report.Amended, s.Name)
	}
	err = c.work(ctx, on, plan, location, report)
	printErr := report.printAs(on.Out, c.JSON)
	if err == nil {
		err = printErr
	}
	return timedOut(ctx, err)
}

func (c *amendCommand) plan() (*ingest.Plan, error) {
	base := c.Input.input()
	plan := &ingest.Plan{SetsAlone: true, MaxBadRows: c.Input.MaxBadRows,
		Bounds: publish.Bounds{MaxChange: publish.UsualMaxChange}}
	if err := errors.Join(c.Approval.check(), addDefinitions(&plan.Sets, setFlag, c.Set, base)); err != nil {
		return nil, err
	}
	return plan, errors.Join(setAsOf(plan, c.AsOf), c.Bounds.override(plan), c.Approval.accept(plan))
}

func (c *amendCommand) work(ctx context.Context, on *terminal.Streams, plan *ingest.Plan, location objects.Location,
	report *buildReport) error {
	p := &publication{Approval: c.Approval, dryRun: c.DryRun, location: location, bounds: &plan.Bounds, report: report}
	if err := p.begin(ctx); err != nil {
		return err
	}
	is, err := publish.ReadIDs(ctx, location, nil)
	if err != nil {
		report.noteFailure(err)
		return err
	}
	if is.Scheme != nil {
		// More frequent garbage collection costs little, because a dictionary consists of a few large slices without
		// pointers.
		defer debug.SetGCPercent(debug.SetGCPercent(20))
	}
	began := time.Now()
	show := terminal.NewProgress(on, terminal.Bytes)
	defer show.Stop()
	cfg := ingest.Config{S3: c.Place.s3(on), Stdin: on.In, Progress: show.Add, Scheme: is.Scheme,
		Names: true}
	result, err := c.Input.read(ctx, plan, cfg, show)
	report.noteResult(result)
	if wrong := new(ingest.PlanError); errors.As(err, &wrong) {
		err = terminal.Misuse(err)
	}
	if err != nil {
		report.noteFailure(err)
		return err
	}
	return p.publish(ctx, show, &amendment{result: result, add: c.OnlyGrows, began: began})
}

// An amendment is the result of `segmentbuild amend`: new users for some sets of the live generation (version in use).
// All segments and all other sets stay unchanged.
type amendment struct {
	result *ingest.Result
	add    bool // add the users in the files to the live users of each set
	began  time.Time
}

func (a *amendment) read(ctx context.Context, session *publish.Session,
	at objects.Location) (*publish.LiveState, error) {
	return session.ReadForAmend(ctx, at, a.result.Candidate)
}

func (a *amendment) propose(base *publish.LiveState, report *buildReport) (*publish.Proposal, error) {
	switch {
	case !base.Exists() && base.Fault != nil:
		return nil, fmt.Errorf(
			"the command amend must keep the published segments and sets, but cannot read them: %w",
			base.Fault)
	case !base.Exists():
		return nil, terminal.WithStatus(terminal.BadInput, errors.New(
			"the command amend changes published sets, but nothing is published yet: run segmentbuild build first"))
	case base.Fault != nil && a.add:
		return nil, fmt.Errorf("users cannot be added to the published set, because the set cannot be read: %w",
			base.Fault)
	case base.Fault != nil && a.result.Candidate.Dictionary != nil:
		return nil, terminal.Hinted(fmt.Errorf(
			"the command amend cannot add new user ids, because the published segments and sets cannot be read: %w",
			base.Fault), "segmentbuild build with --force publishes everything again")
	}
	for _, s := range a.result.Candidate.Sets {
		if base.IsSegment(s.Name) {
			return nil, terminal.Hinted(terminal.Misuse(fmt.Errorf(
				"--set %s must not be the name of a published segment", s.Name)),
				"segmentbuild build publishes segments; "+
					"segmentbuild inspect lists the segments and sets of the live generation")
		}
	}
	over, by, err := a.result.Candidate.Over(base)
	if err != nil {
		return nil, err
	}
	report.noteIDs(a.result.WarningsOver(base.Generation), over)
	base.ReleaseNames()
	p := a.result.Proposal(by)
	var refusals []string
	p.Candidate, refusals = over.Amended(by, a.add, a.began)
	p.Shortfalls = append(refusals, p.Shortfalls...)
	return p, nil
}

// mayRepeat returns true, because an amend (a publish of some sets) may replace sets in every generation (published
// version) that another process publishes.
func (a *amendment) mayRepeat(context.Context, objects.Source, *publish.LiveState, *publish.LiveState) (bool, error) {
	return true, nil
}
