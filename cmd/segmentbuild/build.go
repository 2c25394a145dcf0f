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
	"capper/internal/terminal"
)

type buildCommand struct {
	To         string   `required:"" placeholder:"LOCATION" help:"Where to publish: a directory or s3://bucket/prefix."`
	File       string   `arg:"" optional:"" help:"Build file (YAML) instead of --segment, --set and tables."`
	Segment    []string `sep:"none" placeholder:"NAME=FILE" help:"A segment and a file of its ids; again for more files, which may be patterns, s3:// objects or - for standard input. The order is the order of precedence."`
	Set        []string `sep:"none" placeholder:"NAME=FILE" help:"A set to publish beside the segments, which may overlap with everything, and a file of its ids; again for more files. tz/Asia/Singapore is the set of that time zone."`
	SetTable   []string `name:"set-table" sep:"none" placeholder:"PREFIX/=FILE" help:"A file of ids with the names of their sets, such as tz/=zones.csv with the columns user_id and timezone: every name makes a set."`
	OnlyGrows  []string `name:"only-grows" sep:"none" placeholder:"NAME[=0.1%]" help:"A set that users join and do not leave, such as those who object: more who leave than this are refused, by later builds too. NAME=false lifts it, with --force."`
	Table      []string `sep:"none" placeholder:"FILE" help:"A file of ids with the names of their segments."`
	Precedence []string `placeholder:"NAME" help:"All segments; a user in several stays in the first of these. Without it an overlap is an error. A table needs it: other names in it are bad rows."`

	Format        ingest.Format       `enum:",${formats}" default:"" placeholder:"FORMAT" help:"Format of the files: ${formats}. By name and content if not given; gzip and zstd are recognised."`
	IDColumn      string              `name:"id-column" placeholder:"NAME|N" help:"Column of the ids, by name or number from 1."`
	SegmentColumn string              `name:"segment-column" placeholder:"NAME|N" help:"Column of the segments of a table."`
	Delimiter     string              `placeholder:"C" help:"Delimiter of the columns, one byte."`
	Header        delimited.Header    `enum:",yes,no" default:"" placeholder:"yes|no" help:"Whether the first row of CSV, TSV and text names the columns (yes, no). If not given: it does when a column is asked for by name, or when it holds no number and a name such as user_id."`
	Quote         delimited.Mark      `placeholder:"C" help:"Quote that encloses fields of CSV and TSV: one byte, or none. If not given: a double quote in CSV, none in TSV."`
	Escape        delimited.Mark      `placeholder:"C" help:"Escape of delimiters, quotes and line breaks in CSV and TSV: one byte, or none. If not given: none in CSV, a backslash in TSV."`
	FinalNewline  ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text must end in a line break (required, optional). If not given: above 16 KiB, because a text that was cut off shows in nothing else."`

	MaxBadRows ingest.Tolerance `name:"max-bad-rows" placeholder:"N|N%" help:"Leave out up to N bad rows of all files together, or N% of the rows of each file, and count them. A file without one good row is an error all the same."`
	BadRowsTo  string           `name:"bad-rows-to" placeholder:"FILE" help:"Write every bad row into this file, one JSON object a line with file, row, lines, value and reason."`

	Bounds     boundFlags `embed:""`
	Force      bool       `help:"Publish although the guard refuses; needs --reason."`
	Accept     []string   `sep:"none" placeholder:"NAME:CHANGE" help:"Accept this change of one segment or set, which the guard would refuse: \"opted-out: -57%\", \"tz/Asia/Singapore: vanishes\"; needs --reason, may be repeated. Services that suppress the set take the change over. They refuse a generation in which the set vanishes until their configuration says no_longer_suppressed."`
	Reason     string     `help:"The reason for --force or --accept; the manifest records it, also when the guard refuses nothing."`
	SetsAnyway bool       `name:"sets-anyway" help:"If the guard refuses the build, publish the sets that only grow and that grew, such as new unsubscribes. The exit status is still that of the refusal."`
	DryRun     bool       `name:"dry-run" help:"Build and compare, publish nothing."`
	JSON       bool       `name:"json" help:"Report as JSON."`
	Place      place      `embed:""`
}

// Help is printed below the flags.
func (c *buildCommand) Help() string { return buildHelp }

// Run builds, compares with what is live, and publishes.
func (c *buildCommand) Run(ctx context.Context, on *terminal.Streams) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	ctx, cancel, location, err := c.Place.open(ctx, on, c.To)
	if err != nil {
		return err
	}
	defer cancel()
	report := &buildReport{Location: c.To, Status: "failed", forcing: c.Force, dryRun: c.DryRun}
	err = c.work(ctx, on, plan, location, report)
	if printErr := c.print(on, report); err == nil {
		err = printErr
	}
	return timedOut(ctx, err)
}

func (c *buildCommand) print(on *terminal.Streams, report *buildReport) error {
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	return report.print(on.Out)
}

// timedOut says why a context ended when that is why err happened.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return err
}

func (c *buildCommand) work(ctx context.Context, on *terminal.Streams, plan *build.Plan, location objects.Location,
	report *buildReport) error {
	session := &publish.Session{}
	var held, err error
	if !c.DryRun { // a publish looks for a hold again at its end
		held, err = session.Hold(ctx, location)
	}
	if err != nil {
		report.noteFailure(err)
		return err
	}
	report.held = held != nil
	show := terminal.NewProgress(on, terminal.Bytes)
	defer show.Stop()
	cfg := ingest.Config{S3: c.Place.s3(on), Stdin: on.In, Progress: show.Add}
	result, err := c.read(ctx, plan, cfg, show)
	report.noteResult(result)
	if err != nil {
		report.noteFailure(err)
		return err
	}
	show.Step("comparing with the live generation", 0)
	base, err := session.ReadLive(ctx, location)
	if err != nil {
		return err
	}
	found, err := c.guard(ctx, location, &plan.Bounds, result.Proposal(base), report)
	if found == nil {
		return err
	}
	show.Step("publishing", result.Candidate.SizeBytes())
	publisher := &publish.Publisher{Location: location, ToolVersion: toolVersion(),
		Uploaded: func(_ string, sizeBytes int64) { show.Add(sizeBytes, 0) }}
	switch {
	case held != nil:
		return c.publishSets(ctx, publisher, result.Candidate, base, found, report, held)
	case err != nil && c.SetsAnyway:
		return c.publishSets(ctx, publisher, result.Candidate, base, found, report, err)
	case err != nil:
		if base.Generation != nil {
			report.noteWaiting(found.Sets, base.Generation.Manifest, ": --sets-anyway publishes them")
		}
		return err
	case c.DryRun:
		report.Status = "dry run"
		return nil
	}
	published, err := publisher.Publish(ctx, result.Candidate, base, c.forcedBy())
	if on := new(publish.HoldError); errors.As(err, &on) { // since this build began
		return c.publishSets(ctx, publisher, result.Candidate, base, found, report, err)
	}
	if err != nil {
		report.noteFailure(err)
		return err
	}
	report.notePublished(published)
	return nil
}

// publishSets publishes the sets that only grew of a build that is stopped otherwise, and
// returns why it is.
func (c *buildCommand) publishSets(ctx context.Context, publisher *publish.Publisher, built *publish.Candidate,
	base *publish.LiveState, found *guard.Findings, report *buildReport, why error) error {
	report.noteFailure(why)
	report.Accepted = nil
	if base.Generation == nil {
		return why
	}
	only, grew := built.SetsThatGrew(base.Generation, func(set string) bool { return found.RefusedSets[set] })
	report.SetsThatGrew = grew
	report.noteWaiting(found.Sets, base.Generation.Manifest, "")
	if len(grew) == 0 || c.DryRun {
		return why
	}
	published, err := publisher.Publish(ctx, only, base, "")
	if err != nil {
		report.noteFailure(err)
		report.SetsThatGrew = nil
		return err
	}
	report.notePublished(published)
	report.Status = setsPublished
	return &partlyError{why}
}

// partlyError: sets that grew were published, and all else was not.
type partlyError struct{ error }

func (e *partlyError) Error() string {
	why, ok := strings.CutPrefix(e.error.Error(), "not published")
	if !ok {
		why = ": " + why
	}
	return "published the sets that grew, but not the rest" + why
}

func (e *partlyError) Unwrap() error { return e.error }

// forcedBy is what the manifest records: also when the guard refused nothing,
// for who says --force has looked.
func (c *buildCommand) forcedBy() string {
	if !c.Force {
		return ""
	}
	return c.Reason
}

// read reads and builds, and lists the bad rows, whether or not they are tolerated.
func (c *buildCommand) read(ctx context.Context, plan *build.Plan, cfg ingest.Config,
	show *terminal.Progress) (*build.Result, error) {
	closeList := func() error { return nil }
	if c.BadRowsTo != "" {
		list, err := newBadRowList(c.BadRowsTo)
		if err != nil {
			return nil, terminal.Misuse(fmt.Errorf("--bad-rows-to: %w", err))
		}
		cfg.BadRows, closeList = list.add, list.close
	}
	result, err := build.Run(ctx, plan, cfg, func(step string) { show.Step(step, 0) })
	if wrong := new(build.PlanError); errors.As(err, &wrong) {
		err = c.planFault(err)
	}
	if closeErr := closeList(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	return result, err
}

// planFault is a fault of what the flags say, or of the build file.
func (c *buildCommand) planFault(err error) error {
	if c.File == "" {
		return terminal.Misuse(err)
	}
	return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: %w", c.File, err))
}

// plan turns the flags, or the build file, into a plan.
func (c *buildCommand) plan() (*build.Plan, error) {
	base, err := c.input()
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	plan := &build.Plan{Order: c.Precedence, MaxBadRows: c.MaxBadRows,
		Bounds: guard.Bounds{MaxChange: guard.UsualMaxChange}}
	if c.File != "" {
		if _, err := build.Load(c.File, base, plan); err != nil {
			return nil, terminal.WithStatus(terminal.BadInput, err)
		}
		return plan, terminal.Misuse(errors.Join(onlyGrow(plan, c.OnlyGrows), c.Bounds.override(plan), c.accept(plan)))
	}
	for _, path := range c.Table {
		base.Path = path
		plan.Tables = append(plan.Tables, base)
	}
	err = errors.Join(addDefinitions(&plan.Segments, "--segment", c.Segment, base), c.addSets(plan, base))
	if err == nil {
		err = errors.Join(onlyGrow(plan, c.OnlyGrows), c.Bounds.override(plan), c.accept(plan))
	}
	return plan, terminal.Misuse(err)
}

// input is what the flags say of every input. It also refuses flags that do not go together.
func (c *buildCommand) input() (base ingest.Input, err error) {
	switch given := len(c.Segment) + len(c.Table) + len(c.Set) + len(c.SetTable); {
	case c.Force && strings.TrimSpace(c.Reason) == "":
		return base, errors.New("--force needs --reason \"…\": it is recorded in the manifest")
	case len(c.Accept) > 0 && strings.TrimSpace(c.Reason) == "":
		return base, errors.New("--accept needs --reason \"…\": it is recorded in the manifest")
	case c.File != "" && given > 0:
		return base, errors.New("give a build file or --segment, --set and tables, not both")
	case c.File == "" && given == 0:
		return base, errors.New("nothing to build: give --segment NAME=FILE, --table FILE or a build file")
	}
	base = ingest.Input{Format: c.Format, Header: c.Header, IDColumn: c.IDColumn, SegmentColumn: c.SegmentColumn,
		Quote: c.Quote, Escape: c.Escape, FinalNewline: c.FinalNewline}
	if c.Delimiter != "" {
		if err := base.SetDelimiter(c.Delimiter); err != nil {
			return base, fmt.Errorf("--delimiter %w", err)
		}
	}
	return base, nil
}

// addDefinitions adds what a flag says: each NAME once, with all its files.
func addDefinitions(to *[]build.Definition, flag string, args []string, base ingest.Input) error {
	index := map[string]int{}
	for _, arg := range args {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" || path == "" {
			return fmt.Errorf("%s %q: want NAME=FILE", flag, arg)
		}
		i, seen := index[name]
		if !seen {
			i = len(*to)
			index[name] = i
			*to = append(*to, build.Definition{Name: name, Publish: flag == setFlag})
		}
		base.Path = path
		(*to)[i].Inputs = append((*to)[i].Inputs, base)
	}
	return nil
}

const setFlag = "--set"

func (c *buildCommand) addSets(plan *build.Plan, base ingest.Input) error {
	for _, arg := range c.SetTable {
		prefix, path, ok := strings.Cut(arg, "=")
		if !ok || prefix == "" || path == "" {
			return fmt.Errorf("--set-table %q: want PREFIX/=FILE", arg)
		}
		base.Path = path
		plan.AddSetTable(prefix, base)
	}
	return addDefinitions(&plan.Sets, setFlag, c.Set, base)
}

const buildHelp = `Simple cases:

  segmentbuild build --to s3://segments/prod --segment new=new.csv --segment active='active/*.parquet'
  segmentbuild build --to var/segments --segment new=new.csv --set opted-out=out.csv \
    --only-grows opted-out --set-table tz/=zones.csv
  segmentbuild build --to var/segments --table users.csv.gz --precedence vip,active,new

With a build file, segments.yaml:

  segments:                       # in order of precedence
    - name: vip
      inputs: [vip.csv]
      max_change: 5%              # also max_week_change, min_users, max_users
    - name: active
      inputs:
        - path: s3://warehouse/active/*.parquet
          id_column: customer_id
          newer_than: 36h         # also min_files, min_rows
    - name: dormant               # everyone minus active
      union: [everyone]
      minus: [active, vip]
  sets:
    - name: everyone              # an ingredient, not published
      inputs: ["everyone-*.txt.zst"]
    - name: opted-out
      publish: true
      only_grows: true            # refused when more than 0.1% of its users leave
      inputs: [opted-out.csv]
  tables:
    - path: zones.csv             # user_id,timezone: a set tz/Asia/Singapore and so on
      set_prefix: tz/
  overlaps: precedence            # or error, the default
  max_bad_rows: 0
  allow_new: [dormant]            # may appear beside what is live
  accept:                         # this change passes once, and no other
    - {name: opted-out, change: "-57%", reason: the import of May was wrong}

  segmentbuild build --to s3://segments/prod segments.yaml --dry-run
`
