package main

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
)

// segmentOf names one segment of a generation.
type segmentOf struct {
	Segment    string `arg:"" help:"The segment."`
	Generation string `placeholder:"GENERATION" help:"The generation; the live one if not given."`
	at         `embed:""`
}

// read reads the segment's bitmap.
func (c *segmentOf) read(e *env) (*bitmap.Bitmap, error) {
	ctx, cancel, store, err := c.Place.open(e, c.At)
	if err != nil {
		return nil, err
	}
	defer cancel()
	b, err := c.readFrom(ctx, store)
	return b, timedOut(ctx, err)
}

func (c *segmentOf) readFrom(ctx context.Context, store objects.Location) (*bitmap.Bitmap, error) {
	m, err := readManifest(ctx, store, c.Generation)
	if err != nil {
		return nil, err
	}
	return segments.ReadSegment(ctx, store, m, c.Segment)
}

type membersCommand struct {
	segmentOf `embed:""`
	User      []uint32 `placeholder:"ID" help:"Is this user in the segment? Again for more."`
	Sample    int      `placeholder:"N" help:"Write N users of the segment, ascending; all if it has fewer."`
	Seed      uint64   `default:"1" help:"Another seed, another sample."`
}

type membership struct {
	UserID uint32 `json:"user_id"`
	Member bool   `json:"member"`
}

// Run answers for users, or samples the segment.
func (c *membersCommand) Run(e *env) error {
	if (len(c.User) == 0) == (c.Sample <= 0) {
		return usageError{errors.New("give --user ID or --sample N, one of the two")}
	}
	b, err := c.read(e)
	if err != nil {
		return err
	}
	if c.Sample > 0 {
		return c.print(e, b.Sample(c.Sample, c.Seed))
	}
	var report []membership
	for _, id := range c.User {
		report = append(report, membership{UserID: id, Member: b.Contains(id)})
	}
	if c.JSON {
		return e.printJSON(report)
	}
	for _, m := range report {
		word := "is in"
		if !m.Member {
			word = "is not in"
		}
		if _, err := fmt.Fprintf(e.stdout, "user %d %s %s\n", m.UserID, word, c.Segment); err != nil {
			return err
		}
	}
	return nil
}

func (c *membersCommand) print(e *env, ids []uint32) error {
	if c.JSON {
		return e.printJSON(ids)
	}
	for _, id := range ids {
		if _, err := fmt.Fprintln(e.stdout, id); err != nil {
			return err
		}
	}
	return nil
}
