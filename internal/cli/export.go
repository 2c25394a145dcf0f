package cli

import (
	"context"
	"fmt"
	"io"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/terminal"
)

// exportCommand is the command `capper audit export`.
type exportCommand struct {
	Place
	Span
	Names
	Format string `default:"ndjson" enum:"ndjson,parquet" help:"Output format: ndjson (one JSON object per line) or parquet."`
	Out    string `placeholder:"FILE" help:"Output file, which appears only when the export is complete. Default: standard output."`
}

// Help returns the help text below the flags.
func (c *exportCommand) Help() string {
	return "The rows have these columns: user_id, time, took_ms, kind (filter, release, set_change), message_id, " +
		"namespace, channel, outcome, limit, set, exempt, client, key_id, generation, config_version, instance, " +
		"sequence. In ndjson, rows of the kind set_change also have at and request_id. The rows are in order of " +
		"time. If the command cannot read an audit file, it stops the export.\n\n" +
		"For user ids of other kinds than dense (32-bit numbers), the command reads the ids from the generation in " +
		"use (published version of all segments) at --segments. For a user whose id is not in this generation, " +
		"user_id contains image: and 16 hexadecimal digits."
}

// The method Run writes the recorded decisions as rows to the output.
func (c *exportCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if c.Out == "" {
		return c.write(ctx, on, on.Data())
	}
	if err := terminal.CheckTarget(c.Out); err != nil {
		return terminal.Misuse(err)
	}
	return terminal.WritePrivateFile(c.Out, func(w io.Writer) error { return c.write(ctx, on, w) })
}

// The method "rows" returns a writer that exports audit records as rows in the requested format.
func (c *exportCommand) rows(ctx context.Context, ids audit.IDs, to io.Writer) (archive.Rows, error) {
	if ids.Dense() {
		rows, err := archive.NewWriter(c.Format, to)
		return rows, terminal.Misuse(err)
	}
	name, err := c.Names.names(ctx, &c.Place, ids)
	if err != nil {
		return nil, err
	}
	rows, err := archive.NewNamedWriter(c.Format, to, name)
	return rows, terminal.Misuse(err)
}

func (c *exportCommand) write(ctx context.Context, on *terminal.Streams, to io.Writer) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	q.Kinds = kinds()
	from, err := c.archive(ctx)
	if err != nil {
		return err
	}
	rows, err := c.rows(ctx, from.IDs(), to)
	if err != nil {
		return err
	}
	r := &reading{archive: from}
	err = r.each(ctx, q, func(record *audit.Record) error {
		if len(r.faults) > 0 {
			return damaged(r.faults)
		}
		return rows.Add(record, r.channel(ctx, record))
	})
	if err == nil {
		err = damaged(r.faults)
	}
	if err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return fmt.Errorf("write %s: %w", c.Out, err)
	}
	if c.Out != "" {
		on.Say("%s in %s", terminal.Count(rows.Rows(), "row", "rows"), c.Out)
	}
	return nil
}
