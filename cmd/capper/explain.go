package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// milliseconds is the RFC 3339 time layout with milliseconds, which is the resolution of times in decisions.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// explainCommand is the command `capper explain USER`.
type explainCommand struct {
	cli.Service
	User string `arg:"" help:"Id of the user about whom the command explains the decision. The id must have the kind that the service uses: dense (32-bit number), uint64, uuid or text."`
}

// The method Run prints the reasons why the user is allowed or denied.
func (c *explainCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return err
	}
	users, err := cli.ParseUsers(scheme, "user", []string{c.User})
	if err != nil {
		return err
	}
	if len(users.IDs) > 0 {
		explanation, err := service.ExplainID(ctx, users.IDs[0])
		if err != nil {
			return c.Hinted(err)
		}
		if c.JSON {
			return terminal.JSON(on.Out, explanation)
		}
		return printExplanation(on, explanation.UserID, &explanation.Explanation)
	}
	explanation, err := service.Explain(ctx, users.Dense[0])
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, explanation)
	}
	return printExplanation(on, explanation.UserID, explanation)
}

// printExplanation prints the explanation of a user. The argument "id" is a number or a string.
func printExplanation(on *terminal.Streams, id any, e *api.Explanation) error {
	zone := ""
	if e.Timezone != "" {
		zone = ", time zone " + e.Timezone
	}
	fmt.Fprintf(on.Out, "user %v is in segment %s%s (generation %s)\n", id, e.Segment, zone, e.Generation)
	if len(e.Missing) > 0 {
		fmt.Fprintf(on.Out, "missing sets: the configuration requires %s: the lines below assume that the user is "+
			"in none of them, and sends that need one are unavailable\n",
			strings.Join(e.Missing, ", "))
	}
	explainWithheld(on, e)
	if len(e.Limits) == 0 {
		fmt.Fprintln(on.Out, "no limits: uncapped")
	} else {
		rows := [][]any{{"LIMIT", "USED", "MAX", "WINDOW", "CHANNELS", "STATE"}}
		for i := range e.Limits {
			rows = append(rows, standingRow(&e.Limits[i]))
		}
		if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
			return err
		}
	}
	if len(e.WouldBeDeniedBy) > 0 {
		fmt.Fprintf(on.Out, "would be denied by %s (shadow: counted only)\n", strings.Join(e.WouldBeDeniedBy, ", "))
	}
	if len(e.Sends) == 0 {
		fmt.Fprintln(on.Out, "no sends recorded")
		return nil
	}
	titled := slices.ContainsFunc(e.Sends, func(s api.Send) bool { return s.Title != "" })
	rows := [][]any{{"SENT AT", "CHANNEL", "NAMESPACE", "MESSAGE"}}
	if titled {
		rows[0] = append(rows[0], "TITLE")
	}
	for _, send := range e.Sends {
		row := []any{
			send.At.UTC().Format(milliseconds), or(send.Channel, "-"), or(send.Namespace, "-"),
			or(send.MessageID, "(not remembered)"),
		}
		if titled {
			row = append(row, or(&send.Title, "-"))
		}
		rows = append(rows, row)
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// explainWithheld prints the rules that deny messages to the user independently of earlier sends, such as quiet hours.
func explainWithheld(on *terminal.Streams, e *api.Explanation) {
	for i := range e.Suppressed {
		s := &e.Suppressed[i]
		fmt.Fprintf(on.Out, "suppressed: user is in %s%s, channels %s; exempt sends: %s\n", s.Set, liveText(e, s.Set),
			listed(s.Channels), exemptText(s))
	}
	for i := range e.Live {
		switch m := &e.Live[i]; {
		case m.Change == api.ChangeRemoved:
			fmt.Fprintf(on.Out, "not in %s %s\n", m.Set, cli.LiveText(m))
		case !suppresses(e, m.Set):
			fmt.Fprintf(on.Out, "in %s %s\n", m.Set, cli.LiveText(m))
		}
	}
	if e.Holdout != nil {
		fmt.Fprintf(on.Out, "held out: one of %s\n", holdoutText(e.Holdout))
	}
	for i := range e.Quiet {
		q := &e.Quiet[i]
		zone, state := q.Zone, "not now"
		if zone == zoneOfUser {
			zone = e.Timezone
		}
		if q.Now {
			state = "always"
		}
		if q.Until != nil {
			state = "until " + q.Until.UTC().Format(milliseconds)
		}
		fmt.Fprintf(on.Out, "quiet hours: %s to %s in %s, channels %s: %s\n", q.From, q.To, zone, listed(q.Channels),
			state)
	}
	if len(e.NeverOpen) > 0 {
		fmt.Fprintf(on.Out, "quiet hours leave no minute open: together they deny all sends on %s\n",
			strings.Join(e.NeverOpen, ", "))
	}
}

// The function "suppresses" reports whether the set is one of the sets that deny messages to the user.
func suppresses(e *api.Explanation, set string) bool {
	return slices.ContainsFunc(e.Suppressed, func(s api.Suppression) bool { return s.Set == set })
}

// liveText returns a text with the time at which an API call added the user to the set. If no API call added the user,
// liveText returns "".
func liveText(e *api.Explanation, set string) string {
	for i := range e.Live {
		if m := &e.Live[i]; m.Set == set && m.Change == api.ChangeAdded {
			return " (" + cli.LiveText(m) + ")"
		}
	}
	return ""
}

func standingRow(s *api.Standing) []any {
	state, capped, always := "a slot is free", "capped until ", "always capped"
	if s.Shadow {
		capped, always = "would be capped until ", "would always be capped"
	}
	switch {
	case s.RetryAt != nil:
		state = capped + s.RetryAt.UTC().Format(milliseconds)
	case s.Max == 0:
		state = always
	}
	return []any{nameText(&s.Limit), s.Used, s.Max, windowText(&s.Limit), listed(s.Channels), state}
}

func or(text *string, otherwise string) string {
	if text == nil || *text == "" {
		return otherwise
	}
	return *text
}
