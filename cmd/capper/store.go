package main

import (
	"context"
	"fmt"
	"time"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// storeCommands contains the commands about the store of a running service.
type storeCommands struct {
	Accept acceptCommand `cmd:"" help:"Accept that a Redis server has lost, or may have lost, recorded sends, so that the service decides about the affected users again."`
}

// acceptCommand is the command `capper store accept`.
type acceptCommand struct {
	cli.Service
	Reason string `required:"" placeholder:"TEXT" help:"Reason for accepting the loss of recorded sends, such as the result of a comparison with the audit. The service stores this text."`
}

// Help returns the help text below the flags.
func (c *acceptCommand) Help() string {
	return "A Redis server that evicts keys, or has no append-only file, may have lost recorded sends. The service " +
		"does not decide about the users of this server until the command accepts the loss. After the acceptance, " +
		"users with lost sends may receive more messages than their limits allow. Correct the settings of the server " +
		"first: the service rejects the command while they are wrong. The page " +
		"docs/operating.md#a-server-dropped-logs describes the checks. The API key needs the scope admin."
}

// The method Run tells the service to accept that its store has lost recorded sends, and prints the Redis servers that
// lost sends.
func (c *acceptCommand) Run(ctx context.Context, on *terminal.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	accepted, err := api.AcceptLoss(ctx, c.Reason)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, accepted)
	}
	if len(accepted.Losses) == 0 {
		return c.nothing(ctx, api, on)
	}
	rows := [][]any{{"NODE", "PARTITIONS", "SINCE", "ACCEPTED"}}
	for _, l := range accepted.Losses {
		rows = append(rows, []any{l.Node, l.Partitions, l.Since.UTC().Format(time.RFC3339), l.What})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// The method "nothing" reports that no Redis server has lost sends. If the store does not work for another reason, such
// as missing records of the whole store, "nothing" returns an error with the reason.
func (c *acceptCommand) nothing(ctx context.Context, api *client.Client, on *terminal.Streams) error {
	status, err := api.Status(ctx)
	if err != nil {
		return c.Hinted(err)
	}
	if status.Store.State == "down" {
		return fmt.Errorf("the store is down for a reason that this command cannot resolve: %s",
			status.Store.Error)
	}
	return terminal.Table(on.Out, terminal.Left, []any{"there was no loss to accept"})
}
