package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/terminal"
)

// PacersCommand is the command `capper pacers [NAME]`.
type PacersCommand struct {
	Service
	Name      string  `arg:"" optional:"" help:"Name of the pacer (named rate limit) to show. Default: all pacers."`
	MessageID *string `placeholder:"ID" help:"Id of the message whose permits the command shows, in the namespace of the API key. Use this flag only for a pacer (named rate limit) with a separate limit for each message."`
	Key       *string `help:"Key, such as the sender's phone number, whose permits the command shows. Use this flag only for a pacer (named rate limit) with a separate limit for each key."`
	Forget    bool    `help:"Reset the pacer: the service forgets all permits that the pacer granted, for all messages and keys. The store keeps the records of earlier permit requests, so that a retry gets the same answer as before. These permit records still count towards the maximum number of permit records. The API key needs the scope admin."`
}

// The type "forgotten" is the output of `capper pacers --forget` with --json.
type forgotten struct {
	Pacer  string `json:"pacer"`
	Result string `json:"result"`
}

// Help returns the help text below the flags.
func (c *PacersCommand) Help() string {
	return "The column USED shows the number of granted permits in the window, including permits for a later time. " +
		"The column QUEUE shows the time until the last granted permit may be used. The column NEXT shows the wait " +
		"of a permit that is requested now. In the row of a share (reserved part of the pacer), the column MAX shows " +
		"the percentage of the share."
}

// The method Validate rejects invalid combinations of flags.
func (c *PacersCommand) Validate() error {
	switch {
	case c.Name == "" && (c.Forget || c.ofOne()):
		return errors.New("--forget, --message-id and --key require the name of a pacer")
	case c.Forget && c.ofOne():
		return errors.New(
			"--forget must not be combined with --message-id or --key, because --forget resets the whole pacer")
	case c.MessageID != nil && c.Key != nil:
		return errors.New("--key must not be combined with --message-id")
	case c.ofOne() && *cmp.Or(c.MessageID, c.Key) == "":
		return errors.New("--message-id and --key must not be empty")
	}
	return nil
}

// ofOne reports whether the command shows the permits for a single message or key.
func (c *PacersCommand) ofOne() bool { return c.MessageID != nil || c.Key != nil }

// The method Run prints the number of permits that the pacers have granted. With the flag --forget, the command resets
// the pacer: the service deletes the log of the pacer's granted permits.
func (c *PacersCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	switch {
	case c.Forget:
		return c.forget(ctx, service, on)
	case c.ofOne():
		return c.showOne(ctx, service, on)
	case c.Name != "":
		state, err := service.Pacer(ctx, c.Name)
		if err != nil {
			return c.refused(err)
		}
		return c.print(on, state)
	}
	list, err := service.Pacers(ctx)
	if err != nil {
		return c.refused(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, list)
	}
	fmt.Fprintf(on.Out, "pacers of configuration %s\n", list.ConfigVersion)
	return printPacers(on, list.Pacers)
}

func (c *PacersCommand) forget(ctx context.Context, service *client.Client, on *terminal.Streams) error {
	if err := service.ForgetPacer(ctx, c.Name); err != nil {
		return c.refused(err)
	}
	if _, err := service.Pacer(ctx, c.Name); client.HasCode(err, client.CodeNotFound) {
		on.Warn("the configuration has no pacer " + c.Name + ": permits that it granted before are forgotten")
	}
	if c.JSON {
		return terminal.JSON(on.Out, forgotten{c.Name, "forgotten"})
	}
	if err := terminal.Table(on.Out, terminal.Left, []any{"pacer", c.Name, "forgotten"}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(on.Out, "note: the remembered requests and the logs of messages and keys of the pacer "+
		"count towards their bounds until they expire")
	return err
}

// showOne prints the number of permits that were granted for one message or key.
func (c *PacersCommand) showOne(ctx context.Context, service *client.Client, on *terminal.Streams) error {
	var message, key string
	if c.MessageID != nil {
		message = *c.MessageID
	} else {
		key = *c.Key
	}
	state, err := service.PacerLog(ctx, c.Name, message, key)
	if err != nil {
		return c.refused(err)
	}
	return c.print(on, state)
}

func (c *PacersCommand) print(on *terminal.Streams, state *api.PacerState) error {
	if c.JSON {
		return terminal.JSON(on.Out, state)
	}
	return printPacers(on, []api.PacerState{*state})
}

// The method "refused" adds advice to the error of a call about pacers that the service refused.
func (c *PacersCommand) refused(err error) error {
	scope := "read"
	if c.Forget {
		scope = "admin"
	}
	switch {
	case client.HasCode(err, client.CodeForbidden):
		return terminal.Hinted(err, "the key in "+KeyVariable+" needs the scope "+scope)
	case client.HasCode(err, client.CodeNotFound):
		return terminal.Hinted(terminal.Misuse(err), "capper pacers lists the configured pacers")
	case client.HasCode(err, client.CodeInvalidRequest) && strings.Contains(err.Error(), "must be absent"):
		return terminal.Hinted(terminal.Misuse(err), "capper pacers shows \"by message\" or \"by key\" for pacers "+
			"with a separate limit for each message or key")
	case client.HasCode(err, client.CodeMethodNotAllowed):
		return terminal.Hinted(err, "--url must name the admin listener (server.admin_listen) if there is one")
	}
	return c.Hinted(err)
}

func printPacers(on *terminal.Streams, pacers []api.PacerState) error {
	rows := [][]any{{"PACER", "LIMIT", "USED", "MAX", "QUEUE", "NEXT"}}
	for i := range pacers {
		rows = append(rows, pacerRows(&pacers[i])...)
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// pacerRows returns a table row for the rate, for each limit and for each share of a pacer. If a pacer counts permits
// separately for each message or key, the rows do not contain the number of used permits.
func pacerRows(p *api.PacerState) (rows [][]any) {
	queue, next := waitText(p.QueueMS, "none"), waitText(p.NextMS, "now")
	if p.Per != "" && p.MessageID+p.Key == "" {
		queue, next = "by "+p.Per, "by "+p.Per
	}
	missing := "by " + p.Per
	if p.Unavailable {
		queue, next, missing = "unavailable", "unavailable", "unavailable"
	}
	add := func(limit string, used *int, most any) {
		text := any(missing)
		if used != nil {
			text = *used
		}
		rows = append(rows, []any{p.Name, limit, text, most, queue, next})
	}
	for _, l := range p.Limits {
		add(l.Window, l.Used, l.Max)
	}
	if p.Rate != "" || len(rows) == 0 {
		rows = append(rows, []any{p.Name, "rate", "", cmp.Or(p.Rate, "-"), queue, next})
	}
	for _, share := range p.Shares {
		rows = append(rows, []any{p.Name, "share " + share.Name, "", fmt.Sprintf("%d%%", share.Percent), "", ""})
	}
	return rows
}

// waitText formats the wait for a permit in milliseconds. If there is no wait for a permit, waitText returns the
// argument "none".
func waitText(wait api.Millis, none string) string {
	if wait <= 0 {
		return none
	}
	return max(time.Duration(wait).Round(time.Millisecond), time.Millisecond).String()
}
