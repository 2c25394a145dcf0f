package server

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// Records is what the audit holds; see archive.Archive.
type AuditRecords interface {
	Records(ctx context.Context, q archive.Query) iter.Seq2[*audit.Record, error]
}

// Reader answers. It is safe for concurrent use.
type auditReader struct {
	Records AuditRecords // nil: there is no audit
	Policy  func() *capping.Policy
}

// The bounds of what is told of a user.
const (
	mostDecisions = 1000
	mostFaults    = 5
	step          = 24 * time.Hour // of the audit is read at a time, from now backwards
)

// User is what was decided of a user since then, as of now. It ends with its context, and
// tells what it found until then. To a caller with a namespace it does not tell which clients
// and keys of others asked.
func (r *auditReader) User(
	ctx context.Context, namespace string, user capping.UserID, since, now time.Time,
) (*api.Decisions, error) {
	told, err := r.user(ctx, user, since, now)
	if err != nil || namespace == "" {
		return told, err
	}
	for i := range told.Decisions {
		if d := &told.Decisions[i]; d.Namespace != namespace {
			d.Client, d.Key = "", ""
		}
	}
	return told, nil
}

func (r *auditReader) user(ctx context.Context, user capping.UserID, since, now time.Time) (*api.Decisions, error) {
	if r.Records == nil {
		return nil, noAudit()
	}
	told := &api.Decisions{UserID: user, Since: now, Decisions: []api.Decision{}}
	for until := now.Add(time.Hour); until.After(since) && !told.More; { // of clocks that are ahead, too
		from := until.Add(-step)
		if from.Before(since) {
			from = since
		}
		found, err := r.span(ctx, told, archive.Query{User: &user, Since: capping.InstantOf(from),
			Until: capping.InstantOf(until)})
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, unreadable(err)
		case err != nil || len(told.Decisions)+len(found) > mostDecisions:
			told.More = true
		default:
			told.Since = from
		}
		told.Decisions, until = slices.Insert(told.Decisions, 0, found...), from
	}
	if more := len(told.Decisions) - mostDecisions; more > 0 {
		told.Decisions = told.Decisions[more:]
		told.Since = told.Decisions[0].At
	}
	return told, nil
}

// span reads the records of a time. Files that cannot be read go into the faults.
func (r *auditReader) span(
	ctx context.Context,
	told *api.Decisions,
	q archive.Query,
) (found []api.Decision, err error) {
	for record, err := range r.Records.Records(ctx, q) {
		if err != nil {
			if !tolerable(err) {
				return found, err
			}
			told.Faults = addFault(told.Faults, err)
			continue
		}
		if group := archive.GroupOf(record, *q.User); group != nil {
			found = append(found, r.decision(record, group))
		}
	}
	return found, ctx.Err()
}

// tolerable reports whether the error is of one file, and others can be read.
func tolerable(err error) bool {
	var file *archive.FileError
	return errors.As(err, &file)
}

func addFault(faults []string, err error) []string {
	if text := err.Error(); len(faults) < mostFaults && !slices.Contains(faults, text) {
		return append(faults, text)
	}
	return faults
}

func (r *auditReader) decision(record *audit.Record, group *audit.Group) api.Decision {
	return api.Decision{
		At: record.At.Time(), Kind: record.Kind.String(), Outcome: group.Outcome.String(), MessageID: record.Message.ID,
		Namespace: record.Message.Namespace,
		Channel:   r.channelName(record.Channel), Limit: group.Limit, Set: group.Set, Exempt: record.Exempt,
		Client: record.Client, Key: record.Key, Generation: record.Generation, ConfigVersion: record.Config,
	}
}

// channelName is the channel as the configuration calls it now; "" for none and for one
// that it does not have any more.
func (r *auditReader) channelName(channel capping.Channel) string {
	for name, number := range r.Policy().Channels {
		if number == channel {
			return name
		}
	}
	return ""
}

// noAudit is what a caller is told where nothing is recorded.
func noAudit() error {
	return wire.NewFailure(
		api.CodeConflict,
		"no audit is configured: set the configuration key audit to record decisions",
	)
}

// unreadable is what a caller is told when the audit's place does not answer.
func unreadable(err error) error {
	f := wire.NewFailure(api.CodeUnavailable, "the audit could not be read: the log of the service shows the reason")
	f.Cause = err
	return f
}
