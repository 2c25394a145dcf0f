package server

import (
	"bytes"
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// userOutcome is the latest outcome that the audit holds for a user of a message.
type userOutcome struct {
	kind  audit.Outcome // Allowed for Replayed, too
	limit string        // name of the limit, for Denied
}

// userOutcomes maps each outcome to the users for whom it is the latest one, in the records read so far. No user has
// two outcomes.
type userOutcomes map[userOutcome]*bitmap.Set

// say moves users to a new outcome.
func (o userOutcomes) say(now userOutcome, users *bitmap.Bitmap) {
	for before, set := range o {
		if before != now {
			set.Subtract(users)
		}
	}
	if o[now] == nil {
		o[now] = new(bitmap.Set)
	}
	o[now].AddBitmap(users)
}

// take applies an audit record of the message to the outcomes. A user who was sent the message keeps that outcome
// when the result of a later call is unknown.
func (o userOutcomes) take(r *audit.Record) {
	for i := range r.Groups {
		g := &r.Groups[i]
		switch g.Outcome {
		case audit.Allowed, audit.Replayed:
			o.say(userOutcome{kind: audit.Allowed}, g.Users)
		case audit.Denied:
			o.say(userOutcome{audit.Denied, g.Limit}, g.Users)
		case audit.Unavailable, audit.Released:
			o.say(userOutcome{kind: g.Outcome}, g.Users)
		}
	}
}

// Message returns the users of a message on a channel, grouped by the latest outcome in the audit records of the
// period.
func (r *auditReader) Message(ctx context.Context, message capping.Message, channel capping.Channel) (*api.DecidedUsers,
	error) {
	if r.Records == nil {
		return nil, noAudit()
	}
	answer := &api.DecidedUsers{MessageID: message.ID, Namespace: message.Namespace, Channel: r.channelName(channel),
		DeniedBitmaps: map[string]api.Bitmap{}}
	found := userOutcomes{}
	var err error
	if answer.Faults, err = r.calls(ctx, message, channel, found.take); err != nil {
		return nil, err
	}
	for o, set := range found {
		users, err := wireBitmap(set.Bitmap())
		if err != nil {
			return nil, err
		}
		switch o.kind {
		case audit.Allowed:
			answer.AllowedBitmap = users
		case audit.Denied:
			answer.DeniedBitmaps[o.limit] = users
		case audit.Released:
			answer.ReleasedBitmap = users
		default:
			answer.UnavailableBitmap = users
		}
	}
	return answer, nil
}

// calls calls take for each audit record of a message on a channel, in the order of time. The faults name unreadable
// files.
func (r *auditReader) calls(
	ctx context.Context, message capping.Message, channel capping.Channel, take func(*audit.Record),
) (faults []string, err error) {
	q := archive.Query{Message: &message, Channel: channel, Kinds: []audit.Kind{audit.Filter, audit.Release}}
	for record, err := range r.Records.Records(ctx, q) {
		switch {
		case err != nil && !tolerable(err):
			return nil, unreadable(err)
		case err != nil:
			faults = addFault(faults, err)
		case record.Channel == channel || record.Kind == audit.Release && record.Channel == 0:
			take(record)
		}
	}
	return faults, nil
}

// wireBitmap converts a bitmap to the form used in answers.
func wireBitmap(users *bitmap.Bitmap) (api.Bitmap, error) {
	b := roaring.New()
	_, err := b.ReadFrom(bytes.NewReader(users.Bytes()))
	return api.Bitmap{Bitmap: b}, err
}
