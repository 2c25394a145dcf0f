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

// AuditRecords reads the records of the audit; see archive.Archive.
type AuditRecords interface {
	Records(ctx context.Context, q archive.Query) iter.Seq2[*audit.Record, error]
}

// auditReader reads the audit (record of all decisions) for API calls about past decisions. An auditReader is safe for
// concurrent use.
type auditReader struct {
	Records AuditRecords // nil: no audit is configured
	Policy  func() *capping.Policy
}

// These constants limit the size of a response that lists the decisions about a user.
const (
	mostDecisions = 1000
	mostFaults    = 5
	step          = 24 * time.Hour // period of the audit that one step reads; steps go backwards from now
)

// User returns the recorded decisions about a user within a period. If the context ends early, User returns the
// decisions that it has found so far. If the caller has a namespace, User removes the client and the API key from
// decisions of other namespaces.
func (r *auditReader) User(
	ctx context.Context, namespace string, user capping.UserID, since, now time.Time,
) (*api.Decisions, error) {
	answer, err := r.user(ctx, user, since, now)
	if err != nil || namespace == "" {
		return answer, err
	}
	for i := range answer.Decisions {
		if d := &answer.Decisions[i]; d.Namespace != namespace {
			d.Client, d.Key = "", ""
		}
	}
	return answer, nil
}

func (r *auditReader) user(ctx context.Context, user capping.UserID, since, now time.Time) (*api.Decisions, error) {
	if r.Records == nil {
		return nil, noAudit()
	}
	answer := &api.Decisions{UserID: capping.Dense(user), Since: now, Decisions: []api.Decision{}}
	for until := now.Add(time.Hour); until.After(since) && !answer.More; { // one hour because of clocks that are ahead
		from := until.Add(-step)
		if from.Before(since) {
			from = since
		}
		found, err := r.span(ctx, answer, archive.Query{User: &user, Since: capping.InstantOf(from),
			Until: capping.InstantOf(until)})
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, unreadable(err)
		case err != nil || len(answer.Decisions)+len(found) > mostDecisions:
			answer.More = true
		default:
			answer.Since = from
		}
		answer.Decisions, until = slices.Insert(answer.Decisions, 0, found...), from
	}
	if more := len(answer.Decisions) - mostDecisions; more > 0 {
		answer.Decisions = answer.Decisions[more:]
		answer.Since = answer.Decisions[0].At
	}
	return answer, nil
}

// The method span collects the decisions about a user from the audit records of a period. The faults in the response to
// the caller name the audit files that could not be read.
func (r *auditReader) span(
	ctx context.Context,
	answer *api.Decisions,
	q archive.Query,
) (found []api.Decision, err error) {
	for record, err := range r.Records.Records(ctx, q) {
		if err != nil {
			if !tolerable(err) {
				return found, err
			}
			answer.Faults = addFault(answer.Faults, err)
			continue
		}
		if group := archive.GroupOf(record, *q.User); group != nil {
			found = append(found, r.decision(record, group))
		}
	}
	return found, ctx.Err()
}

// The function "tolerable" reports whether an error concerns a single audit file, so that the caller can still read the
// other audit files.
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
	told := api.Decision{
		At: record.At.Time(), Kind: record.Kind.String(), Outcome: group.Outcome.String(), MessageID: record.Message.ID,
		Namespace: record.Message.Namespace,
		Channel:   r.channelName(record.Channel), Limit: group.Limit, Set: group.Set, Exempt: record.Exempt,
		Client: record.Client, Key: record.Key, Generation: record.Generation, ConfigVersion: record.Config,
	}
	if record.Change != nil {
		told.Set = record.Change.Set
	}
	return told
}

// channelName returns the current configured name of a channel. If the channel is 0 or was removed from the
// configuration, channelName returns "".
func (r *auditReader) channelName(channel capping.Channel) string {
	for name, number := range r.Policy().Channels {
		if number == channel {
			return name
		}
	}
	return ""
}

// noAudit returns the failure of a call that needs the audit when no audit is configured.
func noAudit() error {
	return wire.NewFailure(
		api.CodeConflict,
		"no audit is configured: set the configuration key audit to record decisions",
	)
}

// The function "unreadable" returns the failure of a call that needs the audit when the audit could not be read.
func unreadable(err error) error {
	f := wire.NewFailure(api.CodeUnavailable, "the audit could not be read: the log of the service shows the reason")
	f.Cause = err
	return f
}
