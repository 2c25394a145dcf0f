package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"capper/client"
	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// lookupCommand is the command `capper lookup USER…`.
type lookupCommand struct {
	cli.Service
	Users []cli.UserID `arg:"" optional:"" name:"user" help:"User ids to look up, from 0 to 4294967295. Give either these ids or --file."`
	File  string       `placeholder:"FILE" help:"File of user ids as ${format_titles}, plain or compressed with gzip or zstd; - is standard input. The result lists each user once, in ascending order."`
	idFile
	Set []string `placeholder:"NAME" help:"Name of a set to check for each user; may be repeated."`
	CSV bool     `name:"csv" help:"Print the result as CSV, with one column for each --set, while answers arrive."`
}

// lookupBatch is the number of users in one call.
const lookupBatch = 50_000

// lookupReport is the output of --json.
type lookupReport struct {
	Generation string           `json:"generation"`
	Users      []api.UserLookup `json:"users"`
}

// Validate rejects arguments without users, and contradictory output flags.
func (c *lookupCommand) Validate() error {
	switch {
	case len(c.Users) == 0 && c.File == "":
		return errors.New("users are missing: give user ids, or a file of ids with --file")
	case len(c.Users) > 0 && c.File != "":
		return errors.New("users are given twice: give either user ids or --file")
	case c.File == "" && c.idFile != idFile{}:
		return errors.New(ofFile)
	case c.CSV && c.JSON:
		return errors.New("--csv and --json: must not be combined")
	}
	return nil
}

// Run prints the segments and sets of the users.
func (c *lookupCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	users := cli.UserIDs(c.Users)
	if c.File != "" {
		read, err := c.read(ctx, on, c.File)
		if err != nil {
			return err
		}
		users = read.ToArray()
	}
	if c.CSV {
		return c.writeCSV(ctx, on, service, users)
	}
	report := lookupReport{Users: []api.UserLookup{}}
	err = c.lookup(ctx, service, users, func(found *client.LookupResult) error {
		report.Generation = found.Generation
		report.Users = append(report.Users, found.Users...)
		return nil
	})
	switch {
	case err != nil:
		return err
	case c.JSON:
		return terminal.JSON(on.Out, report)
	}
	return c.print(on, &report)
}

// lookup looks up the users in batches. All batches use the generation of the first one.
func (c *lookupCommand) lookup(ctx context.Context, service *client.Client, users []uint32,
	each func(*client.LookupResult) error) error {
	request := &client.LookupRequest{Sets: c.Set}
	for batch := range slices.Chunk(users, lookupBatch) {
		request.Users = batch
		found, err := service.Lookup(ctx, request)
		if err != nil {
			return c.Hinted(err)
		}
		request.Generation = found.Generation
		if err := each(found); err != nil {
			return err
		}
	}
	return nil
}

func (c *lookupCommand) print(on *terminal.Streams, report *lookupReport) error {
	fmt.Fprintf(on.Out, "generation %s\n", report.Generation)
	rows := [][]any{{"USER", "SEGMENT"}}
	if len(c.Set) > 0 {
		rows[0] = append(rows[0], "SETS")
	}
	for _, u := range report.Users {
		rows = append(rows, []any{u.UserID, u.Segment, strings.Join(u.Sets, ",")})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

func (c *lookupCommand) writeCSV(
	ctx context.Context, on *terminal.Streams, service *client.Client, users []uint32,
) error {
	out := csv.NewWriter(on.Out)
	head := append([]string{"user_id", "segment"}, c.Set...)
	err := c.lookup(ctx, service, users, func(found *client.LookupResult) error {
		if head != nil { // there is an answer to write
			if err := out.Write(head); err != nil {
				return err
			}
			head = nil
		}
		for _, u := range found.Users {
			row := []string{strconv.FormatUint(uint64(u.UserID), 10), u.Segment}
			for _, set := range c.Set {
				row = append(row, strconv.FormatBool(slices.Contains(u.Sets, set)))
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	out.Flush()
	return errors.Join(err, out.Error())
}
