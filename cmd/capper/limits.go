package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// limitsCommand is the command `capper limits`.
type limitsCommand struct{ cli.Service }

// The method Run prints the limits and rules in force.
func (c *limitsCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	policy, err := service.Limits(ctx)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, policy)
	}
	return printLimits(on, policy)
}

func printLimits(on *terminal.Streams, p *api.Policy) error {
	fmt.Fprintf(on.Out, "limits of configuration %s%s\n", p.Version, tolerance(p.ToleranceMS))
	rows := append([][]any{{"SEGMENT", "LIMIT", "MAX", "WINDOW", "CHANNELS"}}, limitRows("default", p.Default)...)
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		rows = append(rows, limitRows(segment, p.Segments[segment])...)
	}
	if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
		return err
	}
	return printWithheld(on, p)
}

// printWithheld prints the rules of the policy that deny messages to users independently of earlier sends, such as
// quiet hours.
func printWithheld(on *terminal.Streams, p *api.Policy) error {
	rows := [][]any{{"SUPPRESSED", "CHANNELS", "EXEMPT SENDS"}}
	for i := range p.Suppress {
		rows = append(rows, []any{p.Suppress[i].Set, listed(p.Suppress[i].Channels), exemptText(&p.Suppress[i])})
	}
	if err := tableOf(on, rows); err != nil {
		return err
	}
	rows = [][]any{{"QUIET HOURS", "ZONE", "CHANNELS", "SETS"}}
	for _, q := range p.Quiet {
		rows = append(rows, []any{q.From + " to " + q.To, q.Zone, listed(q.Channels), listed(q.Sets)})
	}
	if err := tableOf(on, rows); err != nil {
		return err
	}
	if p.Holdout != nil {
		fmt.Fprintf(on.Out, "holdout: %s\n", holdoutText(p.Holdout))
	}
	if p.Timezone != "" {
		fmt.Fprintf(on.Out, "time zone of users in no time zone set: %s\n", p.Timezone)
	}
	return nil
}

// tableOf prints a table, if the table has rows besides the header.
func tableOf(on *terminal.Streams, rows [][]any) error {
	if len(rows) == 1 {
		return nil
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

func exemptText(s *api.Suppression) string {
	if s.EvenExempt {
		return "denied too"
	}
	return "pass"
}

func holdoutText(h *api.Holdout) string {
	return fmt.Sprintf("%g%% of all users (salt %s), channels %s", h.Percent, h.Salt, listed(h.Channels))
}

func tolerance(ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf(", rolling windows are longer by %s", time.Duration(ms)*time.Millisecond)
}

// limitRows returns a table row for each limit of a segment.
func limitRows(segment string, limits []api.Limit) (rows [][]any) {
	if len(limits) == 0 {
		return [][]any{{segment, "uncapped", "", "", ""}}
	}
	for i := range limits {
		l := &limits[i]
		rows = append(rows, []any{segment, nameText(l), l.Max, windowText(l), listed(l.Channels)})
	}
	return rows
}

// zoneOfUser is the time zone in API responses for quiet hours and calendar limits that follow the time zone of each
// user.
const zoneOfUser = "user"

func windowText(l *api.Limit) string {
	if l.Timezone == "" {
		return l.Window
	}
	if l.Timezone == zoneOfUser {
		return l.Window + " where the user is"
	}
	return l.Window + " in " + l.Timezone
}

// nameText returns the name of a limit in the form for a table. For a shadow limit (a limit on trial, which denies
// nobody), nameText adds a remark.
func nameText(l *api.Limit) string {
	if l.Shadow {
		return l.Name + " (shadow)"
	}
	return l.Name
}

// The function "listed" joins names with commas. For an empty list, the function "listed" returns "all", because an
// empty list means no restriction.
func listed(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ",")
}
