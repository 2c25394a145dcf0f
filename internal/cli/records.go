package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/terminal"
)

// milliseconds is RFC 3339 to the millisecond.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// reading goes through records, and keeps what could not be read.
type reading struct {
	archive *archive.Archive
	faults  []error
}

// each calls do with the records that are asked for. Files that cannot be read are left out,
// and kept in faults.
func (r *reading) each(ctx context.Context, q archive.Query, do func(*audit.Record) error) error {
	for record, err := range r.archive.Records(ctx, q) {
		var about *archive.FileError
		switch {
		case errors.As(err, &about):
			r.faults = append(r.faults, err)
		case err != nil:
			return err
		default:
			if err := do(record); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// channel is the name of the record's channel: "" for none, its number where the policy is gone.
func (r *reading) channel(ctx context.Context, record *audit.Record) string {
	if record.Channel == 0 {
		return ""
	}
	policy, err := r.archive.Policy(ctx, record.Config)
	if err != nil {
		return strconv.Itoa(int(record.Channel))
	}
	return policy.ChannelName(record.Channel)
}

// query is the records of a span.
func (s *Span) query() (archive.Query, error) {
	since, until, err := s.instants(time.Now())
	return archive.Query{Since: since, Until: until}, terminal.Misuse(err)
}

// shown is a text of a table, in which nothing would be no cell.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// caller is who called: the client, and its key where that has another id.
func caller(client, key string) string {
	if key == "" || key == client {
		return shown(client)
	}
	return client + "/" + key
}

// by is what denied: the limit, or the reason with its set.
func by(g *audit.Group) string {
	if g.Set != "" {
		return g.Limit + ": " + g.Set
	}
	return shown(g.Limit)
}

// kinds are those of records with users.
func kinds() []audit.Kind { return slices.Clone([]audit.Kind{audit.Filter, audit.Release}) }

// messageOf is a message by its id and namespace.
func messageOf(namespace, id string) capping.Message {
	return capping.Message{Namespace: namespace, ID: id}
}
