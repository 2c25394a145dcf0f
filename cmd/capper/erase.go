package main

import (
	"context"
	"errors"
	"fmt"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// eraseCommand is the command `capper erase USER…`.
type eraseCommand struct {
	cli.Service
	Users []cli.UserID `arg:"" name:"user" help:"User ids to erase, from 0 to 4294967295."`
	Sets  bool         `help:"Also remove the changes of sets by calls, such as opt-outs; the builds alone decide then who is in a set."`
	Yes   bool         `help:"Erase without asking for confirmation; required when standard input is not a terminal."`
}

// erasure is the result for one user, in the form of --json.
type erasure struct {
	UserID uint32 `json:"user_id"`
	Result string `json:"result"` // erased, unavailable, failed, not tried
	Error  string `json:"error,omitempty"`
}

// Help returns the text below the flags.
func (c *eraseCommand) Help() string {
	return "Erases all recorded sends of the users, who then may receive messages as if they were new. Opt-outs and " +
		"other changes of sets by calls stay, unless --sets is given. Erasing a user again has no further " +
		"effect. The API key needs the scope admin, and the URL is that of the admin " +
		"listener if there is one."
}

// Run erases the users' logs and prints the result for each user.
func (c *eraseCommand) Run(ctx context.Context, on *terminal.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := on.Confirm(ctx, c.question(), "--yes"); err != nil {
			return err
		}
	}
	list, err := c.erase(ctx, api)
	if c.JSON {
		return errors.Join(err, terminal.JSON(on.Out, list))
	}
	rows := make([][]any, len(list))
	for i, e := range list {
		rows[i] = []any{"user", e.UserID, e.Result, e.Error}
	}
	return errors.Join(err, terminal.Table(on.Out, terminal.Left, rows...))
}

func (c *eraseCommand) question() string {
	if len(c.Users) == 1 {
		return fmt.Sprintf("erase all sends of user %d at %s?", c.Users[0], c.URL)
	}
	return fmt.Sprintf("erase all sends of %d users at %s?", len(c.Users), c.URL)
}

func (c *eraseCommand) eraseOne(ctx context.Context, api *client.Client, user uint32) error {
	if c.Sets {
		return api.EraseWithSets(ctx, user)
	}
	return api.Erase(ctx, user)
}

// erase continues if the log of one user is unavailable. erase stops at errors that every further call would cause.
func (c *eraseCommand) erase(ctx context.Context, api *client.Client) (list []erasure, err error) {
	unavailable := 0
	for _, user := range cli.UserIDs(c.Users) {
		if err != nil {
			list = append(list, erasure{UserID: user, Result: "not tried"})
			continue
		}
		one := c.eraseOne(ctx, api, user)
		switch {
		case one == nil:
			list = append(list, erasure{UserID: user, Result: "erased"})
		case client.HasCode(one, client.CodeUnavailable):
			unavailable++
			list = append(list, erasure{user, "unavailable", one.Error()})
		default:
			err = c.HintedAdmin(one)
			list = append(list, erasure{user, "failed", one.Error()})
		}
	}
	if err == nil && unavailable > 0 {
		err = terminal.Hinted(terminal.WithStatus(terminal.Undecided, fmt.Errorf("%d users could not be erased",
			unavailable)), cli.StatusSays+"; then run the same command again; repeating an erasure is safe")
	}
	return list, err
}
