package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/verify"
	"capper/internal/capping"
	"capper/internal/terminal"
)

// verifyCommand is the command `capper audit verify`.
type verifyCommand struct {
	Place
	Span
	Segments      string `placeholder:"DIR|s3://…" help:"Location of the published segments: a directory or s3://bucket/prefix. Default: segments.source in the file of --config."`
	Generation    string `placeholder:"NAME" help:"Generation (published version of all segments and sets) that the command uses for every recorded call. Default: the generation that the service used for each call."`
	FilesOnly     bool   `help:"Check only the audit files for damage; do not check the recorded sends against the limits."`
	AcceptedUntil moment `placeholder:"TIME" help:"Accept sends up to this time that exceeded a limit. The command counts these sends, but does not report them as findings. They still count towards the limits of later sends."`
	Metrics       string `placeholder:"FILE" help:"Output file for the result as Prometheus metrics. The Prometheus node exporter can read this file with its textfile collector."`
	JSON          bool   `help:"Print the result as JSON."`
	StoreFlags
}

// The constant uploading is the maximum time between the upload of an audit file and the upload of its index entry.
const uploading = 15 * time.Second

// Help returns the help text below the flags.
func (c *verifyCommand) Help() string {
	return "The exit status is 8 if the command has findings. Findings are damaged files, missing files or records, " +
		"records that a service lost, unknown objects, and sends that certainly exceeded a limit. The command does " +
		"not check sends before --since.\n\n" +
		"With --store, the command compares the audit with the store of the running service at --url, as far back as " +
		"the longest window of all limits. Sends that the store has lost are findings, too. The command shows the " +
		"time of each missing send and its place in the store, and changes nothing. The API key needs the scope " +
		"read, and must have no namespace. The exit status is 4 if there are no findings, but the store did not " +
		"answer about some sends."
}

// The method Run verifies the audit and prints the findings.
func (c *verifyCommand) Run(ctx context.Context, on *terminal.Streams) error {
	since, until, err := c.instants(time.Now())
	if err != nil {
		return terminal.Misuse(err)
	}
	accepted := c.AcceptedUntil.Instant(time.Now())
	if accepted > capping.InstantOf(time.Now()) {
		return terminal.Misuse(fmt.Errorf("--accepted-until %s must not be in the future", c.AcceptedUntil.text))
	}
	if err := c.StoreFlags.check(&c.Span); err != nil {
		return terminal.Misuse(err)
	}
	from, err := c.archive(ctx)
	if err != nil {
		return err
	}
	generations, err := c.generations(ctx, c.Segments, from.IDs())
	if err != nil {
		return err
	}
	begun := time.Now()
	report, err := c.verify(ctx, on, from, verify.Config{
		Since: since, Until: until, Segments: generations, Generation: c.Generation, OnlyFiles: c.FilesOnly,
		AcceptedUntil: accepted, Name: c.name(ctx, on, from.IDs()), Uploading: uploading,
	})
	if err != nil {
		return err
	}
	if c.Metrics != "" {
		if err := writeMetrics(c.Metrics, report, begun, time.Now()); err != nil {
			return err
		}
	}
	if c.JSON {
		err = terminal.JSON(on.Out, report)
	} else {
		err = printReport(on, report, time.Since(begun))
	}
	if err != nil {
		return err
	}
	return verdict(report)
}

// The method "name" returns a function that returns the id of a user, for the output of findings.
func (c *verifyCommand) name(ctx context.Context, on *terminal.Streams, ids audit.IDs) archive.Name {
	names := Names{Segments: c.Segments}
	return names.late(ctx, on, &c.Place, ids)
}

// The method "verify" checks the audit. With the flag --store, the method also compares the audit with the store.
func (c *verifyCommand) verify(
	ctx context.Context, on *terminal.Streams, from *archive.Archive, config verify.Config,
) (*verify.Report, error) {
	if !c.Store {
		return verify.Check(ctx, from, config)
	}
	store, err := c.StoreFlags.open(ctx, on, &c.Place, from.IDs(), config.Name)
	if err != nil {
		return nil, err
	}
	defer store.close()
	config.Store = store.questions()
	report, err := verify.Check(ctx, from, config)
	return report, errors.Join(err, store.finish(err))
}

// The function "verdict" returns the error with which the command ends: nil if the verification has no findings.
func verdict(r *verify.Report) error {
	switch {
	case !r.Healthy():
		err := terminal.WithStatus(terminal.Findings, errors.New("the audit has findings: "+found(r)))
		if r.Found[verify.NotInStore] > 0 {
			return terminal.Hinted(err, "users of the missing sends may receive more than their limits: see "+
				"docs/audit.md, Is the store whole?")
		}
		return err
	case r.Store != nil && r.Store.Unanswered > 0:
		err := fmt.Errorf("the store did not answer for %d of %d sends", r.Store.Unanswered,
			r.Store.Asked+r.Store.Unanswered)
		return terminal.Hinted(terminal.WithStatus(terminal.Undecided, err), StatusSays)
	}
	return nil
}

// The function "found" returns a text with the number of findings of each kind in the verification of the audit.
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
		if f.Kind == verify.NotInStore {
			text += fmt.Sprintf(
				": user %s, message %s, channel %s, %s, %s",
				f.User,
				namespaced(f.Namespace, f.Message),
				shown(f.Channel),
				f.At.Format(milliseconds),
				f.Place,
			)
		}
		if f.Kind == verify.OverSend {
			text += fmt.Sprintf(": message %s, channel %s, %s (record %d of instance %s)", f.Message, shown(f.Channel),
				f.At.Format(milliseconds), f.Sequence, f.Instance)
		}
		fmt.Fprintln(on.Out, terminal.Escape(text))
	}
	for kind, n := range r.Found {
		if n > verify.MaxListed {
			fmt.Fprintf(on.Out, "%s: %d more are not listed\n", kind, n-verify.MaxListed)
		}
	}
	if r.Store != nil {
		if err := printStore(on, r.Store); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(on.Out, "note: "+terminal.Escape(note))
	}
	if r.Accepted > 0 {
		fmt.Fprintf(on.Out, "note: %d sends above a limit up to --accepted-until are accepted\n", r.Accepted)
	}
	_, err := fmt.Fprintf(on.Out, "%d files closed and %d open, %d bytes; %d records, %d sends; %d over-sends; %d "+
		"other findings; in %s\n",
		r.Files, r.Open, r.Bytes, r.Records, r.Sends, r.Found[verify.OverSend], others(r),
		took.Round(10*time.Millisecond))
	return err
}

// The function "others" returns the number of all findings except sends above a limit.
func others(r *verify.Report) (n int) {
	for kind, count := range r.Found {
		if kind != verify.OverSend {
			n += count
		}
	}
	return n
}

// The function "namespaced" returns a text that names a message by its namespace and id.
func namespaced(namespace, message string) string {
	if namespace == "" {
		return message
	}
	return namespace + "/" + message
}
