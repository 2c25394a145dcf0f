package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// segmentOf holds the arguments that name one segment or set of a generation.
type segmentOf struct {
	Segment    string `arg:"" help:"Name of the segment or set."`
	Generation string `placeholder:"GENERATION" help:"Name of the generation. Default: the live generation."`
	at         `embed:""`

	what string // the command, for errors
}

// read reads the bitmap of the segment or set.
func (c *segmentOf) read(ctx context.Context, on *terminal.Streams) (*bitmap.Bitmap, error) {
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return nil, err
	}
	defer cancel()
	b, err := c.readFrom(ctx, location)
	return b, timedOut(ctx, err)
}

func (c *segmentOf) readFrom(ctx context.Context, location objects.Location) (*bitmap.Bitmap, error) {
	m, err := readManifest(ctx, location, c.Generation)
	if err != nil {
		return nil, err
	}
	if err := publish.NotYet(m.IDs, c.what); err != nil {
		return nil, err
	}
	var names []string
	for _, s := range m.Entries() {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, c.Segment) {
		return nil, terminal.Misuse(c.unknown(m.Generation, names))
	}
	return segments.ReadSegment(ctx, location, m, c.Segment)
}

// listedNames is the most names that an error lists. Of more names it lists the most similar one.
const listedNames = 10

// unknown returns the error for a name that the generation does not have.
func (c *segmentOf) unknown(generation string, names []string) error {
	err := fmt.Errorf("segment or set %q does not exist in generation %s", c.Segment, generation)
	if len(names) <= listedNames {
		return fmt.Errorf("%w: it has %q", err, names)
	}
	if nearest := audience.Nearest(c.Segment, names); nearest != "" {
		err = fmt.Errorf("%w; the nearest is %q", err, nearest)
	}
	return terminal.Hinted(err, "segmentbuild inspect lists the segments and sets")
}

type membersCommand struct {
	segmentOf `embed:""`
	User      []uint32 `placeholder:"ID" help:"User id to look up in the segment or set; may be repeated."`
	Sample    int      `placeholder:"N" help:"Number of randomly chosen users to print, in ascending order; all users if there are fewer."`
	Seed      uint64   `default:"1" help:"Seed of the random sample; the same seed chooses the same users."`
}

type membership struct {
	UserID uint32 `json:"user_id"`
	Member bool   `json:"member"`
}

// Run prints whether users are in the segment, or prints a sample of the segment.
func (c *membersCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if (len(c.User) == 0) == (c.Sample <= 0) {
		return terminal.Misuse(errors.New("give either --user ID or --sample N"))
	}
	c.what = "members"
	b, err := c.read(ctx, on)
	if err != nil {
		return err
	}
	if c.Sample > 0 {
		return c.print(on, b.Sample(c.Sample, c.Seed))
	}
	var report []membership
	for _, id := range c.User {
		report = append(report, membership{UserID: id, Member: b.Contains(id)})
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	for _, m := range report {
		word := "is in"
		if !m.Member {
			word = "is not in"
		}
		if _, err := fmt.Fprintf(on.Out, "user %d %s %s\n", m.UserID, word, c.Segment); err != nil {
			return err
		}
	}
	return nil
}

func (c *membersCommand) print(on *terminal.Streams, ids []uint32) error {
	if c.JSON {
		return terminal.JSON(on.Out, ids)
	}
	for _, id := range ids {
		if _, err := fmt.Fprintln(on.Out, id); err != nil {
			return err
		}
	}
	return nil
}

type exportCommand struct {
	segmentOf `embed:""`
	As        string `enum:"ids,bitmap" default:"ids" help:"Output format: ids (one per line, ascending) or bitmap (portable roaring format)."`
	Output    string `short:"o" placeholder:"FILE" help:"Output file; - is standard output, the default."`
}

// Run writes the users of one segment or set to a file.
func (c *exportCommand) Run(ctx context.Context, on *terminal.Streams) error {
	toFile := c.Output != "" && c.Output != "-"
	if toFile {
		if err := terminal.CheckTarget(c.Output); err != nil {
			return terminal.Misuse(fmt.Errorf("--output %w", err))
		}
	}
	c.what = "export"
	b, err := c.read(ctx, on)
	if err != nil {
		return err
	}
	if !toFile {
		return c.write(on.Data(), b)
	}
	return terminal.WriteFile(c.Output, func(w io.Writer) error { return c.write(w, b) })
}

func (c *exportCommand) write(w io.Writer, b *bitmap.Bitmap) error {
	if c.As == "bitmap" {
		_, err := w.Write(b.Bytes())
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for id := range b.All() {
		line = append(strconv.AppendUint(line[:0], uint64(id), 10), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
