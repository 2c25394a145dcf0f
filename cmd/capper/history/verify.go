package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/internal/audit/verify"
	"capper/internal/terminal"
)

// VerifyCommand is `capper audit verify`.
type VerifyCommand struct {
	Place
	Span
	Segments   string `placeholder:"DIR|s3://…" help:"Where generations are published. Default: segments.source of --config."`
	Generation string `placeholder:"NAME" help:"The generation that says who is in which segment, in the place of those that records name."`
	FilesOnly  bool   `help:"Check files, and do not judge sends."`
	JSON       bool   `help:"Answer as JSON, for machines."`
}

// Help is printed below the flags.
func (c *VerifyCommand) Help() string {
	return "Ends with 8 when something is not as it should be: damage, files or records that are missing, records that a service could not keep, objects that no audit has, " +
		"and sends that a limit forbade, of which those are told that are certain. Sends from before --since do not count."
}

// Run prints what was found.
func (c *VerifyCommand) Run(ctx context.Context, on *terminal.Streams) error {
	since, until, err := c.instants(time.Now())
	if err != nil {
		return terminal.Misuse(err)
	}
	from, err := c.archive(ctx)
	if err != nil {
		return err
	}
	generations, err := c.generations(ctx, c.Segments)
	if err != nil {
		return err
	}
	begun := time.Now()
	report, err := verify.Check(ctx, from, verify.Config{Since: since, Until: until, Segments: generations, Generation: c.Generation, OnlyFiles: c.FilesOnly})
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.JSON(on.Out, report)
	} else {
		err = printReport(on, report, time.Since(begun))
	}
	if err != nil || report.Healthy() {
		return err
	}
	return terminal.WithStatus(terminal.Findings, errors.New("not as it should be: "+found(report)))
}

// found counts the findings by kind.
func found(r *verify.Report) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(r.Found)) {
		list = append(list, fmt.Sprintf("%d %s", r.Found[kind], kind))
	}
	return strings.Join(list, ", ")
}

func printReport(on *terminal.Streams, r *verify.Report, took time.Duration) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		text := f.Kind + ": "
		if f.Key != "" {
			text += f.Key + ": "
		}
		text += f.Text
		if f.Kind == verify.OverSend {
			text += fmt.Sprintf(": message %s, channel %s, %s (record %d of instance %s)", f.Message, shown(f.Channel), f.At.Format(milliseconds), f.Sequence, f.Instance)
		}
		fmt.Fprintln(on.Out, terminal.Escape(text))
	}
	for kind, n := range r.Found {
		if n > verify.MaxListed {
			fmt.Fprintf(on.Out, "%s: %d more are not listed\n", kind, n-verify.MaxListed)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(on.Out, "note: "+terminal.Escape(note))
	}
	_, err := fmt.Fprintf(on.Out, "%d files closed and %d open, %d bytes; %d records, %d sends; %d over-sends; %d other findings; in %s\n",
		r.Files, r.Open, r.Bytes, r.Records, r.Sends, r.Found[verify.OverSend], others(r), took.Round(10*time.Millisecond))
	return err
}

// others counts the findings but over-sends.
func others(r *verify.Report) (n int) {
	for kind, count := range r.Found {
		if kind != verify.OverSend {
			n += count
		}
	}
	return n
}
