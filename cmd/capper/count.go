package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"capper/client"
	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// countCommand is the command `capper count EXPRESSION`.
type countCommand struct {
	cli.Service
	Expression string `arg:"" help:"Expression that selects users by segment and set (groups of users). For example, 'active - vip' selects the users in 'active' who are not in 'vip'. Operators: & (and), | (or), - (but not) and parentheses. Write a space before the operator -."`
	cli.Narrowed
	Detail  string  `enum:"sets,total" default:"sets" help:"Level of detail: 'sets' (the total, and counts by segment and by set) or 'total' (only the total, which is much faster)."`
	Channel *string `help:"Also count the users who may receive a message on this channel now. The command records no sends. An empty channel name stands for messages without a channel."`
}

// The method Run asks the service for the number of users that the audience expression selects, and prints the counts.
func (c *countCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	audience, err := c.Audience(c.Expression)
	if err != nil {
		return terminal.Misuse(err)
	}
	count, err := service.Count(ctx, &client.CountRequest{Audience: audience, Total: c.Detail == "total",
		Channel: c.Channel})
	if err != nil {
		return c.Hinted(cli.Pointed(err, c.Expression))
	}
	if c.JSON {
		return terminal.JSON(on.Out, count)
	}
	return c.print(on, count)
}

func (c *countCommand) print(on *terminal.Streams, count *api.AudienceCount) error {
	fmt.Fprintf(on.Out, "%s in generation %s\n", terminal.Count(count.Users, "user", "users"), count.Generation)
	if err := printCounts(on, "SEGMENT", count.Segments); err != nil {
		return err
	}
	if err := printCounts(on, "SET", count.Sets); err != nil || count.Preview == nil {
		return err
	}
	fmt.Fprintln(on.Out, "could receive a message now:")
	rows := append([][]any{{"allowed", count.Preview.Allowed}}, deniedRows(count.Preview)...)
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// printCounts prints named numbers of users, with the largest number first. If the map of numbers is empty,
// printCounts prints nothing.
func printCounts(on *terminal.Streams, what string, counts map[string]uint64) error {
	if len(counts) == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	rows := [][]any{{what, "USERS"}}
	for _, name := range names {
		rows = append(rows, []any{name, counts[name]})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}
