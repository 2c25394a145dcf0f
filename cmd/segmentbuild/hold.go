package main

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/console"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

type releaseHoldCommand struct {
	at `embed:""`
}

type releaseHoldReport struct {
	Released *publish.Hold `json:"released"` // null when there was no hold
}

// Run ends a hold.
func (c *releaseHoldCommand) Run(e *env) error {
	ctx, cancel, store, err := c.Place.open(e, c.At)
	if err != nil {
		return err
	}
	defer cancel()
	hold, err := (&publish.Publisher{Location: store}).ReleaseHold(ctx)
	if errors.Is(err, segments.ErrNothingLive) {
		return hinted{fmt.Errorf("there is no hold at %s, and nothing is published there: %w", c.At, err), "look whether --at names the location that builds publish to"}
	}
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return e.printJSON(releaseHoldReport{hold})
	}
	if hold == nil {
		_, err = fmt.Fprintf(e.stdout, "publishing to %s is not on hold\n", c.At)
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "released: publishing to %s was on hold since %s: %s\n", c.At, hold.Since.Format(time.RFC3339), console.Escape(hold.Reason))
	return err
}
