package main

import (
	"context"
	"fmt"
	"time"

	"capper/client"
	"capper/cmd/capper/remote"
	"capper/internal/console"
)

// releaseCommand is `capper release AUDIENCE`.
type releaseCommand struct {
	remote.Service
	audience
	MessageID string `required:"" placeholder:"ID" help:"The send to give back, of the key's own namespace."`
	Channel   string `help:"Only that channel's sends. Default: all of the message id."`
}

// Run gives back the slots of sends that did not go out. Twice is once.
func (c *releaseCommand) Run(ctx context.Context, on *console.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	users, err := c.read(ctx, on)
	if err != nil {
		return err
	}
	shown := console.NewProgress(on, console.Users)
	shown.Step("release", int64(users.GetCardinality()))
	start := time.Now()
	var sum client.ReleaseSummary
	err = api.ReleaseAll(ctx, &client.ReleaseRequest{MessageID: c.MessageID, Channel: c.Channel, Bitmap: users}, func(batch *client.ReleaseResult) error {
		sum.Add(&batch.Summary)
		shown.Reach(int64(sum.Requested), fmt.Sprintf("%d released", sum.Released))
		return nil
	})
	shown.Stop()
	if err != nil {
		return console.Hinted(c.Hinted(err), "run the same command again: twice is once")
	}
	if c.JSON {
		err = console.JSON(on.Out, sum)
	} else {
		err = console.Table(on.Out, console.Left,
			[]any{"requested", sum.Requested, fmt.Sprintf("in %.2f s", time.Since(start).Seconds())},
			[]any{"released", sum.Released}, []any{"absent", sum.Absent, "had no such send"}, []any{"unavailable", sum.Unavailable})
	}
	if err == nil && sum.Unavailable > 0 {
		err = console.Hinted(undecided(sum.Unavailable), remote.StatusSays+"; then run the same command again: twice is once")
	}
	return err
}
