package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"capper/internal/console"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// at is the location of the commands that look at one, with what reaches it.
type at struct {
	At    string `required:"" placeholder:"LOCATION" help:"Where the generations are: a directory or s3://bucket/prefix."`
	JSON  bool   `name:"json" help:"Report as JSON."`
	Place place  `embed:""`
}

type listCommand struct {
	at `embed:""`
}

// Run lists the generations, the newest first.
func (c *listCommand) Run(e *env) error {
	ctx, cancel, store, err := c.Place.open(e, c.At)
	if err != nil {
		return err
	}
	defer cancel()
	list, err := publish.List(ctx, store)
	if err != nil {
		return timedOut(ctx, err)
	}
	if c.JSON {
		return e.printJSON(list)
	}
	if len(list) == 0 {
		fmt.Fprintf(e.stderr, "segmentbuild: no generations at %s\n", c.At)
	}
	out := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tGENERATION\tCREATED\tSEGMENTS\tUSERS\tBYTES\tTOOL\tREASON")
	for _, l := range list {
		mark := markOf(&l)
		if l.Manifest == nil {
			fmt.Fprintf(out, "%s\t%s\tdamaged: %s\n", mark, l.Generation, console.Escape(fmt.Sprint(l.Fault)))
			continue
		}
		users, size := totals(l.Manifest)
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", mark, l.Generation, l.Manifest.CreatedAt.Format(time.RFC3339),
			len(l.Manifest.Segments), users, size, console.Escape(l.Manifest.ToolVersion), console.Escape(l.Manifest.Reason))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return printState(e.stdout, list)
}

func markOf(l *publish.Listing) string {
	switch {
	case l.Live:
		return "live"
	case l.WithdrawnAt != nil:
		return "withdrawn"
	}
	return " "
}

// printState says what the table does not: when a build last ran to its end, and a hold.
func printState(w io.Writer, list []publish.Listing) (err error) {
	for _, l := range list {
		if l.CheckedAt != nil {
			_, err = fmt.Fprintf(w, "checked by a build: %s\n", l.CheckedAt.Format(time.RFC3339))
		}
		if l.Hold != nil {
			_, err = fmt.Fprintf(w, "publishing is on hold since %s: %s\n", l.Hold.Since.Format(time.RFC3339), console.Escape(l.Hold.Reason))
		}
	}
	return err
}

func totals(m *segments.Manifest) (users uint64, sizeBytes int64) {
	for _, s := range m.Segments {
		users += s.Cardinality
		sizeBytes += s.SizeBytes
	}
	return users, sizeBytes
}
