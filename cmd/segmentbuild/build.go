package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/format"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type buildCommand struct {
	To         string   `required:"" placeholder:"LOCATION" help:"Location to publish to: a directory or s3://bucket/prefix."`
	File       string   `arg:"" optional:"" help:"Build file in YAML, used instead of --segment, --set and table flags."`
	Segment    []string `sep:"none" placeholder:"NAME=FILE" help:"Name of a segment and a file of its user ids; may be repeated. FILE may be a pattern, an s3:// object or - for standard input. A user in several segments stays in the segment that is named first."`
	Set        []string `sep:"none" placeholder:"NAME=FILE" help:"Name of a set and a file of its user ids; may be repeated. Sets may overlap segments and other sets. tz/Asia/Singapore is the set of users in that time zone."`
	SetTable   []string `name:"set-table" sep:"none" placeholder:"PREFIX/=FILE" help:"Prefix of sets and a file with the columns user id and set name, such as tz/=zones.csv with user_id,timezone: every name in the file becomes a set."`
	OnlyGrows  []string `name:"only-grows" sep:"none" placeholder:"NAME[=0.1%]" help:"Name of a set that users normally never leave, such as unsubscribed users, and the share that may leave; a build that removes more is rejected, also later. NAME=false, with --force, ends the protection."`
	AsOf       []string `name:"as-of" sep:"none" placeholder:"SET=TIME" help:"Name of a set and the time up to which its file contains every change, such as opted-out=2026-11-23T02:00Z; country/* names all sets of a folder; may be repeated. Services prefer changes by call after this time to the file. Default: the time at which the newest input file of the set was written."`
	Table      []string `sep:"none" placeholder:"FILE" help:"File with a user id and a segment name in each row."`
	Precedence []string `placeholder:"NAME" help:"All segment names in order of precedence: a user in several segments stays in the first one. Required with --table, where a row with another name is a bad row. Without this flag, overlapping segments are an error."`

	Format        ingest.Format       `enum:",${formats}" default:"" placeholder:"FORMAT" help:"Format of the input files: ${formats}. Default: detected from file name and content; gzip and zstd are always detected."`
	IDColumn      string              `name:"id-column" placeholder:"NAME|N" help:"Column that holds the user id, by name or by number starting at 1."`
	SegmentColumn string              `name:"segment-column" placeholder:"NAME|N" help:"Column of a table that holds the segment name, by name or by number starting at 1."`
	Delimiter     string              `placeholder:"C" help:"Delimiter between columns: one byte."`
	Header        format.Header       `enum:",yes,no" default:"" placeholder:"yes|no" help:"Whether the first row of CSV, TSV and text files is a header (yes, no). Default: yes if a column is selected by name, or if the row holds no number but a name such as user_id."`
	Quote         format.Mark         `placeholder:"C" help:"Quote character around fields of CSV and TSV files: one byte, or none. Default: a double quote in CSV, none in TSV."`
	Escape        format.Mark         `placeholder:"C" help:"Escape character before delimiters, quotes and line breaks in CSV and TSV files: one byte, or none. Default: none in CSV, a backslash in TSV."`
	FinalNewline  ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text file must end in a line break (required, optional). Default: required for files above 16 KiB, where a missing line break is the only sign of a truncated file."`

	MaxBadRows ingest.Tolerance `name:"max-bad-rows" placeholder:"N|N%" help:"Maximum number of bad rows in all files together (N), or in each file as a share of its rows (N%); they are skipped and counted. A file without a valid row is always an error."`
	BadRowsTo  string           `name:"bad-rows-to" placeholder:"FILE" help:"File that receives every bad row, one JSON object per line with file, row, lines, value and reason."`

	Bounds     boundFlags `embed:""`
	Force      bool       `help:"Publish even if the guard rejects the build; needs --reason."`
	Accept     []string   `sep:"none" placeholder:"NAME:CHANGE" help:"One change of a segment or set to accept although the guard rejects it, such as 'opted-out: -57%' or 'tz/Asia/Singapore: vanishes'; needs --reason; may be repeated. Services that suppress the set accept the change too; but they reject a generation without the set until their configuration lists it in no_longer_suppressed."`
	Reason     string     `help:"Reason for --force or --accept; it is always recorded in the manifest of the generation."`
	SetsAnyway bool       `name:"sets-anyway" help:"If the guard rejects the build, still publish new users of sets declared only-grows, such as new unsubscribes. The exit status is still that of the rejection."`
	DryRun     bool       `name:"dry-run" help:"Build the generation and compare it with the live one, but publish nothing."`
	JSON       bool       `name:"json" help:"Print the report as JSON."`
	Place      place      `embed:""`
}

// Help returns the text below the flags.
func (c *buildCommand) Help() string { return buildHelp }

// Run builds a generation, compares it with the live one, and publishes it.
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

// timedOut returns the context's cause if the end of the context caused err.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return err
}

func (c *buildCommand) work(ctx context.Context, on *terminal.Streams, plan *ingest.Plan, location objects.Location,
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

// publishSets publishes only the sets that only grow, after a guard has stopped the rest of the build. publishSets
// returns the reason for the stop.
func (c *buildCommand) publishSets(ctx context.Context, publisher *publish.Publisher, built *publish.Candidate,
	base *publish.LiveState, found *publish.Findings, report *buildReport, why error) error {
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

// partlyError reports that only the sets that grew were published.
type partlyError struct{ error }

func (e *partlyError) Error() string {
	why, ok := strings.CutPrefix(e.error.Error(), "not published")
	if !ok {
		why = ": " + why
	}
	return "published the sets that grew, but not the rest" + why
}

func (e *partlyError) Unwrap() error { return e.error }

// forcedBy returns the reason that the manifest records for --force. The reason is recorded even if the guard
// rejected nothing, because the user of --force has accepted all findings.
func (c *buildCommand) forcedBy() string {
	if !c.Force {
		return ""
	}
	return c.Reason
}

// read reads the inputs, builds the segments, and lists the bad rows, including tolerated ones.
func (c *buildCommand) read(ctx context.Context, plan *ingest.Plan, cfg ingest.Config,
	show *terminal.Progress) (*ingest.Result, error) {
	closeList := func() error { return nil }
	if c.BadRowsTo != "" {
		list, err := newBadRowList(c.BadRowsTo)
		if err != nil {
			return nil, terminal.Misuse(fmt.Errorf("--bad-rows-to: %w", err))
		}
		cfg.BadRows, closeList = list.add, list.close
	}
	result, err := ingest.Run(ctx, plan, cfg, func(step string) { show.Step(step, 0) })
	if wrong := new(ingest.PlanError); errors.As(err, &wrong) {
		err = c.planFault(err)
	}
	if closeErr := closeList(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	return result, err
}

// planFault returns the exit error for a fault in the flags or in the build file.
func (c *buildCommand) planFault(err error) error {
	if c.File == "" {
		return terminal.Misuse(err)
	}
	return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: %w", c.File, err))
}

// plan returns the build plan from the flags or from the build file.
func (c *buildCommand) plan() (*ingest.Plan, error) {
	base, err := c.input()
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	plan := &ingest.Plan{Order: c.Precedence, MaxBadRows: c.MaxBadRows,
		Bounds: publish.Bounds{MaxChange: publish.UsualMaxChange}}
	if c.File != "" {
		if _, err := ingest.Load(c.File, base, plan); err != nil {
			return nil, terminal.WithStatus(terminal.BadInput, err)
		}
		return plan, terminal.Misuse(c.refine(plan))
	}
	for _, path := range c.Table {
		base.Path = path
		plan.Tables = append(plan.Tables, base)
	}
	err = errors.Join(addDefinitions(&plan.Segments, "--segment", c.Segment, base), c.addSets(plan, base))
	if err == nil {
		err = c.refine(plan)
	}
	return plan, terminal.Misuse(err)
}

// refine adds the flags that refer to segments and sets of the plan by name.
func (c *buildCommand) refine(plan *ingest.Plan) error {
	return errors.Join(onlyGrow(plan, c.OnlyGrows), setAsOf(plan, c.AsOf), c.Bounds.override(plan), c.accept(plan))
}

// setAsOf sets the times of the flag --as-of.
func setAsOf(plan *ingest.Plan, list []string) error {
	for _, arg := range list {
		name, text, _ := strings.Cut(arg, "=")
		at, err := publish.ParseAsOf(text, time.Now())
		if err == nil {
			err = plan.SetAsOf(name, at)
		}
		if err != nil {
			return fmt.Errorf("--as-of %q: %w", arg, err)
		}
	}
	return nil
}

// input returns the settings that the flags give to every input. input also rejects contradictory flags.
func (c *buildCommand) input() (base ingest.Input, err error) {
	switch given := len(c.Segment) + len(c.Table) + len(c.Set) + len(c.SetTable); {
	case c.Force && strings.TrimSpace(c.Reason) == "":
		return base, errors.New("--force requires --reason \"…\", which is recorded in the manifest")
	case len(c.Accept) > 0 && strings.TrimSpace(c.Reason) == "":
		return base, errors.New("--accept requires --reason \"…\", which is recorded in the manifest")
	case c.File != "" && given > 0:
		return base, errors.New("give either a build file or --segment, --set and table flags, not both")
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

// addDefinitions adds the definitions of a flag: each NAME once, with all its files.
func addDefinitions(to *[]ingest.Definition, flag string, args []string, base ingest.Input) error {
	index := map[string]int{}
	for _, arg := range args {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" || path == "" {
			return fmt.Errorf("%s %q: must have the form NAME=FILE", flag, arg)
		}
		i, seen := index[name]
		if !seen {
			i = len(*to)
			index[name] = i
			*to = append(*to, ingest.Definition{Name: name, Publish: flag == setFlag})
		}
		base.Path = path
		(*to)[i].Inputs = append((*to)[i].Inputs, base)
	}
	return nil
}

const setFlag = "--set"

func (c *buildCommand) addSets(plan *ingest.Plan, base ingest.Input) error {
	for _, arg := range c.SetTable {
		prefix, path, ok := strings.Cut(arg, "=")
		if !ok || prefix == "" || path == "" {
			return fmt.Errorf("--set-table %q: must have the form PREFIX/=FILE", arg)
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
