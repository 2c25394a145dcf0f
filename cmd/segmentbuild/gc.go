package main

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/segments/publish"
)

type gcCommand struct {
	Keep   int           `required:"" placeholder:"N" help:"Generations to keep, the newest; the live one stays in any case."`
	Grace  time.Duration `default:"24h" help:"Nothing younger than this is removed."`
	Lease  time.Duration `default:"30s" help:"How long a gc that was killed while it removed may hold up builds and rollbacks."`
	Delete bool          `help:"Remove; without this nothing is, and what would be is shown."`
	DryRun bool          `name:"dry-run" help:"Remove nothing: what happens without --delete."`
	at     `embed:""`
}

type gcReport struct {
	Removed bool `json:"done"`
	*publish.Garbage
}

// Run shows, and with --delete removes, what nobody needs any more.
func (c *gcCommand) Run(e *env) error {
	if c.Keep < 1 {
		return usageError{fmt.Errorf("--keep %d: must be at least 1", c.Keep)}
	}
	if c.Lease <= 0 {
		return usageError{fmt.Errorf("--lease %s: must be more than 0", c.Lease)}
	}
	if c.Delete && c.DryRun {
		return usageError{fmt.Errorf("give --delete or --dry-run, not both")}
	}
	ctx, cancel, store, err := c.Place.open(e, c.At)
	if err != nil {
		return err
	}
	defer cancel()
	collector := &publish.Collector{Location: store, Keep: c.Keep, Grace: c.Grace, Lease: c.Lease}
	work := collector.Find
	if c.Delete {
		work = collector.Remove
	}
	garbage, err := work(ctx)
	if garbage == nil {
		return timedOut(ctx, err)
	}
	return errors.Join(timedOut(ctx, err), c.report(e, garbage)) // what is gone is said in any case
}

func (c *gcCommand) report(e *env, garbage *publish.Garbage) error {
	if c.JSON {
		return e.printJSON(gcReport{Removed: c.Delete, Garbage: garbage})
	}
	return c.print(e, garbage)
}

func (c *gcCommand) print(e *env, garbage *publish.Garbage) error {
	verb := "would remove"
	if c.Delete {
		verb = "removed"
	}
	for _, o := range garbage.Objects {
		fmt.Fprintf(e.stdout, "%s %s (%d bytes, stored %s)\n", verb, o.Key, o.SizeBytes, o.ChangedAt.UTC().Format(time.RFC3339))
	}
	_, err := fmt.Fprintf(e.stdout, "%s %d generations, %d objects, %d bytes; kept %d generations\n",
		verb, len(garbage.Generations), len(garbage.Objects), garbage.SizeBytes, len(garbage.Kept))
	if err == nil && !c.Delete && len(garbage.Objects) > 0 {
		fmt.Fprintln(e.stderr, "segmentbuild: hint: the same with --delete removes them")
	}
	return err
}
