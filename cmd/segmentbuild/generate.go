package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capper/internal/ids"
	"capper/internal/terminal"
)

type generateCommand struct {
	Users    uint32   `required:"" help:"Number of users to generate. The ids of these users begin at --first."`
	First    uint32   `default:"1" help:"Lowest user id to generate."`
	Segments []string `required:"" placeholder:"NAME=PERCENT" help:"Name of each segment, and the percentage of all users in this segment, such as vip=10%,new=40%. The other users are in no segment."`
	IDs      string   `name:"ids" enum:"dense,uint64,uuid,text" default:"dense" help:"Kind of the user ids: dense (32-bit numbers), uint64, uuid or text. The kind changes only how ids are written, not which users a file has. For kinds other than dense, --as must be text or csv."`
	Layout   string   `enum:"random,contiguous" default:"random" help:"Way in which users get their segments: random (each user gets a random segment) or contiguous (each segment gets one range of ids)."`
	As       string   `enum:"text,csv,parquet,roaring" default:"text" help:"Format of the output files: text, csv (columns user_id and segment), parquet (column user_id, not sorted) or roaring. The command writes one file for each segment."`
	Seed     uint64   `default:"1" help:"Seed of the random numbers; the same seed generates the same segments."`
	Out      string   `required:"" placeholder:"DIR" help:"Directory for the output files. The name of each file is the name of its segment with the ending .txt, .csv, .parquet or .roaring."`
}

// The method Run writes files with the ids of synthetic users, for tests and demos, and prints the names of the files.
func (c *generateCommand) Run(ctx context.Context, on *terminal.Streams) error {
	users, err := c.users()
	if err != nil {
		return terminal.Misuse(err)
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	var files []*terminal.File
	var writers []writer
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	for _, s := range users.Shares {
		f, err := terminal.CreateFile(c.path(s))
		if err != nil {
			return err
		}
		files = append(files, f)
		w, err := newWriter(f, c.As, s.Segment)
		if err != nil {
			return err
		}
		if lines, ok := w.(*lineWriter); ok {
			lines.spell = spellings[c.IDs]
		}
		writers = append(writers, w)
	}
	if err := write(ctx, users, writers); err != nil {
		return err
	}
	for i, f := range files { // all files are complete: give them their final names
		if err := f.Commit(); err != nil {
			return err
		}
		fmt.Fprintln(on.Out, c.path(users.Shares[i]))
	}
	return nil
}

// The method "users" returns the synthetic users that the flags describe.
func (c *generateCommand) users() (*Users, error) {
	if c.IDs != ids.Dense.String() && c.As != "text" && c.As != "csv" {
		return nil, fmt.Errorf("--as: the file format must be text or csv for user ids of the kind %s, got %s",
			c.IDs, c.As)
	}
	users := &Users{First: c.First, Count: c.Users, Contiguous: c.Layout == "contiguous", Seed: c.Seed}
	for _, arg := range c.Segments {
		name, text, ok := strings.Cut(arg, "=")
		var part percentage
		if err := part.UnmarshalText([]byte(text)); !ok || err != nil {
			return nil, fmt.Errorf("--segments %q must have the form NAME=PERCENT", arg)
		}
		users.Shares = append(users.Shares, share{Segment: name, Percent: float64(part)})
	}
	return users, users.Check()
}

// The function "write" passes the id of each synthetic user to the writer of the user's segment.
func write(ctx context.Context, users *Users, writers []writer) error {
	for share, id := range users.All(ctx) {
		if err := writers[share].Add(id); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (c *generateCommand) path(s share) string {
	return filepath.Join(c.Out, fileName(s.Segment, c.As))
}
