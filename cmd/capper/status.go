package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// statusCommand is the command `capper status`.
type statusCommand struct{ cli.Service }

// The method Run prints the status of the service. If the service is not ready, Run returns an error.
func (c *statusCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	status, err := service.Status(ctx)
	if err != nil {
		return c.Hinted(err)
	}
	kind := ""
	if scheme, err := c.Scheme(ctx, service); err == nil && scheme.Kind() != ids.Dense {
		kind = scheme.Kind().String()
	}
	if c.JSON {
		err = terminal.JSON(on.Out, struct {
			*api.Status
			IDs string `json:"ids,omitempty"`
		}{status, kind})
	} else {
		err = printStatus(on, status, kind)
	}
	if err == nil && !status.Ready {
		err = fmt.Errorf("the service at %s is not ready", c.URL)
	}
	return err
}

// printStatus prints the status of the service. The argument "kind" is the kind of user ids, or "" for dense ids
// (32-bit numbers).
func printStatus(on *terminal.Streams, s *api.Status, kind string) error {
	ready := "ready"
	if !s.Ready {
		ready = "not ready"
	}
	rows := [][]any{
		{"service", ready},
		{"store", s.Store.Kind + " " + s.Store.State + suffix(": ", s.Store.Error)},
		{"config", s.ConfigVersion + suffix(", last change rejected: ", s.Config.Error)},
		{"zone rules", s.ZoneRules},
		{"segments", s.Generation + ", from the " + s.Segments.Origin + age(s.GenerationAgeSeconds) +
			suffix(", compared with ", s.Segments.ComparedWith) + suffix(", last refresh failed: ", s.Segments.Error)},
	}
	if kind != "" {
		rows = append(rows, []any{"ids", kind})
	}
	if s.Audit != nil {
		rows = append(rows, []any{"audit", auditText(s)})
	}
	if len(s.Segments.Missing) > 0 {
		rows = append(rows, []any{"missing", "sets that the configuration requires: " +
			strings.Join(s.Segments.Missing, ", ")})
	}
	for _, warning := range append(s.Store.Warnings, s.Config.Problems...) {
		rows = append(rows, []any{"warning", warning})
	}
	rows = append(rows, guardedRows(s)...)
	for _, segment := range s.Segments.Segments {
		rows = append(rows, []any{"  " + segment.Name, fmt.Sprintf("%s, %d bytes",
			terminal.Count(segment.Users, "user", "users"), segment.SizeBytes)})
	}
	for _, set := range s.Segments.Sets {
		rows = append(rows, []any{"  set " + set.Name, fmt.Sprintf("%s, %d bytes",
			terminal.Count(set.Users, "user", "users"), set.SizeBytes)})
	}
	if len(s.Segments.Pinned) > 0 {
		rows = append(rows, []any{"pinned", strings.Join(s.Segments.Pinned, ", ") + " for audiences"})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// guardedRows returns table rows for the guarded sets. A set is guarded if the service rejects a new generation
// (published version of all sets) in which the set loses too many users.
func guardedRows(s *api.Status) (rows [][]any) {
	if r := s.Segments.Refused; r != nil {
		rows = append(rows, []any{"refused", fmt.Sprintf("generation %s since %s (%s)", r.Generation,
			r.Since.UTC().Format(time.RFC3339), strings.Join(r.Reasons, ", "))})
	}
	for i := range s.Segments.Guarded {
		set := &s.Segments.Guarded[i]
		text := fmt.Sprintf("%s, confirmed %s ago", terminal.Count(set.Users, "user", "users"),
			s.Time.Sub(set.AsOf).Round(time.Second))
		if set.MaxAgeSeconds > 0 {
			text += ", at most " + time.Duration(set.MaxAgeSeconds*float64(time.Second)).String()
		}
		if set.TooOld {
			text += ": TOO OLD, its sends are unavailable"
		}
		text += fmt.Sprintf("; %d left with the generation in use, %d since the start", set.Left, set.LeftSinceStart)
		if s.Segments.Refused != nil {
			text += ", without the rejected generation"
		}
		rows = append(rows, []any{"  guarded " + set.Name, text})
	}
	if n := s.Segments.ZonelessUsers; n != nil {
		rows = append(rows, []any{"no zone", terminal.Count(*n, "user is", "users are") + " in no time zone set"})
	}
	return rows
}

// auditText describes the status of the audit (the record of all decisions).
func auditText(s *api.Status) string {
	a := s.Audit
	text := fmt.Sprintf("%s to %s, %s", a.State, a.To, terminal.Count(a.Records, "record", "records"))
	if a.Lost > 0 {
		text += fmt.Sprintf(", %d lost", a.Lost)
	}
	if a.WaitingFiles > 0 {
		text += ", " + terminal.Count(a.WaitingFiles, "file waits", "files wait")
	}
	return text + suffix(": ", a.Error)
}

func age(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return ", " + time.Duration(*seconds*float64(time.Second)).Round(time.Second).String() + " old"
}

func suffix(before, text string) string {
	if text == "" {
		return ""
	}
	return before + strings.ReplaceAll(text, "\n", "; ") // an error text may have several lines
}
