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

// userOutcome is the latest outcome that the audit records for a user of a message, such as allowed or denied.
type userOutcome struct {
	kind  audit.Outcome // Allowed also stands for Replayed
	limit string        // name of the limit, for Denied
	set   string        // set that suppresses the users, for Denied by suppression
}

// outcomeOf returns the outcome of the users in one group of an audit record. The result "known" is false if the
// group does not change the outcome of its users.
func outcomeOf(g *audit.Group) (now userOutcome, known bool) {
	switch g.Outcome {
	case audit.Allowed, audit.Replayed:
		return userOutcome{kind: audit.Allowed}, true
	case audit.Denied:
		return userOutcome{audit.Denied, g.Limit, g.Set}, true
	case audit.Unavailable, audit.Released:
		return userOutcome{kind: g.Outcome}, true
	}
	return userOutcome{}, false
}

// The method "yields" reports whether an earlier send of the message takes precedence over the outcome o. If a user has
// a recorded send, a later denial or an unknown result does not change the user's outcome "allowed".
func (o userOutcome) yields() bool { return o.kind == audit.Denied || o.kind == audit.Unavailable }

// mayHold reports whether a user with the outcome may have a recorded send of the message.
func (o userOutcome) mayHold() bool { return o.kind == audit.Allowed || o.kind == audit.Unavailable }

// The interface outcomes holds the latest outcome of each user of a message on one channel, according to the audit
// records read so far. A user with a recorded send that was not released has the outcome "allowed", even if a later
// call denied the message.
type outcomes interface {
	take(r *audit.Record)
	// The method each calls yield with the users of each outcome, some thousands of users at a time. Each user has one
	// outcome. After a call of the method each, nobody may call the method take. The slice users is valid until yield
	// returns.
	each(yield func(o userOutcome, users []capping.UserID))
}

var (
	_ outcomes = userOutcomes(nil)
	_ outcomes = (*imageOutcomes)(nil)
)

// userOutcomes maps each outcome of a message to a bitmap of users, if ids are dense (32-bit numbers). Before the call
// of settle(), a user with a send may be in the bitmaps of several outcomes.
type userOutcomes map[userOutcome]*bitmap.Set

// The method say moves users from the bitmaps of their earlier outcomes into the bitmap of a new outcome.
func (o userOutcomes) say(now userOutcome, users *bitmap.Bitmap) {
	for before, set := range o {
		if before != now && (before.kind != audit.Allowed || !now.yields()) {
			set.Subtract(users)
		}
	}
	if o[now] == nil {
		o[now] = new(bitmap.Set)
	}
	o[now].AddBitmap(users)
}

// The method take updates the outcomes of users from an audit record of the message.
func (o userOutcomes) take(r *audit.Record) {
	for i := range r.Groups {
		now, known := outcomeOf(&r.Groups[i])
		if !known {
			continue
		}
		users := r.Groups[i].Users
		if r.Kind == audit.Release && r.Channel == 0 {
			users = o.holders(users)
		}
		o.say(now, users)
	}
}

// The method "holders" returns the given users who, according to their outcome, may have a send on the channel. The
// method take calls "holders" because the audit record of a release on all channels contains users of every channel.
func (o userOutcomes) holders(users *bitmap.Bitmap) *bitmap.Bitmap {
	var found bitmap.Set
	for before, set := range o {
		if before.mayHold() {
			found.Union(set)
		}
	}
	found.Intersect(users)
	return found.Bitmap()
}

// The method settle gives each user one outcome. The method settle removes users who have a send from the bitmaps of
// the outcomes "denied" and "unavailable".
func (o userOutcomes) settle() {
	sent := o[userOutcome{kind: audit.Allowed}]
	if sent == nil {
		return
	}
	users := sent.Bitmap()
	for now, set := range o {
		if now.yields() {
			set.Subtract(users)
		}
	}
}

func (o userOutcomes) each(yield func(o userOutcome, users []capping.UserID)) {
	o.settle()
	var ids []uint32
	var users []capping.UserID
	for now, set := range o {
		all := set.Bitmap()
		for i := range all.Filled() {
			ids = all.AppendAt(ids[:0], i)
			users = capping.AppendUsers(users[:0], ids)
			yield(now, users)
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
	found.settle()
	for o, set := range found {
		users, err := wireBitmap(set.Bitmap())
		if err != nil {
			return nil, err
		}
		switch o.kind {
		case audit.Allowed:
			answer.AllowedBitmap = users
		case audit.Denied:
			if others := answer.DeniedBitmaps[o.limit].Bitmap; others != nil { // users whom another set suppresses
				users.Or(others)
			}
			answer.DeniedBitmaps[o.limit] = users
		case audit.Released:
			answer.ReleasedBitmap = users
		default:
			answer.UnavailableBitmap = users
		}
	}
	return answer, nil
}

// The method "calls" passes each audit record of a message on a channel to the function "take", from the earliest to
// the latest. The returned faults name the audit files that could not be read.
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

// wireBitmap converts a bitmap of users to the type that API responses use.
func wireBitmap(users *bitmap.Bitmap) (api.Bitmap, error) {
	b := roaring.New()
	_, err := b.ReadFrom(bytes.NewReader(users.Bytes()))
	return api.Bitmap{Bitmap: b}, err
}
