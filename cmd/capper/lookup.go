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
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// lookupCommand is the command `capper lookup USER…`.
type lookupCommand struct {
	cli.Service
	Users []string `arg:"" optional:"" name:"user" help:"Ids of the users to look up. The ids must have the kind that the service uses: dense (32-bit numbers), uint64, uuid or text. Give either these ids or --file."`
	File  string   `placeholder:"FILE" help:"File with the ids of the users to look up: ${format_titles}, plain or compressed with gzip or zstd; - is standard input. The result lists each user once, in the order in which the store sorts users."`
	idFile
	Set []string `placeholder:"NAME" help:"Name of a set (named group of users). The result says for each user whether the user is in this published set. May be repeated."`
	CSV bool     `name:"csv" help:"Print the result as CSV, with a column (true or false) for each --set. The command prints the first parts of a large result while it still looks up further users."`
}

// lookupBatch is the number of users whose segments and sets one lookup call requests.
const lookupBatch = 50_000

// lookupReport is the output of the lookup command with --json.
type lookupReport struct {
	Generation string  `json:"generation"`
	Users      []found `json:"users"`
}

// The type "found" is the segment and the sets of one user: an api.UserLookup, or an api.UserLookupOfID for ids that
// are not dense 32-bit numbers.
type found struct {
	UserID  any      `json:"user_id"`
	Segment string   `json:"segment"`
	Sets    []string `json:"sets"`
}

// foundIn returns the users in the response to a lookup call.
func foundIn(answer *client.LookupResult) (list []found) {
	for i := range answer.Users {
		list = append(list, found{answer.Users[i].UserID, answer.Users[i].Segment, answer.Users[i].Sets})
	}
	for i := range answer.IDs {
		list = append(list, found{answer.IDs[i].UserID, answer.IDs[i].Segment, answer.IDs[i].Sets})
	}
	return list
}

// The method Validate rejects a command line without users, with users from two sources, or with an invalid combination
// of output flags.
func (c *lookupCommand) Validate() error {
	switch {
	case len(c.Users) == 0 && c.File == "":
		return errors.New("users are missing: give user ids, or a file of ids with --file")
	case len(c.Users) > 0 && c.File != "":
		return errors.New("users are given twice: give either user ids or --file")
	case c.File == "" && c.idFile != idFile{}:
		return errors.New(ofFile)
	case c.CSV && c.JSON:
		return errors.New("--csv and --json must not be combined")
	}
	return nil
}

// The method Run prints the segments and sets of the users.
func (c *lookupCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	users, err := c.users(ctx, on, service)
	if err != nil {
		return err
	}
	if c.CSV {
		return c.writeCSV(ctx, on, service, users)
	}
	report := lookupReport{Users: []found{}}
	err = c.lookup(ctx, service, users, func(answer *client.LookupResult) error {
		report.Generation = answer.Generation
		report.Users = append(report.Users, foundIn(answer)...)
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

// The method "users" returns the users in the command-line arguments or in the file.
func (c *lookupCommand) users(ctx context.Context, on *terminal.Streams, service *client.Client) (users cli.Users,
	err error) {
	scheme, err := c.Scheme(ctx, service)
	switch {
	case err != nil:
		return users, err
	case c.File == "":
		return cli.ParseUsers(scheme, "user", c.Users)
	case scheme.Kind() == ids.Dense:
		read, err := c.read(ctx, on, c.File)
		if err != nil {
			return users, err
		}
		users.Dense = read.ToArray()
		return users, nil
	}
	list, err := c.list(ctx, on, c.File, scheme)
	if err != nil {
		return users, err
	}
	users.IDs = (&cli.IDs{UserList: list}).Texts()
	return users, nil
}

// The method "lookup" asks the service for the segments and sets of the users, in batches. The first batch uses the
// generation in use (published version of the segments). All later batches use the same generation as the first batch.
func (c *lookupCommand) lookup(ctx context.Context, service *client.Client, users cli.Users,
	each func(*client.LookupResult) error) error {
	request := &client.LookupRequest{Sets: c.Set}
	call := func() error {
		found, err := service.Lookup(ctx, request)
		if err != nil {
			return c.Hinted(err)
		}
		request.Generation = found.Generation
		return each(found)
	}
	for request.Users = range slices.Chunk(users.Dense, lookupBatch) {
		if err := call(); err != nil {
			return err
		}
	}
	request.Users = nil
	for request.IDs = range slices.Chunk(users.IDs, lookupBatch) {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

func (c *lookupCommand) print(on *terminal.Streams, report *lookupReport) error {
	rows, without := [][]any{{"USER", "SEGMENT"}}, ""
	if len(c.Set) > 0 {
		rows[0], without = append(rows[0], "SETS"), ", without changes of sets by calls"
	}
	fmt.Fprintf(on.Out, "generation %s%s\n", report.Generation, without)
	for _, u := range report.Users {
		rows = append(rows, []any{u.UserID, u.Segment, strings.Join(u.Sets, ",")})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

func (c *lookupCommand) writeCSV(
	ctx context.Context, on *terminal.Streams, service *client.Client, users cli.Users,
) error {
	out := csv.NewWriter(on.Data())
	head := append([]string{"user_id", "segment"}, c.Set...)
	err := c.lookup(ctx, service, users, func(answer *client.LookupResult) error {
		if head != nil { // a first response has arrived
			if err := out.Write(head); err != nil {
				return err
			}
			head = nil
		}
		for _, u := range foundIn(answer) {
			row := []string{fmt.Sprint(u.UserID), u.Segment}
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
