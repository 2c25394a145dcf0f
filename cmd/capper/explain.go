package main

import (
	"context"
	"fmt"

	"capper/client"
	"capper/cmd/capper/remote"
	"capper/internal/console"
)

// milliseconds is RFC 3339 to the millisecond, which is what decides.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// explainCommand is `capper explain USER`.
type explainCommand struct {
	remote.Service
	User uint32 `arg:"" help:"The user id, 0 to 4294967295."`
}

// Run prints why the user is allowed or capped.
func (c *explainCommand) Run(ctx context.Context, on *console.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	explanation, err := api.Explain(ctx, c.User)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return console.JSON(on.Out, explanation)
	}
	return printExplanation(on, explanation)
}

func printExplanation(on *console.Streams, e *client.Explanation) error {
	fmt.Fprintf(on.Out, "user %d is in segment %s (generation %s)\n", e.UserID, e.Segment, e.Generation)
	if len(e.Limits) == 0 {
		fmt.Fprintln(on.Out, "no limits: uncapped")
	} else {
		rows := [][]any{{"LIMIT", "USED", "MAX", "WINDOW", "CHANNELS", "STATE"}}
		for i := range e.Limits {
			rows = append(rows, standingRow(&e.Limits[i]))
		}
		if err := console.Table(on.Out, console.Left, rows...); err != nil {
			return err
		}
	}
	if len(e.Sends) == 0 {
		fmt.Fprintln(on.Out, "no sends recorded")
		return nil
	}
	rows := [][]any{{"SENT AT", "CHANNEL", "NAMESPACE", "MESSAGE"}}
	for _, send := range e.Sends {
		rows = append(rows, []any{
			send.At.UTC().Format(milliseconds), or(send.Channel, "-"), or(send.Namespace, "-"), or(send.MessageID, "(not remembered)"),
		})
	}
	return console.Table(on.Out, console.Left, rows...)
}

func standingRow(s *client.Standing) []any {
	state := "a slot is free"
	switch {
	case s.RetryAt != nil:
		state = "capped until " + s.RetryAt.UTC().Format(milliseconds)
	case s.Max == 0:
		state = "always capped"
	}
	return []any{s.Name, s.Used, s.Max, windowText(&s.Limit), channelsText(&s.Limit), state}
}

func or(text *string, otherwise string) string {
	if text == nil || *text == "" {
		return otherwise
	}
	return *text
}
