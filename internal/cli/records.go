package cli

import (
	"cmp"
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

// milliseconds is the RFC 3339 time layout with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// The type "reading" reads audit records for a command, and collects the errors of unreadable audit files.
type reading struct {
	archive *archive.Archive
	faults  []error
}

// The method "each" calls the function "do" for every audit record that the query selects. The method "each" skips
// unreadable audit files, and adds their errors to the list of faults.
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

// The method "channel" returns the name of the channel of an audit record, or "" for a record without a channel. If the
// policy of the record is not available, the method "channel" returns the numeric id of the channel.
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

// The method "query" returns a query for the audit records of the period that the flags name.
func (s *Span) query() (archive.Query, error) {
	since, until, err := s.instants(time.Now())
	return archive.Query{Since: since, Until: until}, terminal.Misuse(err)
}

// The function "shown" returns the text for a cell of a table: a dash if the text is empty.
func shown(text string) string { return cmp.Or(text, "-") }

// The function "caller" returns a text that names the client that made a call. If the id of the client's API key
// differs from the client's name, the text also contains the id of the key.
func caller(client, key string) string {
	if key == "" || key == client {
		return shown(client)
	}
	return client + "/" + key
}

// The function "by" returns the reason for the denials in a group of an audit record. The reason is the name of the
// limit, or the kind of denial with the name of the set.
func by(g *audit.Group) string {
	if g.Set != "" {
		return g.Limit + ": " + g.Set
	}
	return shown(g.Limit)
}

// The function "kinds" returns the kinds of audit records that contain users.
func kinds() []audit.Kind {
	return slices.Clone([]audit.Kind{audit.Filter, audit.Release, audit.Change})
}

// messageOf returns the message that the given namespace and id identify.
func messageOf(namespace, id string) capping.Message {
	return capping.Message{Namespace: namespace, ID: id}
}
