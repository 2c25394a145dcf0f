package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/terminal"
	"capper/internal/whatif"
	"capper/internal/yamltree"
)

// WhatIfCommand is the command `capper whatif`.
type WhatIfCommand struct {
	Place
	Span
	Limits     string `placeholder:"FILE" help:"File with the limits to try: a capper.yaml, or a file with only channels, limits, suppress, quiet, holdout and timezone. Default: the limits that were in force at each call."`
	Segments   string `placeholder:"DIR|s3://…" help:"Location of the published generations. Default: segments.source of --config."`
	Generation string `placeholder:"NAME" help:"Generation whose segments are used for every call. Default: the generation that each call recorded."`
	Campaigns  int    `placeholder:"N" default:"20" help:"Maximum number of campaigns to list."`
	HTML       string `name:"html" placeholder:"FILE" help:"HTML file for the result with charts, in addition to the printed result."`
	JSON       bool   `help:"Print the result as JSON."`
}

// Help returns the text below the flags.
func (c *WhatIfCommand) Help() string {
	return "Replays the recorded calls in order, including denied users, and shows the sends that other limits " +
		"would have allowed. Retries after a denial are replayed as recorded; the command cannot know how callers " +
		"would have behaved under other limits. Calls before --since are replayed, as far back as the longest " +
		"window, but not counted."
}

// Validate rejects contradictory flags.
func (c *WhatIfCommand) Validate() error {
	switch {
	case c.Limits == "" && c.Generation == "":
		return errors.New("whatif: set --limits to try other limits, or --generation to try other segments")
	case c.Campaigns < 0:
		return errors.New("--campaigns: must not be negative")
	}
	return nil
}

// Run prints how the decisions would have changed.
func (c *WhatIfCommand) Run(ctx context.Context, on *terminal.Streams) error {
	since, until, err := c.instants(time.Now())
	if err != nil {
		return terminal.Misuse(err)
	}
	policy, err := c.policy(on)
	if err != nil {
		return err
	}
	if c.HTML != "" {
		if err := terminal.CheckTarget(c.HTML); err != nil {
			return terminal.Misuse(err)
		}
	}
	at, err := c.location(ctx)
	if err != nil {
		return err
	}
	from, err := open(ctx, at)
	if err != nil {
		return err
	}
	w := &whatIf{reading: reading{archive: from}, at: at, since: since, until: until}
	cfg, err := c.replay(ctx, w, policy)
	if err != nil {
		return err
	}
	result, err := w.run(ctx, cfg)
	if err != nil {
		return err
	}
	return c.show(on, w, result)
}

// policy reads the alternative limits. policy returns nil if the limits in force apply.
func (c *WhatIfCommand) policy(on *terminal.Streams) (*capping.Policy, error) {
	if c.Limits == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Limits)
	if err != nil {
		return nil, terminal.WithStatus(terminal.BadInput, err)
	}
	policy, err := config.ParsePolicy(text)
	var faults *yamltree.Faults
	if errors.As(err, &faults) {
		faults.File = c.Limits
		fmt.Fprintln(on.Out, faults)
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: %d faults: the limits are not valid",
			c.Limits,
			len(faults.List)))
	}
	return policy, terminal.WithStatus(terminal.BadInput, err)
}

// replay returns the settings of the replay.
func (c *WhatIfCommand) replay(ctx context.Context, w *whatIf, policy *capping.Policy) (whatif.Config, error) {
	segments, err := c.generations(ctx, c.Segments, w.archive.IDs())
	if err != nil {
		return whatif.Config{}, err
	}
	return whatif.Config{
		Policy: policy, Generation: c.Generation, Widen: c.widening(), Since: w.since, Until: w.until,
		Policies: func(version string) (*capping.Policy, error) {
			policy, err := w.archive.Policy(ctx, version)
			return policy, terminal.WithStatus(terminal.BadInput, err)
		},
		Generations: func(name string) (capping.Segments, error) {
			found, err := segments(ctx, name)
			if errors.Is(err, objects.ErrNotFound) {
				err = terminal.Hinted(fmt.Errorf("generation %s, which a recorded call used, no longer exists: %w",
					name, err),
					"use --generation to name one existing generation for all calls; segmentbuild list shows them")
			}
			return found, terminal.WithStatus(terminal.BadInput, err)
		},
	}, nil
}

// widening returns the time by which rolling windows are longer, from the clock tolerance of the configured store.
func (p *Place) widening() time.Duration {
	if p.configured == nil || p.configured.Store.Kind != config.Redis {
		return 0
	}
	return 2 * p.configured.Store.Redis.Options.ClockSkew
}

// show prints the result.
func (c *WhatIfCommand) show(on *terminal.Streams, w *whatIf, result *whatif.Result) error {
	if c.HTML != "" {
		if err := c.writePage(result); err != nil {
			return err
		}
		on.Say("wrote %s", c.HTML)
	}
	var err error
	if c.JSON {
		err = terminal.JSON(on.Out, result)
	} else if result.Calls > 0 || len(w.faults) == 0 { // a damaged file may contain more calls
		err = c.print(on, result)
	}
	if err != nil {
		return err
	}
	return damaged(w.faults)
}

// what returns the title of the page: the question that the replay answers.
func (c *WhatIfCommand) what() string {
	switch {
	case c.Generation == "":
		return c.Limits
	case c.Limits == "":
		return "generation " + c.Generation
	}
	return c.Limits + ", generation " + c.Generation
}

func (c *WhatIfCommand) writePage(result *whatif.Result) error {
	var page bytes.Buffer
	if err := whatif.Page(&page, c.what(), result, c.Campaigns); err != nil {
		return err
	}
	file, err := terminal.CreateFile(c.HTML)
	if err != nil {
		return err
	}
	defer file.Abort()
	if _, err := file.Write(page.Bytes()); err != nil {
		return err
	}
	return file.Commit()
}

func (c *WhatIfCommand) print(on *terminal.Streams, result *whatif.Result) error {
	for _, line := range whatif.Sentences(result) {
		fmt.Fprintln(on.Out, terminal.Escape(line))
	}
	for _, t := range whatif.Tables(result, c.Campaigns) {
		if result.Calls == 0 || len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(on.Out, "\n%s\n", strings.ToUpper(t.Title))
		if err := terminal.Table(on.Out, terminal.Left, aligned(t)...); err != nil {
			return err
		}
	}
	return nil
}

// aligned returns the rows of a table with the numbers aligned to the right.
func aligned(t whatif.Table) (rows [][]any) {
	all := append([][]string{t.Head}, t.Rows...)
	widths := make([]int, len(t.Head))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range all {
		var cells []any
		for i, cell := range row {
			if i > 0 {
				cell = strings.Repeat(" ", widths[i]-len([]rune(cell))) + cell
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

// whatIf is a replay of an audit.
type whatIf struct {
	reading
	at           objects.Location
	since, until capping.Instant
}

// run replays the records. run begins as far back as any limit looks.
func (w *whatIf) run(ctx context.Context, cfg whatif.Config) (*whatif.Result, error) {
	longest, err := w.longest(ctx, cfg)
	if err != nil {
		return nil, err
	}
	from := max(0, w.since-capping.Instant(longest.Milliseconds()))
	if w.since == 0 {
		from = 0
	}
	result, err := whatif.Run(ctx, w.records(ctx, archive.Query{Since: from, Until: w.until}), cfg)
	if err != nil {
		return nil, err
	}
	if w.since > 0 {
		result.Since, result.Warm = w.since.Time(), from.Time()
	}
	if w.until > 0 {
		result.Until = w.until.Time()
	}
	begins, err := w.begins(ctx, result)
	if knows := begins + capping.Instant(longest.Milliseconds()); err == nil && result.Calls > 0 && begins > from &&
		knows > w.since {
		result.Notes = append(result.Notes, fmt.Sprintf("results of the first %s after %s, where the audit begins, "+
			"may differ: limits count earlier sends that the audit does not contain",
			days(longest), begins.Time().Format(time.RFC3339)))
	}
	for _, fault := range w.faults {
		result.Notes = append(result.Notes, "not read: "+fault.Error())
	}
	return result, err
}

// days formats a duration in whole days, if it is a number of days.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return capping.Span(d)
	}
	return fmt.Sprintf("%d days", int((d+24*time.Hour-1)/(24*time.Hour)))
}

// begins returns the time of the audit's first record: of all records, or of the records that were read.
func (w *whatIf) begins(ctx context.Context, result *whatif.Result) (capping.Instant, error) {
	first := capping.InstantOf(result.Begins)
	instances, err := w.archive.Instances(ctx)
	for _, instance := range instances {
		if instance.Files > 0 {
			first = min(first, instance.First)
		}
	}
	return first, err
}

// longest returns the longest time that any limit looks back, among the alternative limits and the limits in the
// audit.
func (w *whatIf) longest(ctx context.Context, cfg whatif.Config) (longest time.Duration, err error) {
	if cfg.Policy != nil {
		longest = cfg.Policy.Retention(cfg.Widen)
	}
	found, err := w.at.List(ctx, audit.PoliciesPrefix)
	for _, o := range found {
		version, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, audit.PoliciesPrefix), ".yaml")
		if !ok {
			continue
		}
		// An unreadable policy causes an error later, when a record names it.
		if policy, err := w.archive.Policy(ctx, version); err == nil {
			longest = max(longest, policy.Retention(cfg.Widen))
		}
	}
	return longest, err
}

// records yields the readable records and keeps the errors of unreadable files in faults.
func (w *whatIf) records(ctx context.Context, q archive.Query) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		stopped := errors.New("enough")
		err := w.each(ctx, q, func(r *audit.Record) error {
			if !yield(r, nil) {
				return stopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(nil, err)
		}
	}
}
