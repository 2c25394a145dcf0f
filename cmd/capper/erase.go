package main

import (
	"context"
	"errors"
	"fmt"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// eraseCommand is the command `capper erase USER…`.
type eraseCommand struct {
	cli.Service
	Users []string `arg:"" name:"user" help:"Ids of the users whose recorded sends the command erases. The ids must have the kind that the service uses: dense (32-bit numbers), uint64, uuid or text."`
	Sets  bool     `help:"Also delete the records of API calls that added the given users to sets (groups of users) or removed them, such as opt-outs. After the deletion, only the published sets decide whether these users are in a set."`
	Yes   bool     `help:"Erase without asking for confirmation; required when standard input is not a terminal."`
}

// The type erasure is the result for one user in the output of --json.
type erasure struct {
	UserID any    `json:"user_id"` // uint32 for dense ids, otherwise string
	Result string `json:"result"`  // erased, unavailable, failed or not tried
	Error  string `json:"error,omitempty"`
}

// Help returns the help text below the flags.
func (c *eraseCommand) Help() string {
	return "Erases all recorded sends of the users. After this, the service treats the users like new users who have " +
		"received no messages. Opt-outs and other changes of sets by API calls stay, unless you add --sets. Erasing " +
		"a user again has no further effect. The API key needs the scope admin. If the service has an admin listener " +
		"(server.admin_listen), --url must name this listener."
}

// The method Run erases the recorded sends of the users, and prints the result for each user.
func (c *eraseCommand) Run(ctx context.Context, on *terminal.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	targets, err := c.targets(ctx, api)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := on.Confirm(ctx, c.question(targets), "--yes"); err != nil {
			return err
		}
	}
	list, err := c.erase(targets)
	if c.JSON {
		return errors.Join(err, terminal.JSON(on.Out, list))
	}
	rows := make([][]any, len(list))
	for i, e := range list {
		rows[i] = []any{"user", e.UserID, e.Result, e.Error}
	}
	return errors.Join(err, terminal.Table(on.Out, terminal.Left, rows...))
}

// A target is a user whose recorded sends the command erases.
type target struct {
	id    any // uint32 or string
	erase func() error
}

// The method "targets" returns the users to erase. If the service does not tell its kind of ids, the method "targets"
// treats numbers as dense ids (32-bit numbers). Even if the service has ids of another kind, the erasure is correct,
// because a number has the same URL path in every kind.
func (c *eraseCommand) targets(ctx context.Context, api *client.Client) (list []target, err error) {
	scheme, failed := c.Scheme(ctx, api)
	if failed != nil {
		scheme = ids.New(ids.Dense, ids.Key{})
		for _, user := range c.Users {
			if _, err := scheme.Parse([]byte(user)); err != nil {
				return nil, failed
			}
		}
	}
	users, err := cli.ParseUsers(scheme, "user", c.Users)
	if err != nil {
		return nil, err
	}
	erase, eraseID := api.Erase, api.EraseID
	if c.Sets {
		erase, eraseID = api.EraseWithSets, api.EraseIDWithSets
	}
	for _, user := range users.Dense {
		list = append(list, target{user, func() error { return erase(ctx, user) }})
	}
	for _, user := range users.IDs {
		list = append(list, target{user, func() error { return eraseID(ctx, user) }})
	}
	return list, nil
}

func (c *eraseCommand) question(users []target) string {
	what := "all sends"
	if c.Sets {
		what = "all sends and the changes of sets, such as opt-outs,"
	}
	if len(users) == 1 {
		return fmt.Sprintf("erase %s of user %v at %s?", what, users[0].id, c.URL)
	}
	return fmt.Sprintf("erase %s of %d users at %s?", what, len(users), c.URL)
}

// The method "erase" erases the recorded sends of the users, one user after another. If the store is unavailable for a
// user, the method "erase" continues with the next user. After any other error, the method "erase" stops, because all
// further calls would fail in the same way.
func (c *eraseCommand) erase(users []target) (list []erasure, err error) {
	unavailable := 0
	for _, user := range users {
		if err != nil {
			list = append(list, erasure{UserID: user.id, Result: "not tried"})
			continue
		}
		one := user.erase()
		switch {
		case one == nil:
			list = append(list, erasure{UserID: user.id, Result: "erased"})
		case client.HasCode(one, client.CodeUnavailable):
			unavailable++
			list = append(list, erasure{user.id, "unavailable", one.Error()})
		default:
			err = c.HintedAdmin(one)
			list = append(list, erasure{user.id, "failed", one.Error()})
		}
	}
	if err == nil && unavailable > 0 {
		err = terminal.Hinted(terminal.WithStatus(terminal.Undecided, fmt.Errorf("%s could not be erased",
			terminal.Count(unavailable, "user", "users"))),
			cli.StatusSays+"; then run the same command again; repeating an erasure is safe")
	}
	return list, err
}
