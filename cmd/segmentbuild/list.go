package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// The type "at" contains the flag --at, which names a location (directory or bucket), and the flags for access to the
// location.
type at struct {
	At    string `required:"" placeholder:"LOCATION" help:"Location of the published segments: a directory or s3://bucket/prefix."`
	JSON  bool   `name:"json" help:"Print the report as JSON."`
	Place place  `embed:""`
}

// wrongPlace is the hint below the error that a location does not exist or has no generations (published versions).
const wrongPlace = "check that --at names the location that builds publish to"

func (a *at) open(ctx context.Context, on *terminal.Streams) (context.Context, context.CancelFunc, objects.Location,
	error) {
	return a.Place.open(ctx, on, a.At)
}

// openThere opens a location that must exist. If a directory does not exist, openThere returns an error, because the
// name is usually misspelt. For a location in S3, later requests detect that the location does not exist; see notThere
// and mustBeThere.
func (a *at) openThere(ctx context.Context, on *terminal.Streams) (context.Context, context.CancelFunc,
	objects.Location, error) {
	ctx, cancel, location, err := a.open(ctx, on)
	if err != nil || objects.IsURL(a.At) {
		return ctx, cancel, location, err
	}
	if err := mustBeThere(ctx, location); err != nil {
		cancel()
		return nil, nil, nil, err
	}
	return ctx, cancel, location, nil
}

// mustBeThere returns an error if a location does not exist. A directory must exist, and a bucket or prefix in S3 must
// contain at least one object. For an existing location without generations (published versions), mustBeThere returns
// nil.
func mustBeThere(ctx context.Context, location objects.Location) error {
	missing := fmt.Errorf("%s: %w", location.Name(), objects.ErrNotFound)
	if !objects.IsURL(location.Name()) {
		if _, err := os.Stat(location.Name()); errors.Is(err, fs.ErrNotExist) {
			return notThere(missing)
		}
		return nil
	}
	list, err := location.List(ctx, "")
	if err == nil && len(list) == 0 {
		err = missing
	}
	return notThere(err)
}

// notThere adds a hint and the exit status for bad input to the error about a location that does not exist.
func notThere(err error) error {
	if errors.Is(err, objects.ErrNotFound) {
		return terminal.Hinted(terminal.WithStatus(terminal.BadInput, err), wrongPlace)
	}
	return err
}

type listCommand struct {
	at `embed:""`
}

// The method Run lists the published generations of a location, the newest first.
func (c *listCommand) Run(ctx context.Context, on *terminal.Streams) error {
	ctx, cancel, location, err := c.openThere(ctx, on)
	if err != nil {
		return err
	}
	defer cancel()
	list, err := publish.List(ctx, location)
	if err != nil {
		return timedOut(ctx, notThere(err))
	}
	if len(list) == 0 {
		if err := mustBeThere(ctx, location); err != nil {
			return timedOut(ctx, err)
		}
	}
	if c.JSON {
		return terminal.JSON(on.Out, list)
	}
	if len(list) == 0 {
		on.Say("no generations at %s", c.At)
	}
	table := [][]any{{"", "GENERATION", "CREATED", "SEGMENTS", "SETS", "USERS", "BYTES", "TOOL", "REASON"}}
	for _, l := range list {
		table = append(table, rowOf(&l))
	}
	if err := terminal.Table(on.Out, terminal.Left, table...); err != nil {
		return err
	}
	return printState(on.Out, list)
}

func rowOf(l *publish.Listing) []any {
	if l.Manifest == nil {
		return []any{markOf(l), l.Generation, fmt.Sprintf("damaged: %s", l.Fault)}
	}
	users, size := totals(l.Manifest)
	return []any{markOf(l), l.Generation, l.Manifest.CreatedAt.Format(time.RFC3339), len(l.Manifest.Segments),
		len(l.Manifest.Sets), users, size,
		l.Manifest.ToolVersion, cmp.Or(l.Manifest.Reason, acceptedIn(l.Manifest))}
}

// acceptedIn returns a text with the changes that the flags --accept permitted when a build published the generation
// (published version).
func acceptedIn(m *segments.Manifest) string {
	var list []string
	for _, a := range m.Accepted {
		if a.At.Equal(m.CreatedAt) {
			list = append(list, cmp.Or(a.Set, a.Segment)+": "+a.Change)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "accepted " + strings.Join(list, ", ")
}

func markOf(l *publish.Listing) string {
	switch {
	case l.Live:
		return "live"
	case l.WithdrawnAt != nil:
		return "withdrawn"
	}
	return ""
}

// printState prints the time of the last complete build, and the time and reason of a hold on publishing. printState
// also prints the as-of times (times up to which a set reflects all changes) of the live generation's sets.
func printState(w io.Writer, list []publish.Listing) (err error) {
	for _, l := range list {
		if l.CheckedAt != nil {
			_, err = fmt.Fprintf(w, "checked by a build: %s%s\n", l.CheckedAt.Format(time.RFC3339), notLive(&l))
		}
		if l.Hold != nil {
			_, err = fmt.Fprintf(w, "publishing is on hold since %s: %s\n", l.Hold.Since.Format(time.RFC3339),
				terminal.Escape(l.Hold.Reason))
		}
		if l.Live && l.Manifest != nil {
			err = errors.Join(err, printAsOf(w, l.Manifest))
		}
	}
	return err
}

// notLive returns a text with the name of the last complete build's generation (published version), if services no
// longer use this generation.
func notLive(l *publish.Listing) string {
	if l.Live {
		return ""
	}
	return ", when " + l.Generation + " was live"
}

// The function "totals" returns the number of users in all segments, and the size of all bitmaps in bytes.
func totals(m *segments.Manifest) (users uint64, sizeBytes int64) {
	for _, s := range m.Segments {
		users += s.Cardinality
	}
	for _, s := range m.Entries() {
		sizeBytes += s.SizeBytes
	}
	return users, sizeBytes
}
