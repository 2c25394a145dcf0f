package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"capper/internal/objects"
	"capper/internal/segments/build"
	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/delimited"
	"capper/internal/segments/publish"
	"capper/internal/segments/publish/guard"
)

type buildCommand struct {
	To         string   `required:"" placeholder:"LOCATION" help:"Where to publish: a directory or s3://bucket/prefix."`
	File       string   `arg:"" optional:"" help:"Build file (YAML) instead of --segment and --table."`
	Segment    []string `sep:"none" placeholder:"NAME=FILE" help:"A segment and a file of its ids; again for more files, which may be patterns, s3:// objects or - for standard input. The order is the order of precedence."`
	Table      []string `sep:"none" placeholder:"FILE" help:"A file of ids with the names of their segments."`
	Precedence []string `placeholder:"NAME" help:"All segments; a user in several stays in the first of these. Without it an overlap is an error. A table needs it: other names in it are bad rows."`

	Format        ingest.Format       `enum:",text,csv,tsv,ndjson,parquet,roaring" default:"" placeholder:"FORMAT" help:"Format of the files: text, csv, tsv, ndjson, parquet, roaring. By name and content if not given; gzip and zstd are recognised."`
	IDColumn      string              `name:"id-column" placeholder:"NAME|N" help:"Column of the ids, by name or number from 1."`
	SegmentColumn string              `name:"segment-column" placeholder:"NAME|N" help:"Column of the segments of a table."`
	Delimiter     string              `placeholder:"C" help:"Delimiter of the columns, one byte."`
	Header        delimited.Header    `enum:",yes,no" default:"" placeholder:"yes|no" help:"Whether the first row of CSV, TSV and text names the columns (yes, no). If not given: it does when a column is asked for by name, or when it holds no number and a name such as user_id."`
	Quote         delimited.Mark      `placeholder:"C" help:"Quote that encloses fields of CSV and TSV: one byte, or none. If not given: a double quote in CSV, none in TSV."`
	Escape        delimited.Mark      `placeholder:"C" help:"Escape of delimiters, quotes and line breaks in CSV and TSV: one byte, or none. If not given: none in CSV, a backslash in TSV."`
	FinalNewline  ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text must end in a line break (required, optional). If not given: above 16 KiB, because a text that was cut off shows in nothing else."`

	MaxBadRows ingest.Tolerance `name:"max-bad-rows" placeholder:"N|N%" help:"Leave out up to N bad rows of all files together, or N% of the rows of each file, and count them. A file without one good row is an error all the same."`
	BadRowsTo  string           `name:"bad-rows-to" placeholder:"FILE" help:"Write every bad row into this file, one JSON object a line with file, row, lines, value and reason."`

	Bounds boundFlags `embed:""`
	Force  bool       `help:"Publish although the guard refuses; needs --reason."`
	Reason string     `help:"Why --force is given; recorded in the manifest, also when the guard refuses nothing."`
	DryRun bool       `name:"dry-run" help:"Build and compare, publish nothing."`
	JSON   bool       `name:"json" help:"Report as JSON."`
	Place  place      `embed:""`
}

// Help is printed below the flags.
func (c *buildCommand) Help() string { return buildHelp }

// Run builds, compares with what is live, and publishes.
func (c *buildCommand) Run(e *env) error {
	plan, err := c.plan()
	if err != nil {
		return usageError{err}
	}
	ctx, cancel, store, err := c.Place.open(e, c.To)
	if err != nil {
		return err
	}
	defer cancel()
	report := &buildReport{Location: c.To, Status: "failed"}
	err = c.work(ctx, e, plan, store, report)
	if printErr := c.print(e, report); err == nil {
		err = printErr
	}
	return timedOut(ctx, err)
}

func (c *buildCommand) print(e *env, report *buildReport) error {
	if c.JSON {
		return e.printJSON(report)
	}
	return report.print(e.stdout)
}

// timedOut says why a context ended when that is why err happened.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return err
}

func (c *buildCommand) work(ctx context.Context, e *env, plan *build.Plan, store objects.Location, report *buildReport) error {
	if err := c.held(ctx, store); err != nil {
		report.failed(err)
		return err
	}
	show := newProgress(e.stderr)
	defer show.stop()
	cfg := ingest.Config{S3: c.Place.s3(e), Stdin: e.stdin, Progress: show.add}
	result, err := c.read(ctx, plan, cfg, show)
	report.built(result)
	if err != nil {
		report.failed(err)
		return err
	}
	show.step("comparing with the live generation")
	base, err := publish.ReadLiveState(ctx, store)
	if err != nil {
		return err
	}
	if err := c.guard(ctx, &guarded{plan: plan, store: store, result: result, base: base, report: report}); err != nil {
		return err
	}
	if c.DryRun {
		report.Status = "dry run"
		return nil
	}
	show.step("publishing")
	show.add(0, result.Candidate.SizeBytes())
	publisher := publish.Publisher{Location: store, ToolVersion: toolVersion(), Uploaded: show.uploaded}
	published, err := publisher.Publish(ctx, result.Candidate, base, c.forcedBy())
	if err != nil {
		report.failed(err)
		return err
	}
	report.published(published)
	return nil
}

// forcedBy is what the manifest records: also when the guard refused nothing,
// for who says --force has looked.
func (c *buildCommand) forcedBy() string {
	if !c.Force {
		return ""
	}
	return c.Reason
}

// held looks for a hold before anything is read; a publish looks again at its end.
func (c *buildCommand) held(ctx context.Context, store objects.Location) error {
	if c.DryRun {
		return nil
	}
	controls, err := publish.ReadControls(ctx, store)
	if err == nil && controls.Hold != nil {
		err = &publish.HoldError{Hold: *controls.Hold}
	}
	return err
}

// read reads and builds, and lists the bad rows, whether or not they are tolerated.
func (c *buildCommand) read(ctx context.Context, plan *build.Plan, cfg ingest.Config, show *progress) (*build.Result, error) {
	if c.BadRowsTo == "" {
		return build.Run(ctx, plan, cfg, show.step)
	}
	list, err := newBadRowList(c.BadRowsTo)
	if err != nil {
		return nil, usageError{fmt.Errorf("--bad-rows-to: %w", err)}
	}
	cfg.BadRows = list.add
	result, err := build.Run(ctx, plan, cfg, show.step)
	return result, errors.Join(err, list.close())
}

// plan turns the flags, or the build file, into a plan.
func (c *buildCommand) plan() (*build.Plan, error) {
	if c.Force && strings.TrimSpace(c.Reason) == "" {
		return nil, errors.New("--force needs --reason \"…\": it is recorded in the manifest")
	}
	base := ingest.Input{Format: c.Format, Header: c.Header, IDColumn: c.IDColumn, SegmentColumn: c.SegmentColumn, Quote: c.Quote, Escape: c.Escape, FinalNewline: c.FinalNewline}
	if c.Delimiter != "" {
		if err := base.SetDelimiter(c.Delimiter); err != nil {
			return nil, fmt.Errorf("--delimiter %w", err)
		}
	}
	plan := &build.Plan{Order: c.Precedence, MaxBadRows: c.MaxBadRows, Bounds: guard.Bounds{MaxChange: usualMaxChange}}
	if c.File != "" {
		if len(c.Segment)+len(c.Table) > 0 {
			return nil, errors.New("give a build file or --segment and --table, not both")
		}
		if _, err := build.Load(c.File, base, plan); err != nil {
			return nil, err
		}
		return plan, c.Bounds.over(plan)
	}
	if len(c.Segment)+len(c.Table) == 0 {
		return nil, errors.New("nothing to build: give --segment NAME=FILE, --table FILE or a build file")
	}
	for _, path := range c.Table {
		base.Path = path
		plan.Tables = append(plan.Tables, base)
	}
	if err := c.addSegments(plan, base); err != nil {
		return nil, err
	}
	return plan, c.Bounds.over(plan)
}

func (c *buildCommand) addSegments(plan *build.Plan, base ingest.Input) error {
	index := map[string]int{}
	for _, arg := range c.Segment {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" || path == "" {
			return fmt.Errorf("--segment %q: want NAME=FILE", arg)
		}
		i, seen := index[name]
		if !seen {
			i = len(plan.Segments)
			index[name] = i
			plan.Segments = append(plan.Segments, build.Recipe{Name: name})
		}
		base.Path = path
		plan.Segments[i].Inputs = append(plan.Segments[i].Inputs, base)
	}
	return nil
}
