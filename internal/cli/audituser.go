package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/terminal"
)

// userCommand is the command `capper audit user USER`.
type userCommand struct {
	Place
	Span
	Names
	User string `arg:"" help:"User id, or a name such as image:5f1c0b7e22a94d31, which an export of the audit shows for a user whose id is unknown."`
	JSON bool   `help:"Print one JSON object per line."`
}

// Help returns the help text below the flags.
func (c *userCommand) Help() string {
	return "Lists all filter calls about the user (except previews), all releases (cancelled sends), and all changes " +
		"of sets by API calls. The outcome of a filter call is allowed, replayed (an earlier call had recorded the " +
		"send), denied (by a limit or set) or unavailable (no decision). The outcome of a release is released or " +
		"absent (there was no send to cancel). The outcome of a change of a set is added, removed or " +
		"change_unavailable (result unknown). If the user was erased, the list omits all records from before the " +
		"erasure."
}

// The method Run prints all recorded decisions about the user.
func (c *userCommand) Run(ctx context.Context, on *terminal.Streams) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	from, err := c.archive(ctx)
	if err != nil {
		return err
	}
	user, text, err := c.Names.user(ctx, &c.Place, from.IDs(), c.User)
	if err != nil {
		return err
	}
	q.User, q.Kinds = &user, kinds()
	r := &reading{archive: from}
	rows := [][]any{{"TIME", "MESSAGE", "NAMESPACE", "CHANNEL", "OUTCOME", "BY", "GENERATION", "CONFIG", "CALLER"}}
	err = r.each(ctx, q, func(record *audit.Record) error {
		g := archive.GroupOf(record, user)
		row := archive.RowOf(record, g, r.channel(ctx, record))
		if row.UserID = int64(user); c.JSON && from.IDs().Dense() {
			return jsonLine(on, row)
		} else if c.JSON {
			return jsonLine(on, archive.NamedRowOf(record, g, row.Channel, text))
		}
		rows = append(rows, userRow(&row, record, g))
		return nil
	})
	if err != nil {
		return err
	}
	if !c.JSON && (len(rows) > 1 || len(r.faults) == 0) { // a damaged file may contain more calls
		if err := printRows(on, rows, fmt.Sprintf("the audit has no decision about user %s in this period",
			text)); err != nil {
			return err
		}
	}
	return damaged(r.faults)
}

func userRow(row *archive.Row, record *audit.Record, g *audit.Group) []any {
	outcome := row.Outcome
	if row.Exempt && g.Outcome == audit.Allowed {
		outcome += " (exempt)"
	}
	if c := record.Change; c != nil {
		if since := record.At.Time().Sub(c.At.Time()); since > time.Second {
			outcome += " (since " + row.At + ")"
		}
		return []any{row.Time, "-", "-", "-", outcome, c.Set, row.Generation, row.Config, caller(row.Client, row.KeyID)}
	}
	channel := shown(row.Channel)
	if record.Kind == audit.Release && record.Channel == 0 {
		channel = "all"
	}
	return []any{row.Time, row.MessageID, shown(row.Namespace), channel, outcome, by(g), row.Generation, row.Config,
		caller(row.Client, row.KeyID)}
}

// printRows prints a table whose first row is the header. If the table has only the header, printRows prints the
// argument "nothing" instead.
func printRows(on *terminal.Streams, rows [][]any, nothing string) error {
	if len(rows) == 1 {
		_, err := fmt.Fprintln(on.Out, nothing)
		return err
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// jsonLine prints a value as one line of NDJSON (a JSON object per line).
func jsonLine(on *terminal.Streams, v any) error {
	e := json.NewEncoder(on.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
