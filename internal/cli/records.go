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

// milliseconds is the time layout of RFC 3339 with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// reading reads audit records and collects the errors of unreadable files.
type reading struct {
	archive *archive.Archive
	faults  []error
}

// each calls do for each record that the query selects. each skips unreadable files and keeps their errors in faults.
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

// channel returns the name of the record's channel. channel returns "" for no channel, and the number if the policy
// no longer exists.
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

// query returns the query for the records of the time span.
func (s *Span) query() (archive.Query, error) {
	since, until, err := s.instants(time.Now())
	return archive.Query{Since: since, Until: until}, terminal.Misuse(err)
}

// shown returns the text for a table cell, or a dash for an empty text.
func shown(text string) string { return cmp.Or(text, "-") }

// caller returns the client of a call, and its key if the key has another id.
func caller(client, key string) string {
	if key == "" || key == client {
		return shown(client)
	}
	return client + "/" + key
}

// by returns the reason for a denial: the limit, or the kind of denial with its set.
func by(g *audit.Group) string {
	if g.Set != "" {
		return g.Limit + ": " + g.Set
	}
	return shown(g.Limit)
}

// kinds returns the kinds of records that have users.
func kinds() []audit.Kind {
	return slices.Clone([]audit.Kind{audit.Filter, audit.Release, audit.Change})
}

// messageOf returns the message with this namespace and id.
func messageOf(namespace, id string) capping.Message {
	return capping.Message{Namespace: namespace, ID: id}
}
