package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// segmentOf contains the command-line arguments that name a segment or set of a generation (published version).
type segmentOf struct {
	Segment    string `arg:"" help:"Name of the segment or set."`
	Generation string `placeholder:"GENERATION" help:"Name of the generation (published version of all segments and sets). Default: the generation that services use."`
	at         `embed:""`
}

// The type "found" is a segment or set that the command has read from a generation (published version).
type found struct {
	generation *segments.Generation // without bitmaps
	scheme     *ids.Scheme
	users      *bitmap.Bitmap
}

// The method "read" reads the bitmap of the named segment or set. If the user ids are not dense (32-bit integers), the
// method "read" also reads the dictionary of ids.
func (c *segmentOf) read(ctx context.Context, on *terminal.Streams) (*found, error) {
	ctx, cancel, location, err := c.open(ctx, on)
	if err != nil {
		return nil, err
	}
	defer cancel()
	f, err := c.readFrom(ctx, location)
	return f, timedOut(ctx, err)
}

func (c *segmentOf) readFrom(ctx context.Context, location objects.Location) (*found, error) {
	m, err := readManifest(ctx, location, c.Generation)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range m.Entries() {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, c.Segment) {
		return nil, terminal.Misuse(c.unknown(m.Generation, names))
	}
	f := &found{scheme: ids.New(ids.Dense, ids.Key{})}
	if f.users, err = segments.ReadSegment(ctx, location, m, c.Segment); err != nil {
		return nil, err
	}
	if f.generation, err = m.ReadIDs(ctx, location); err != nil {
		return nil, err
	}
	if f.generation.Scheme != nil {
		f.scheme = f.generation.Scheme
	}
	return f, nil
}

// The method "has" reports whether the user with the given id is in the segment or set.
func (f *found) has(id string) (bool, error) {
	image, err := f.scheme.Parse([]byte(id))
	if err != nil {
		return false, terminal.Misuse(fmt.Errorf("--user %q: %w", id, err))
	}
	if f.generation.Dictionary == nil {
		return f.users.Contains(uint32(image)), nil
	}
	number, known := f.generation.Dictionary.Number(image)
	return known && f.users.Contains(number), nil
}

// jsonID returns a user id for JSON reports: a number for dense ids (32-bit integers), and otherwise a string.
func (f *found) jsonID(text []byte) json.RawMessage {
	if f.generation.Scheme == nil {
		return text
	}
	raw, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // encoding a string never fails
	}
	return raw
}

// listedNames is the maximum number of names that an error text lists. If the generation has more names, the error text
// contains only the name that is most similar to the unknown name.
const listedNames = 10

// The method "unknown" returns the error for the name of a segment or set that the generation (published version)
// lacks.
func (c *segmentOf) unknown(generation string, names []string) error {
	err := fmt.Errorf("segment or set %q does not exist in generation (published version) %s", c.Segment, generation)
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
	User      []string `sep:"none" placeholder:"ID" help:"User id to look up in the segment or set; may be repeated."`
	Sample    int      `placeholder:"N" help:"Number of users to print, chosen at random and sorted by id. If there are fewer users, the command prints all users."`
	Seed      uint64   `default:"1" help:"Seed of the random selection; the same seed selects the same users."`
}

type membership struct {
	UserID json.RawMessage `json:"user_id"`
	Member bool            `json:"member"`

	text []byte
}

// The method Run prints whether given users are in a segment or set, or prints some users of the segment or set.
func (c *membersCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if (len(c.User) == 0) == (c.Sample <= 0) {
		return terminal.Misuse(errors.New("give either --user ID or --sample N"))
	}
	f, err := c.read(ctx, on)
	if err != nil {
		return err
	}
	if c.Sample > 0 {
		return c.print(on, f)
	}
	var report []membership
	for _, id := range c.User {
		member, err := f.has(id)
		if err != nil {
			return err
		}
		text, err := f.scheme.Canonical(nil, []byte(id))
		if err != nil {
			return err
		}
		report = append(report, membership{UserID: f.jsonID(text), Member: member, text: text})
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	for _, m := range report {
		word := "is in"
		if !m.Member {
			word = "is not in"
		}
		if _, err := fmt.Fprintf(on.Out, "user %s %s %s\n", m.text, word, c.Segment); err != nil {
			return err
		}
	}
	return nil
}

func (c *membersCommand) print(on *terminal.Streams, f *found) error {
	list := []json.RawMessage{}
	for _, number := range f.users.Sample(c.Sample, c.Seed) {
		text, err := f.generation.ID(nil, number)
		if err != nil {
			return err
		}
		if c.JSON {
			list = append(list, f.jsonID(text))
			continue
		}
		if _, err := fmt.Fprintf(on.Out, "%s\n", text); err != nil {
			return err
		}
	}
	if c.JSON {
		return terminal.JSON(on.Out, list)
	}
	return nil
}

type exportCommand struct {
	segmentOf `embed:""`
	As        string `enum:"ids,bitmap" default:"ids" help:"Output format: ids (one id per line, in ascending order) or bitmap (portable roaring format)."`
	Output    string `short:"o" placeholder:"FILE" help:"Output file. Default: -, which is standard output."`
}

// The method Run writes the ids of the users of one segment or set to a file.
func (c *exportCommand) Run(ctx context.Context, on *terminal.Streams) error {
	toFile := c.Output != "" && c.Output != "-"
	if toFile {
		if err := terminal.CheckTarget(c.Output); err != nil {
			return terminal.Misuse(fmt.Errorf("--output %w", err))
		}
	}
	f, err := c.read(ctx, on)
	if err != nil {
		return err
	}
	if c.As == "bitmap" {
		if err := publish.NotYet(f.generation.Manifest.IDs, "export --as bitmap"); err != nil {
			return err
		}
	}
	if !toFile {
		return c.write(on.Data(), f)
	}
	return terminal.WriteFile(c.Output, func(w io.Writer) error { return c.write(w, f) })
}

func (c *exportCommand) write(w io.Writer, f *found) error {
	if c.As == "bitmap" {
		_, err := w.Write(f.users.Bytes())
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for number := range f.users.All() {
		var err error
		if line, err = f.generation.ID(line[:0], number); err != nil {
			return err
		}
		line = append(line, '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
