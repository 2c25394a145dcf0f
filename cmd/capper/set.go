package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/terminal"
)

// setCommands contains the commands `capper set …`, about sets of users that API calls can change.
type setCommands struct {
	Add     setAddCommand         `cmd:"" help:"Add users to a set (named group of users). Every later decision treats these users as members."`
	Remove  setRemoveCommand      `cmd:"" help:"Remove users from a set (named group of users). Within about a second, all instances of the service stop treating these users as members."`
	Members cli.SetMembersCommand `cmd:"" help:"List the users whom API calls have added to a set or removed from the set."`
	Replay  cli.SetReplayCommand  `cmd:"" help:"Repeat changes of sets (groups of users) by API calls, if the store has lost these changes. The command reads them from the audit (the log of all calls)."`
	List    cli.SetListCommand    `cmd:"" help:"List all sets (named groups of users). For each set, the list shows the number of published users, and how many users API calls have added or removed."`
}

// setChange holds the arguments of the commands that add users to a set or remove them.
type setChange struct {
	cli.Service
	Set   string   `arg:"" help:"Name of the set."`
	Users []string `arg:"" optional:"" name:"users" help:"User ids, or the name of one file with user ids (${format_titles}, plain or compressed with gzip or zstd; - is standard input). If user ids are texts, name the file with --file, because a file name could be a text id."`
	File  string   `placeholder:"FILE" help:"File with the user ids, instead of user ids on the command line."`
	At    string   `placeholder:"TIME" help:"Time at which the users asked for the change, such as 2026-11-22T10:00:00Z. If the service knows a later change for a user, the later change stays in force. Default: now."`
	idFile

	when time.Time
}

// The method Validate rejects a command line without users, with users from two sources, or with an invalid time of the
// change.
func (c *setChange) Validate() error {
	switch {
	case len(c.Users) == 0 && c.File == "":
		return errors.New(`expected "<users> ..."`)
	case len(c.Users) > 0 && c.File != "":
		return errors.New("users are given twice: give either user ids or --file")
	case c.At == "":
		return nil
	}
	var err error
	if c.when, err = time.Parse(time.RFC3339, c.At); err != nil {
		return fmt.Errorf("--at must be a time such as 2026-11-22T10:00:00Z, got %q", c.At)
	}
	return nil
}

// Help returns the help text below the flags.
func (c *setChange) Help() string {
	return "If the exit status is 0, the service has stored the changes, and no crash loses them. After an addition, " +
		"all instances of the service treat the users as members in every later decision. After a removal, other " +
		"instances may treat the users as members for about another second. The changes stay in force with every " +
		"generation (published version of all segments and sets), until a build publishes newer data of the set. " +
		"Repeating the command is safe. The API key needs the scope lists."
}

// The method "users" returns the users in the command-line arguments or in the file.
func (c *setChange) users(ctx context.Context, on *terminal.Streams, scheme *ids.Scheme) (cli.Users, error) {
	if c.File != "" {
		return c.readFile(ctx, on, scheme, c.File)
	}
	users, other := c.given(scheme)
	file := ""
	if len(c.Users) == 1 {
		file = c.Users[0]
	}
	isText := scheme.Kind() == ids.Text
	if isText && other == nil {
		if name := c.existing(); name != "" {
			return users, terminal.Misuse(fmt.Errorf("users: %q could be a text id or the name of an existing file: "+
				"name the file with --file, or give the id in a file", name))
		}
	}
	switch {
	case other == nil && file != stdin:
		if c.idFile != (idFile{}) {
			return users, terminal.Misuse(errors.New(ofFile))
		}
		return users, nil
	case file == "" || isText && file != stdin:
		return users, terminal.Misuse(other)
	}
	users, err := c.readFile(ctx, on, scheme, file)
	if errors.Is(err, objects.ErrNotFound) {
		return users, terminal.WithStatus(terminal.BadInput, c.neither(scheme, other))
	}
	return users, err
}

// The method "existing" returns the first argument that is the name of an existing file, or "". The command rejects
// such an argument: file names from a shell pattern such as lists/*.txt must not become text ids of users.
func (c *setChange) existing() string {
	for _, name := range c.Users {
		if info, err := os.Stat(name); name != stdin && err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// The constant stdin is the file name that means standard input.
const stdin = "-"

// The method "given" parses the command-line arguments as user ids. If an argument is not a user id, the method "given"
// returns an error.
func (c *setChange) given(scheme *ids.Scheme) (users cli.Users, other error) {
	for i := range c.Users {
		one, err := cli.ParseUsers(scheme, "users", c.Users[i:i+1])
		switch {
		case err != nil && scheme.Kind() == ids.Dense:
			return users, fmt.Errorf(
				"users: %q is not a user id: give either user ids from 0 to 4294967295, or one file",
				c.Users[i])
		case err != nil:
			return users, fmt.Errorf("%w: give either user ids, or one file", err)
		}
		users.Dense, users.IDs = append(users.Dense, one.Dense...), append(users.IDs, one.IDs...)
	}
	return users, nil
}

// The method "neither" returns an error about a single argument that is no user id and no existing file.
func (c *setChange) neither(scheme *ids.Scheme, other error) error {
	if scheme.Kind() == ids.Dense {
		return fmt.Errorf("users: %q is neither a user id from 0 to 4294967295 nor an existing file", c.Users[0])
	}
	return fmt.Errorf("%w, and there is no such file", other)
}

// readFile returns the users in a file of user ids.
func (c *setChange) readFile(ctx context.Context, on *terminal.Streams, scheme *ids.Scheme, file string) (
	users cli.Users, err error) {
	n := 0
	if scheme.Kind() == ids.Dense {
		set, err := c.read(ctx, on, file)
		if err != nil {
			return users, err
		}
		users.Dense = set.ToArray()
		n = len(users.Dense)
	} else {
		list, err := c.list(ctx, on, file, scheme)
		if err != nil {
			return users, err
		}
		users.IDs = (&cli.IDs{UserList: list}).Texts()
		n = len(users.IDs)
	}
	if n == 0 {
		return users, terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: the file contains no users", file))
	}
	return users, nil
}

// The method "change" makes the API call that changes the set, and prints the result. The argument "of" is a function
// that returns the request to add or remove the users.
func (c *setChange) change(ctx context.Context, on *terminal.Streams, of func(cli.Users) client.SetChange) error {
	service, err := c.PatientClient(on)
	if err != nil {
		return err
	}
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return c.failed(err)
	}
	users, err := c.users(ctx, on, scheme)
	if err != nil {
		return err
	}
	change := of(users)
	change.At = c.when
	changed, err := service.ChangeSet(ctx, c.Set, change)
	if err != nil {
		if changed != nil && (changed.Added+changed.Removed > 0 || client.HasCode(err, client.CodeTooManyRecords)) {
			on.Say("users stored by the calls before the error: %d of %d", changed.Added+changed.Removed,
				distinct(users.Dense)+distinct(users.IDs))
		}
		return c.failed(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, changed)
	}
	return terminal.Table(on.Out, terminal.Left, []any{"added", changed.Added}, []any{"removed", changed.Removed},
		[]any{"superseded", changed.Superseded, "a later change or build stands"},
		[]any{"at", changed.At.UTC().Format(milliseconds)})
}

// The method "failed" adds advice to the error of a call that changes a set.
func (c *setChange) failed(err error) error {
	const again = "; then run the same command again; repeating a change is safe"
	switch {
	case len(client.NotStored(err))+len(client.NotStoredIDs(err)) > 0:
		return terminal.Hinted(terminal.WithStatus(terminal.Undecided, err), cli.StatusSays+again)
	case client.HasCode(err, client.CodeTooManyRecords):
		return terminal.Hinted(err, "the set is full: publish a build that contains its changes (segmentbuild), or "+
			"raise sets."+c.Set+".max_live in the configuration"+again)
	}
	return c.HintedLists(err)
}

// The function "distinct" returns the number of different ids in the slice.
func distinct[ID cmp.Ordered](ids []ID) int {
	return len(slices.Compact(slices.Sorted(slices.Values(ids))))
}

// setAddCommand is the command `capper set add SET USER…`.
type setAddCommand struct{ setChange }

// The method Run adds the users to the set.
func (c *setAddCommand) Run(ctx context.Context, on *terminal.Streams) error {
	return c.change(ctx, on, func(users cli.Users) client.SetChange {
		return client.SetChange{Add: users.Dense, AddIDs: users.IDs}
	})
}

// setRemoveCommand is the command `capper set remove SET USER…`.
type setRemoveCommand struct{ setChange }

// The method Run removes the users from the set.
func (c *setRemoveCommand) Run(ctx context.Context, on *terminal.Streams) error {
	return c.change(ctx, on, func(users cli.Users) client.SetChange {
		return client.SetChange{Remove: users.Dense, RemoveIDs: users.IDs}
	})
}
