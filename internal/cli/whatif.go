package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/terminal"
	"capper/internal/whatif"
	"capper/internal/yamltree"
)

// WhatIfCommand is the command `capper whatif`.
type WhatIfCommand struct {
	Place
	Span
	Limits     string `placeholder:"FILE" help:"File with the limits to try: a capper configuration file, or a file with only these settings: 'channels', 'limits', 'suppress', 'quiet', 'holdout' and 'timezone'. Default: the limits that the service applied to each call."`
	Segments   string `placeholder:"DIR|s3://…" help:"Location of the published segments: a directory or s3://bucket/prefix. Default: segments.source in the file of --config."`
	Generation string `placeholder:"NAME" help:"Generation (published version of all segments and sets) that the command uses for every recorded call. Default: the generation that the service used for each call."`
	Campaigns  int    `placeholder:"N" default:"20" help:"Maximum number of campaigns to list."`
	HTML       string `name:"html" placeholder:"FILE" help:"HTML file in which the command also writes the result, with charts."`
	JSON       bool   `help:"Print the result as JSON."`
}

// Help returns the help text below the flags.
func (c *WhatIfCommand) Help() string {
	return "Replays the recorded calls in their order, for allowed and denied users, and shows how many sends other " +
		"limits or segments would have allowed. The command replays a retry after a denial as recorded, because it " +
		"cannot know how callers would have behaved under other limits. The command also replays calls before " +
		"--since, as far back as the longest window of a limit, but does not count their sends."
}

// The method Validate rejects invalid values and combinations of flags.
func (c *WhatIfCommand) Validate() error {
	switch {
	case c.Limits == "" && c.Generation == "":
		return errors.New(
			"set --limits to try other limits, or --generation to try another published version of segments and sets")
	case c.Generation != "" && !segments.IsGeneration(c.Generation):
		return fmt.Errorf("--generation %q must be a generation name such as 20261120T101500.000Z-0a1b2c3d",
			c.Generation)
	case c.Campaigns < 0:
		return errors.New("--campaigns must not be negative")
	}
	return nil
}

// The method Run prints the changes of the recorded decisions under other limits or other segments.
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
	cfg, err := c.replay(ctx, from, policy)
	if err != nil {
		return err
	}
	cfg.Since, cfg.Until = since, until
	result, faults, err := whatif.Replay(ctx, from, cfg)
	if err != nil {
		return err
	}
	return c.show(on, faults, result)
}

// The method "policy" reads the limits to try. If the command line lacks the flag --limits, the method "policy" returns
// nil. Without limits to try, the replay decides each call under the limits that were in force at the call.
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
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf(
			"%s: the limits are not valid (faults: %d)", c.Limits, len(faults.List)))
	}
	return policy, terminal.WithStatus(terminal.BadInput, err)
}

// The method "replay" returns the settings of the replay, which decides the recorded calls again under the limits to
// try.
func (c *WhatIfCommand) replay(ctx context.Context, from *archive.Archive, policy *capping.Policy) (whatif.Config,
	error) {
	read, err := c.generations(ctx, c.Segments, from.IDs())
	if err != nil {
		return whatif.Config{}, err
	}
	return whatif.Config{
		Policy: policy, Generation: c.Generation, Widen: c.widening(),
		Policies: func(version string) (*capping.Policy, error) {
			policy, err := from.Policy(ctx, version)
			return policy, terminal.WithStatus(terminal.BadInput, err)
		},
		Generations: func(name string) (capping.Segments, error) {
			found, err := read(ctx, name)
			switch gone := errors.Is(err, objects.ErrNotFound); {
			case gone && name == c.Generation:
				err = fmt.Errorf("--generation %s does not exist: %w", name, err)
				return nil, terminal.Misuse(terminal.Hinted(err, "segmentbuild list shows the existing generations"))
			case gone:
				err = terminal.Hinted(fmt.Errorf(
					"a recorded call used generation (published version) %s, which no longer exists: %w",
					name, err),
					"use --generation to name one existing generation for all calls; segmentbuild list shows them")
			}
			return found, terminal.WithStatus(terminal.BadInput, err)
		},
	}, nil
}

// The method "widening" returns the duration by which the configured store extends rolling windows, to allow for
// differing clocks.
func (p *Place) widening() time.Duration {
	if p.configured == nil || p.configured.Store.Kind != config.Redis {
		return 0
	}
	return 2 * p.configured.Store.Redis.Options.ClockSkew
}

// The method "show" prints the changes of the decisions under the limits to try.
func (c *WhatIfCommand) show(on *terminal.Streams, faults []error, result *whatif.Result) error {
	if c.HTML != "" {
		if err := c.writePage(result); err != nil {
			return err
		}
		on.Say("wrote %s", c.HTML)
	}
	var err error
	if c.JSON {
		err = terminal.JSON(on.Out, result)
	} else if result.Calls > 0 || len(faults) == 0 { // a damaged file may contain more calls
		err = c.print(on, result)
	}
	if err != nil {
		return err
	}
	return damaged(faults)
}

// The method "what" returns the title of the HTML page with the result. The title names the limits and segments to try.
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

// The function "aligned" returns a copy of a table's rows, and adds blanks before the numbers to align them to the
// right.
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
