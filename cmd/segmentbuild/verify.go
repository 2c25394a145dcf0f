package main

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type verifyCommand struct {
	Generation string `arg:"" optional:"" help:"Name of the generation (published version of all segments and sets). Default: the generation that services use."`
	All        bool   `help:"Check every generation (published version) at the location."`
	at         `embed:""`
}

type verification struct {
	Generation string `json:"generation"`
	Users      uint64 `json:"users"`
	SizeBytes  int64  `json:"size_bytes"`
	Fault      string `json:"fault,omitempty"`
}

// The method Run downloads generations (published versions) and checks all files of these generations.
func (c *verifyCommand) Run(ctx context.Context, on *terminal.Streams) error {
	open := c.open
	if c.All {
		open = c.openThere
	}
	ctx, cancel, location, err := open(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	wanted, err := c.generations(ctx, location)
	if err != nil {
		return timedOut(ctx, err)
	}
	var report []verification
	var faults []error
	for _, l := range wanted {
		v := verification{Generation: l.Generation, Fault: l.Fault}
		if l.Fault != "" {
			faults = append(faults, errors.New(l.Fault))
		} else if g, err := segments.ReadGeneration(ctx, location, l.Generation); err != nil {
			v.Fault = err.Error()
			faults = append(faults, err)
		} else {
			v.Users, v.SizeBytes = totals(g.Manifest)
		}
		report = append(report, v)
	}
	if c.JSON {
		err = terminal.JSON(on.Out, report)
	} else {
		err = printVerified(on, report)
	}
	return timedOut(ctx, errors.Join(append(faults, err)...))
}

func printVerified(on *terminal.Streams, report []verification) error {
	for _, v := range report {
		if v.Fault != "" {
			continue // the fault is already an error
		}
		if _, err := fmt.Fprintf(on.Out, "%s is whole: %d users, %d bytes\n", v.Generation, v.Users,
			v.SizeBytes); err != nil {
			return err
		}
	}
	return nil
}

// The method "generations" returns the generations (published versions) that the command verify must check. The method
// "generations" also reports damaged manifests and a damaged object current.json.
func (c *verifyCommand) generations(ctx context.Context, location objects.Location) ([]publish.Listing, error) {
	if c.All && c.Generation != "" {
		return nil, terminal.Misuse(errors.New("give either a generation (published version) or --all, not both"))
	}
	if c.All {
		list, err := publish.List(ctx, location)
		if err == nil && len(list) == 0 {
			err = mustBeThere(ctx, location)
		}
		return list, notThere(err)
	}
	m, err := readManifest(ctx, location, c.Generation)
	if err != nil {
		return nil, err
	}
	return []publish.Listing{{Generation: m.Generation}}, nil
}
