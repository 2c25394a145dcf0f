package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/objects"
	"capper/internal/terminal"
)

// setCommands are the commands about sets that calls change.
type setCommands struct {
	Add     setAddCommand         `cmd:"" help:"Add users to a set; the next decision counts them."`
	Remove  setRemoveCommand      `cmd:"" help:"Remove users from a set; the next decision counts them."`
	Members cli.SetMembersCommand `cmd:"" help:"List the users whom calls added to a set or removed from it."`
	Replay  cli.SetReplayCommand  `cmd:"" help:"Make the calls in the audit that changed sets again, after the store lost changes."`
	List    cli.SetListCommand    `cmd:"" help:"List the sets with the sizes and ages of their builds and of their changes by calls."`
}

// setChange holds the arguments of the commands that change a set.
type setChange struct {
	cli.Service
	Set   string   `arg:"" help:"Name of the set."`
	Users []string `arg:"" name:"users" help:"User ids from 0 to 4294967295, or one file of user ids as ${format_titles}, plain or compressed with gzip or zstd; - is standard input."`
	At    string   `placeholder:"TIME" help:"Time when the users said so, such as 2026-11-22T10:00:00Z. A later change of a user stands against it. Default: now."`
	idFile

	ids  []uint32 // of Users, where these are ids
	when time.Time
}

// Validate rejects a mixture of ids and files, and a time that is none.
func (c *setChange) Validate() error {
	other := ""
	for _, text := range c.Users {
		if id, err := strconv.ParseUint(text, 10, 32); err == nil {
			c.ids = append(c.ids, uint32(id))
		} else if other == "" {
			other = text
		}
	}
	switch {
	case len(c.ids) != len(c.Users) && len(c.Users) > 1:
		return fmt.Errorf("users: %q is no user id: give either user ids from 0 to 4294967295, or one file", other)
	case len(c.ids) > 0 && c.idFile != idFile{}:
		return errors.New(ofFile)
	case c.At == "":
		return nil
	}
	var err error
	if c.when, err = time.Parse(time.RFC3339, c.At); err != nil {
		return fmt.Errorf("--at: must be a time such as 2026-11-22T10:00:00Z, got %q", c.At)
	}
	return nil
}

// Help returns the text below the flags.
func (c *setChange) Help() string {
	return "When the command ends with the status 0, every later decision of every instance counts the change, " +
		"whatever " +
		"generation is in use, and no crash loses it. Repeating the command is safe. A build that is newer than the " +
		"change decides again. The API key needs the scope lists."
}

// users returns the users of the command.
func (c *setChange) users(ctx context.Context, on *terminal.Streams) ([]uint32, error) {
	if len(c.ids) > 0 {
		return c.ids, nil
	}
	set, err := c.read(ctx, on, c.Users[0])
	if errors.Is(err, objects.ErrNotFound) {
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf("users: %q is neither a user id from 0 to "+
			"4294967295 nor an existing file", c.Users[0]))
	}
	if err != nil {
		return nil, err
	}
	if set.IsEmpty() {
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: the file contains no users", c.Users[0]))
	}
	return set.ToArray(), nil
}

// change changes the set and prints the result.
func (c *setChange) change(ctx context.Context, on *terminal.Streams, change client.SetChange) error {
	service, err := c.ClientThatSays(on)
	if err != nil {
		return err
	}
	change.At = c.when
	changed, err := service.ChangeSet(ctx, c.Set, change)
	if err != nil {
		if changed != nil && (changed.Added+changed.Removed > 0 || client.HasCode(err, client.CodeTooManyRecords)) {
			all := slices.Sorted(slices.Values(slices.Concat(change.Add, change.Remove)))
			on.Say("users stored by the calls before the error: %d of %d", changed.Added+changed.Removed,
				len(slices.Compact(all)))
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

// failed adds advice to the error of a change.
func (c *setChange) failed(err error) error {
	const again = "; then run the same command again; repeating a change is safe"
	switch {
	case len(client.NotStored(err)) > 0:
		return terminal.Hinted(terminal.WithStatus(terminal.Undecided, err), cli.StatusSays+again)
	case client.HasCode(err, client.CodeTooManyRecords):
		return terminal.Hinted(err, "the set is full: publish a build that contains its changes (segmentbuild), or "+
			"raise sets."+c.Set+".max_live in the configuration"+again)
	}
	return c.HintedLists(err)
}

// setAddCommand is the command `capper set add SET USER…`.
type setAddCommand struct{ setChange }

// Run adds the users to the set.
func (c *setAddCommand) Run(ctx context.Context, on *terminal.Streams) error {
	users, err := c.users(ctx, on)
	if err != nil {
		return err
	}
	return c.change(ctx, on, client.SetChange{Add: users})
}

// setRemoveCommand is the command `capper set remove SET USER…`.
type setRemoveCommand struct{ setChange }

// Run removes the users from the set.
func (c *setRemoveCommand) Run(ctx context.Context, on *terminal.Streams) error {
	users, err := c.users(ctx, on)
	if err != nil {
		return err
	}
	return c.change(ctx, on, client.SetChange{Remove: users})
}
