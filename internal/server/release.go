package server

import (
	"context"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// Audit is where it stands to whom messages were sent. It is safe for concurrent use.
type Audit interface {
	// Flush returns when what this instance recorded before can be read.
	Flush(ctx context.Context) error
	// Grants are who holds sends of the message; see archive.Archive.
	Grants(ctx context.Context, message capping.Message, channel capping.Channel) ([]archive.Grants, error)
}

// part is what one step of a release did. Its slices are its taker's.
type part struct {
	Message capping.Message
	Channel capping.Channel // 0: all
	Users   []capping.UserID
	Results []capping.Released
	Err     error // why some are unavailable
	At      time.Time
	Took    time.Duration
}

// partUsers is how many users a step of a release has.
const partUsers = 100_000

// release is a release of a message under way.
type release struct {
	*Messages
	message capping.Message
	until   time.Time // from when on no step is begun
	took    func(*part)
	answer  *api.ReleasedMessage
	left    int64 // users whom no step has reached
}

// Release gives back the sends of the message of an id on a channel, "" on all, as many as it can before the
// deadline of ctx. took is told of each step.
func (m *Messages) Release(ctx context.Context, c caller, id, channel string, took func(*part)) (*api.ReleasedMessage,
	error) {
	message, err := c.Message(id)
	if err != nil || m.Counts == nil {
		return nil, orNotCounted(err)
	}
	number, err := wire.ChannelOf(channel, m.Capper.Policy())
	if err != nil {
		return nil, err
	}
	grants, err := m.grants(ctx, message, number)
	if err != nil {
		return nil, err
	}
	r := release{Messages: m, message: message, took: took, answer: &api.ReleasedMessage{MessageID: id,
		Channel: channel}}
	if deadline, bounded := ctx.Deadline(); bounded {
		r.until = m.Clock().Add(time.Until(deadline) * 2 / 3)
	}
	for i := range grants {
		r.giveBack(ctx, &grants[i])
	}
	return r.answer, r.count(ctx, number)
}

// grants are who holds sends of the message, those without a channel last: they are given back by a release of all
// channels.
func (m *Messages) grants(ctx context.Context, message capping.Message, channel capping.Channel) ([]archive.Grants,
	error) {
	if m.Audit == nil {
		return nil, wire.NewFailure(api.CodeConflict, "the users of the message are unknown, because no audit is "+
			"configured (audit.to): give the users to POST /v1/release instead")
	}
	if err := m.Audit.Flush(ctx); err != nil {
		return nil, wire.AuditFailure(ctx, err)
	}
	grants, err := m.Audit.Grants(ctx, message, channel)
	if err != nil {
		return nil, wire.AuditFailure(ctx, err)
	}
	slices.SortFunc(grants, func(a, b archive.Grants) int { return int(a.Channel-1) - int(b.Channel-1) })
	return grants, nil
}

// giveBack gives back the sends on one channel.
func (r *release) giveBack(ctx context.Context, g *archive.Grants) {
	for _, users := range [][]capping.UserID{g.Users.IDs(), g.Unknown.IDs()} {
		r.answer.Found += int64(len(users))
		for part := range slices.Chunk(users, partUsers) {
			if ctx.Err() != nil || !r.until.IsZero() && r.Clock().After(r.until) {
				r.left += int64(len(part))
				continue
			}
			r.step(ctx, g.Channel, part)
		}
	}
}

// step gives back the sends of some users.
func (r *release) step(ctx context.Context, channel capping.Channel, users []capping.UserID) {
	part := &part{Message: r.message, Channel: channel, Users: users, At: r.Clock()}
	began := time.Now()
	part.Results, part.Err = r.Capper.Release(ctx, r.message, channel, users)
	part.Took = time.Since(began)
	for _, result := range part.Results {
		switch result {
		case capping.ReleaseDone:
			r.answer.Released++
		case capping.ReleaseAbsent:
			r.answer.Absent++
		default:
			r.answer.Unavailable++
		}
	}
	r.took(part)
}

// count finds out how many sends are not given back yet, and whether there is such a message at all.
func (r *release) count(ctx context.Context, channel capping.Channel) error {
	found, err := r.Counts.MessageCounts(ctx, r.message)
	if err != nil {
		return wire.StoreFailure(ctx, err)
	}
	if len(found) == 0 && r.answer.Found == 0 {
		return noSuchMessage(r.message)
	}
	held := int64(0)
	for i := range found {
		if c := &found[i]; channel == 0 || c.Channel == channel {
			held += max(0, c.Recorded-c.Released)
			r.answer.AtLeast = r.answer.AtLeast || c.AtLeast
		}
	}
	r.answer.Missing = max(r.left, held-r.answer.Unavailable)
	return nil
}
