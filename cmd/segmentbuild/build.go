package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type buildCommand struct {
	To         string   `required:"" placeholder:"LOCATION" help:"Location to publish to: a directory or s3://bucket/prefix."`
	File       string   `arg:"" optional:"" help:"YAML file that describes the build, instead of the flags --segment, --set, --set-table and --table."`
	Segment    []string `sep:"none" placeholder:"NAME=FILE" help:"Name of a segment, and a file with the ids of its users; may be repeated. FILE may be a file name pattern, an s3:// object or - for standard input."`
	Set        []string `sep:"none" placeholder:"NAME=FILE" help:"Name of a set, and a file with the ids of its users; may be repeated. A user may be in several sets. The set tz/Asia/Singapore, for example, contains the users in this time zone."`
	SetTable   []string `name:"set-table" sep:"none" placeholder:"PREFIX/=FILE" help:"Prefix of set names, and a file with a user id and the rest of a set name in each row. For example, 'tz/=zones.csv' with a row '7,Asia/Singapore' puts user 7 into the set 'tz/Asia/Singapore'."`
	OnlyGrows  []string `name:"only-grows" sep:"none" placeholder:"NAME[=0.1%]" help:"Name of a set that users normally never leave, such as a set of unsubscribed users, and the percentage of users who may leave. The command rejects this build, and also later builds, if more users leave. With --force, NAME=false removes the mark 'only-grows' from the set."`
	AsOf       []string `name:"as-of" sep:"none" placeholder:"SET=TIME" help:"Name of a set, and the time up to which its file contains all changes, such as opted-out=2026-11-23T02:00Z. For users whom API calls added or removed after this time, services ignore the file. country/* stands for all sets whose names begin with country/; may be repeated. Default: the time at which the newest input file of the set was written."`
	Table      []string `sep:"none" placeholder:"FILE" help:"File with a user id and a segment name in each row."`
	Precedence []string `placeholder:"NAME" help:"Names of all segments, in order of precedence: a user in several segments stays only in the segment that is named first. Required with --table; table rows with other segment names are invalid. Without this flag, a user in several segments is an error."`

	IDs        string     `name:"ids" enum:",dense,uint64,uuid,text" default:"" placeholder:"KIND" help:"Kind of the user ids: dense (0 to 4294967295), uint64, uuid or text. The first build to a location stores the kind there, and later builds cannot change the kind. Default: the kind of the location, or dense for a new location."`
	NoNames    bool       `name:"no-names" help:"Do not publish the original user ids of the kinds uuid and text. Without these ids, services can count and filter audiences, but cannot list the ids of users."`
	Input      inputFlags `embed:""`
	Bounds     boundFlags `embed:""`
	Approval   approval   `embed:""`
	SetsAnyway bool       `name:"sets-anyway" help:"If the safety checks reject the build, still publish the new users of sets marked 'only-grows' (sets that users normally never leave), such as users who unsubscribed. The exit status still reports the rejection."`
	DryRun     bool       `name:"dry-run" help:"Build segments and sets and compare them with the published segments and sets, but publish nothing."`
	JSON       bool       `name:"json" help:"Print the report as JSON."`
	Place      place      `embed:""`
}

// Help returns the text below the flags in the help of the command.
func (c *buildCommand) Help() string { return buildHelp }

// The method Run builds a generation (published version) from the inputs, compares this generation with the live one,
// and publishes it.
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
	report := &buildReport{Location: c.To, Status: "failed", forcing: c.Approval.Force, dryRun: c.DryRun}
	err = c.work(ctx, on, plan, location, report)
	if printErr := report.printAs(on.Out, c.JSON); err == nil {
		err = printErr
	}
	return timedOut(ctx, err)
}

// timedOut adds the reason for the end of the context to the error, if the context has ended.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return err
}

func (c *buildCommand) work(ctx context.Context, on *terminal.Streams, plan *ingest.Plan, location objects.Location,
	report *buildReport) error {
	p := &publication{Approval: c.Approval, setsAnyway: c.SetsAnyway, dryRun: c.DryRun, location: location,
		bounds: &plan.Bounds, report: report, waiting: ": --sets-anyway publishes them"}
	if err := p.begin(ctx); err != nil {
		return err
	}
	scheme, err := c.scheme(ctx, location)
	if err != nil {
		report.noteFailure(err)
		return err
	}
	show := terminal.NewProgress(on, terminal.Bytes)
	defer show.Stop()
	cfg := ingest.Config{S3: c.Place.s3(on), Stdin: on.In, Progress: show.Add, Scheme: scheme,
		Names: !c.NoNames}
	result, err := c.read(ctx, plan, cfg, show)
	report.noteResult(result)
	if err != nil {
		report.noteFailure(err)
		return err
	}
	p.session.Numbering = result.Candidate.Dictionary
	return p.publish(ctx, show, &overLive{result: result})
}

// The method scheme returns the kind and hash key of the user ids at a location. For dense ids (32-bit integers), the
// result is nil.
func (c *buildCommand) scheme(ctx context.Context, location objects.Location) (*ids.Scheme, error) {
	var wanted *ids.Kind
	if c.IDs != "" {
		kind, err := ids.ParseKind(c.IDs)
		if err != nil {
			return nil, terminal.Misuse(fmt.Errorf("--ids %w", err))
		}
		wanted = &kind
	}
	is, err := publish.ReadIDs(ctx, location, wanted)
	if err != nil {
		return nil, err
	}
	return is.Scheme, nil
}

// The type overLive is the result of a build of all segments and sets, which will replace the live generation
// (published version in use).
type overLive struct{ result *ingest.Result }

func (o *overLive) read(ctx context.Context, session *publish.Session,
	at objects.Location) (*publish.LiveState, error) {
	return session.ReadLive(ctx, at)
}

func (o *overLive) propose(base *publish.LiveState, report *buildReport) (*publish.Proposal, error) {
	p := o.result.Proposal(base)
	var err error
	p.Candidate, p.Base, report.Kept, err = p.Candidate.KeepAmended(base)
	if err != nil {
		return nil, err
	}
	report.noteIDs(o.result, p.Candidate)
	return p, nil
}

// mayRepeat reports whether other processes have published only amends since the build was compared with the live
// generation. An amend is a publish that changes some sets and no segments.
func (o *overLive) mayRepeat(ctx context.Context, at objects.Source, before, now *publish.LiveState) (bool, error) {
	return now.AmendedSince(ctx, at, before)
}

// The method "read" reads the input files and builds the segments and sets. For an invalid build plan, the method
// "read" adds an exit status to the error.
func (c *buildCommand) read(ctx context.Context, plan *ingest.Plan, cfg ingest.Config,
	show *terminal.Progress) (*ingest.Result, error) {
	result, err := c.Input.read(ctx, plan, cfg, show)
	if wrong := new(ingest.PlanError); errors.As(err, &wrong) {
		err = c.planFault(err)
	}
	return result, err
}

// planFault adds an exit status to the error about an invalid build plan: the status for wrong flags, or for an invalid
// build file.
func (c *buildCommand) planFault(err error) error {
	if c.File == "" {
		return terminal.Misuse(err)
	}
	return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: %w", c.File, err))
}

// The method "plan" returns the build plan (definitions of the segments and sets) from the flags or from the build
// file.
func (c *buildCommand) plan() (*ingest.Plan, error) {
	base, err := c.input()
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	plan := &ingest.Plan{Order: c.Precedence, MaxBadRows: c.Input.MaxBadRows,
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

// The method "refine" applies the command-line flags that change the rules for segments and sets of the plan.
func (c *buildCommand) refine(plan *ingest.Plan) error {
	return errors.Join(onlyGrow(plan, c.OnlyGrows), setAsOf(plan, c.AsOf), c.Bounds.override(plan),
		c.Approval.accept(plan))
}

// setAsOf stores the as-of times (times up to which a set reflects all changes) from the flags --as-of in the plan.
func setAsOf(plan *ingest.Plan, list []string) error {
	for _, arg := range list {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" || text == "" {
			return fmt.Errorf("--as-of %q must have the form SET=TIME, such as opted-out=2026-11-23T02:00Z", arg)
		}
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

// The method "input" returns the settings for all input files from the flags. The method "input" rejects invalid
// combinations of flags.
func (c *buildCommand) input() (base ingest.Input, err error) {
	if err := c.Approval.check(); err != nil {
		return base, err
	}
	switch given := len(c.Segment) + len(c.Table) + len(c.Set) + len(c.SetTable); {
	case c.File != "" && given > 0:
		return base, errors.New("give either a build file or flags (--segment, --table, --set, --set-table), not both")
	case c.File == "" && given == 0:
		return base, errors.New("nothing to build: give --segment NAME=FILE, --table FILE or a build file")
	}
	return c.Input.input(), nil
}

// addDefinitions adds the segments or sets that a flag defines as NAME=FILE to the plan. If the flag names several
// files with the same NAME, the files together form one segment or set.
func addDefinitions(to *[]ingest.Definition, flag string, args []string, base ingest.Input) error {
	index := map[string]int{}
	for _, arg := range args {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" || path == "" {
			return fmt.Errorf("%s %q must have the form NAME=FILE", flag, arg)
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
			return fmt.Errorf("--set-table %q must have the form PREFIX/=FILE", arg)
		}
		base.Path = path
		plan.AddSetTable(prefix, base)
	}
	return addDefinitions(&plan.Sets, setFlag, c.Set, base)
}

const buildHelp = `Examples:

  segmentbuild build --to s3://segments/prod --segment new=new.csv --segment active='active/*.parquet'
  segmentbuild build --to var/segments --segment new=new.csv --set opted-out=out.csv \
    --only-grows opted-out --set-table tz/=zones.csv
  segmentbuild build --to var/segments --table users.csv.gz --precedence vip,active,new
  segmentbuild build --to var/segments --ids uuid --segment vip=vip.parquet

Example of a build file, segments.yaml:

  segments:                       # in order of precedence
    - name: vip
      inputs: [vip.csv]
      max_change: 5%              # also max_week_change, min_users, max_users
    - name: active
      inputs:
        - path: s3://warehouse/active/*.parquet
          id_column: customer_id
          newer_than: 36h         # also min_files, min_rows
    - name: dormant               # everyone except active and vip
      union: [everyone]
      minus: [active, vip]
  sets:
    - name: everyone              # other definitions use this set; not published
      inputs: ["everyone-*.txt.zst"]
    - name: opted-out
      publish: true
      only_grows: true            # rejected if more than 0.1% of its users leave
      inputs: [opted-out.csv]
  tables:
    - path: zones.csv             # columns user_id,timezone: sets such as tz/Asia/Singapore
      set_prefix: tz/
  overlaps: precedence            # or error, the default
  max_bad_rows: 0
  allow_new: [dormant]            # names that this build may publish as new
  accept:                         # accepts only this change, in one build
    - {name: opted-out, change: "-57%", reason: the import of May was wrong}

  segmentbuild build --to s3://segments/prod segments.yaml --dry-run
`
