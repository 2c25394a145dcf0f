package main

import (
	"context"
	"fmt"

	"capper/internal/cli"
	"capper/internal/terminal"
)

// segmentsCommand is the command `capper segments`.
type segmentsCommand struct{ cli.Service }

// The method Run lists the segments and sets of the generation in use (published version of all segments and sets).
func (c *segmentsCommand) Run(ctx context.Context, on *terminal.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	list, err := api.Segments(ctx)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, list)
	}
	fmt.Fprintf(on.Out, "generation %s of %s\n", list.Generation, list.CreatedAt.UTC().Format(milliseconds))
	rows := [][]any{{"NAME", "KIND", "USERS", "BYTES"}}
	for _, s := range list.Segments {
		rows = append(rows, []any{s.Name, s.Kind, s.Users, s.SizeBytes})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}
