package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/client"
	"capper/cmd/capper/remote"
	"capper/internal/console"
)

// limitsCommand is `capper limits`.
type limitsCommand struct{ remote.Service }

// Run prints the policy in force.
func (c *limitsCommand) Run(ctx context.Context, on *console.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	policy, err := api.Limits(ctx)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return console.JSON(on.Out, policy)
	}
	return printLimits(on, policy)
}

func printLimits(on *console.Streams, p *client.Limits) error {
	fmt.Fprintf(on.Out, "limits of configuration %s%s\n", p.Version, tolerance(p.ToleranceMS))
	rows := append([][]any{{"SEGMENT", "LIMIT", "MAX", "WINDOW", "CHANNELS"}}, limitRows("default", p.Default)...)
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		rows = append(rows, limitRows(segment, p.Segments[segment])...)
	}
	return console.Table(on.Out, console.Left, rows...)
}

func tolerance(ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf(", rolling windows are longer by %s", time.Duration(ms)*time.Millisecond)
}

// limitRows are the limits of one segment, which stands in each of them.
func limitRows(segment string, limits []client.Limit) (rows [][]any) {
	if len(limits) == 0 {
		return [][]any{{segment, "uncapped", "", "", ""}}
	}
	for i := range limits {
		l := &limits[i]
		rows = append(rows, []any{segment, l.Name, l.Max, windowText(l), channelsText(l)})
	}
	return rows
}

func windowText(l *client.Limit) string {
	if l.Timezone == "" {
		return l.Window
	}
	return l.Window + " in " + l.Timezone
}

func channelsText(l *client.Limit) string {
	if len(l.Channels) == 0 {
		return "all"
	}
	return strings.Join(l.Channels, ",")
}
