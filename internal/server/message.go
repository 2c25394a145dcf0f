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

// outcome is what the audit says last of a user of a message.
type userOutcome struct {
	kind  audit.Outcome // Allowed for Replayed, too
	limit string        // of Denied
}

// outcomes are users by what is said last of them, as far as records have been read. They
// share no user.
type userOutcomes map[userOutcome]*bitmap.Set

// say moves users to what is said of them now.
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

// take reads a record of the message. What says nothing new of a user is passed over: one
// who has a send keeps it, whatever is not known of a later call.
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

// Message is the users of a message on a channel by what the audit says last of each, in
// the records since then.
func (r *auditReader) Message(ctx context.Context, message capping.Message, channel capping.Channel) (*api.DecidedUsers,
	error) {
	if r.Records == nil {
		return nil, noAudit()
	}
	told := &api.DecidedUsers{MessageID: message.ID, Namespace: message.Namespace, Channel: r.channelName(channel),
		DeniedBitmaps: map[string]api.Bitmap{}}
	q := archive.Query{Message: &message, Channel: channel, Kinds: []audit.Kind{audit.Filter, audit.Release}}
	found := userOutcomes{}
	for record, err := range r.Records.Records(ctx, q) {
		switch {
		case err != nil && !tolerable(err):
			return nil, unreadable(err)
		case err != nil:
			told.Faults = addFault(told.Faults, err)
		case record.Channel == channel || record.Kind == audit.Release && record.Channel == 0:
			found.take(record)
		}
	}
	for o, set := range found {
		users, err := wireBitmap(set.Bitmap())
		if err != nil {
			return nil, err
		}
		switch o.kind {
		case audit.Allowed:
			told.AllowedBitmap = users
		case audit.Denied:
			told.DeniedBitmaps[o.limit] = users
		case audit.Released:
			told.ReleasedBitmap = users
		default:
			told.UnavailableBitmap = users
		}
	}
	return told, nil
}

// wire is a bitmap as answers have it.
func wireBitmap(users *bitmap.Bitmap) (api.Bitmap, error) {
	b := roaring.New()
	_, err := b.ReadFrom(bytes.NewReader(users.Bytes()))
	return api.Bitmap{Bitmap: b}, err
}
