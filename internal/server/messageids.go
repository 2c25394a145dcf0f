package server

import (
	"context"
	"slices"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// mostDecided is the maximum number of users in a response that lists the user ids of a message.
const mostDecided = 1_000_000

// imageOutcomes works like userOutcomes, for ids that are not dense (not 32-bit numbers).
type imageOutcomes struct {
	known []userOutcome
	of    map[capping.UserID]uint16 // index in known
}

// The method take updates the outcomes of users from an audit record of the message.
func (o *imageOutcomes) take(r *audit.Record) {
	for i := range r.Groups {
		g := &r.Groups[i]
		now, known := outcomeOf(g)
		if !known {
			continue
		}
		place := slices.Index(o.known, now)
		if place < 0 {
			place = len(o.known)
			o.known = append(o.known, now)
		}
		all := r.Kind == audit.Release && r.Channel == 0 // the record contains users of every channel
		for user := range g.All() {
			before, asked := o.of[user]
			switch {
			case asked && o.known[before].kind == audit.Allowed && now.yields():
			case all && (!asked || !o.known[before].mayHold()):
			default:
				o.of[user] = uint16(place)
			}
		}
	}
}

func (o *imageOutcomes) each(yield func(o userOutcome, users []capping.UserID)) {
	const most = 4096
	users := make([][]capping.UserID, len(o.known))
	for user, place := range o.of {
		if users[place] = append(users[place], user); len(users[place]) == most {
			yield(o.known[place], users[place])
			users[place] = users[place][:0]
		}
	}
	for place, rest := range users {
		if len(rest) > 0 {
			yield(o.known[place], rest)
		}
	}
}

// MessageIDs works like Message, for ids that are not dense (not 32-bit numbers). The argument "name" is a function
// that appends the text of a user id to its argument dst.
func (r *auditReader) MessageIDs(
	ctx context.Context, message capping.Message, channel capping.Channel,
	name func(dst []byte, user capping.UserID) []byte,
) (*api.DecidedIDs, error) {
	if r.Records == nil {
		return nil, noAudit()
	}
	answer := &api.DecidedIDs{MessageID: message.ID, Namespace: message.Namespace, Channel: r.channelName(channel),
		Allowed: []string{}, Denied: map[string][]string{}, Released: []string{}, Unavailable: []string{}}
	found := &imageOutcomes{of: map[capping.UserID]uint16{}}
	var err error
	if answer.Faults, err = r.calls(ctx, message, channel, found.take); err != nil {
		return nil, err
	}
	if len(found.of) > mostDecided {
		return nil, wire.NewFailure(api.CodeConflict, "the message has more than %d users: list them with capper "+
			"audit export", mostDecided)
	}
	users := make([]capping.UserID, 0, len(found.of))
	for user := range found.of {
		users = append(users, user)
	}
	slices.Sort(users)
	var text []byte
	for _, user := range users {
		text = name(text[:0], user)
		id := string(text)
		switch o := found.known[found.of[user]]; o.kind {
		case audit.Allowed:
			answer.Allowed = append(answer.Allowed, id)
		case audit.Denied:
			answer.Denied[o.limit] = append(answer.Denied[o.limit], id)
		case audit.Released:
			answer.Released = append(answer.Released, id)
		default:
			answer.Unavailable = append(answer.Unavailable, id)
		}
	}
	return answer, nil
}
