package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type gcCommand struct {
	Keep   int           `required:"" placeholder:"N" help:"Number of newest generations (published versions) to keep. The command always keeps the generation that services use."`
	Grace  time.Duration `default:"24h" help:"Minimum age of the generations (published versions) and bitmap files that the command may remove."`
	Lease  time.Duration `default:"30s" help:"If this command is killed while it removes files, builds and rollbacks wait at most this time before they publish."`
	Delete bool          `help:"Remove old generations (published versions). Without --delete, the command only lists the old generations."`
	DryRun bool          `name:"dry-run" help:"List the old generations (published versions) that --delete would remove, but remove nothing. The command does the same if neither --delete nor --dry-run is set."`
	at     `embed:""`
}

type gcReport struct {
	Removed bool `json:"done"`
	*publish.Garbage
}

// The method Run lists the objects at a location that are no longer needed: old generations, and bitmaps and
// dictionaries that no generation uses. With the flag --delete, Run also removes the objects that are no longer needed.
func (c *gcCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if c.Keep < 1 {
		return terminal.Misuse(fmt.Errorf("--keep %d must be at least 1", c.Keep))
	}
	if c.Lease <= 0 {
		return terminal.Misuse(fmt.Errorf("--lease %s: the duration must be more than 0", c.Lease))
	}
	if c.Delete && c.DryRun {
		return terminal.Misuse(fmt.Errorf("give --delete or --dry-run, not both"))
	}
	ctx, cancel, location, err := c.openThere(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	collector := &publish.Collector{Location: location, Keep: c.Keep, Grace: c.Grace, Lease: c.Lease}
	work := collector.Find
	if c.Delete {
		work = collector.Remove
	}
	garbage, err := work(ctx)
	if garbage == nil {
		return timedOut(ctx, notThere(err))
	}
	if err == nil && len(garbage.Kept)+len(garbage.Objects) == 0 {
		if err := mustBeThere(ctx, location); err != nil {
			return timedOut(ctx, err)
		}
	}
	return errors.Join(timedOut(ctx, err), c.report(on, garbage)) // report removed objects even after an error
}

func (c *gcCommand) report(on *terminal.Streams, garbage *publish.Garbage) error {
	if c.JSON {
		return terminal.JSON(on.Out, gcReport{Removed: c.Delete, Garbage: garbage})
	}
	return c.print(on, garbage)
}

func (c *gcCommand) print(on *terminal.Streams, garbage *publish.Garbage) error {
	verb := "would remove"
	if c.Delete {
		verb = "removed"
	}
	for _, o := range garbage.Objects {
		fmt.Fprintf(on.Out, "%s %s (%d bytes, stored %s)\n", verb, o.Key, o.SizeBytes,
			o.ChangedAt.UTC().Format(time.RFC3339))
	}
	_, err := fmt.Fprintf(on.Out, "%s %s, %s, %d bytes; kept %s\n", verb,
		terminal.Count(len(garbage.Generations), "generation", "generations"),
		terminal.Count(len(garbage.Objects), "object", "objects"), garbage.SizeBytes,
		terminal.Count(len(garbage.Kept), "generation", "generations"))
	if err == nil && !c.Delete && len(garbage.Objects) > 0 {
		on.Say("hint: add --delete to remove them")
	}
	return err
}
