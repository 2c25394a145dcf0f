package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/audit/archive"
	"capper/internal/terminal"
)

// compactCommand is the command `capper audit compact`.
type compactCommand struct {
	Place
	Keep   moment `placeholder:"400d" help:"Remove audit files in which all calls are older than this age, such as 400d. Default: keep files of any age."`
	DryRun bool   `help:"Report how the command would change the audit files, but change nothing."`
	JSON   bool   `help:"Print the result as JSON."`
}

// The method Validate rejects a value of the flag --keep below one day.
func (c *compactCommand) Validate() error {
	if c.Keep.Given() && c.Keep.ago < 24*time.Hour {
		return errors.New("--keep must be at least one day, such as 400d")
	}
	return nil
}

// Help returns the help text below the flags.
func (c *compactCommand) Help() string {
	return "Rewrites audit files without the users who have been erased, and removes files older than --keep. " +
		"Services may write the audit, and other programs may read it, while the command runs. If the command is " +
		"interrupted, run it again."
}

// The method Run compacts the audit: Run removes old audit files, and removes erased users from the other files.
func (c *compactCommand) Run(ctx context.Context, on *terminal.Streams) error {
	at, err := c.location(ctx)
	if err != nil {
		return err
	}
	from, err := open(ctx, at)
	if err != nil {
		return err
	}
	report, err := archive.Compact(ctx, at, from, archive.CompactConfig{Keep: c.Keep.ago, Now: time.Now(),
		Dry: c.DryRun})
	if err != nil {
		return terminal.Hinted(err, "all finished changes are complete; remove the cause of the error and run the "+
			"command again")
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	would := ""
	if c.DryRun {
		would = "would be "
	}
	_, err = fmt.Fprintf(on.Out, "%d files: %d %srewritten (%d entries of erased users removed), %d %sexpired and "+
		"removed, %d leftovers %sremoved; %d bytes before, %d after\n",
		report.Files, report.Rewritten, would, report.Users, report.Dropped, would, report.Leftovers, would,
		report.Before, report.After)
	return err
}
