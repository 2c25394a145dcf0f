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

// The interface Audit finds the users who received a message. An Audit is safe for concurrent use.
type Audit interface {
	// Flush returns when the earlier audit records of this instance are readable.
	Flush(ctx context.Context) error
	// Grants returns the users who have recorded sends of the message; see archive.Archive.
	Grants(ctx context.Context, message capping.Message, channel capping.Channel) ([]archive.Grants, error)
}

// The type "part" is the result of one step of a release (removal of a message's recorded sends), which covers up to
// partUsers users. A function that receives a part owns the slices in it, and may change them.
type part struct {
	Message capping.Message
	Channel capping.Channel // 0: all channels
	Users   []capping.UserID
	Results []capping.Released
	Err     error // reason why the result of some users is unknown
	At      time.Time
	Took    time.Duration
}

// partUsers is the maximum number of users whose sends one step of a release removes.
const partUsers = 100_000

// The type release is the state of a running release, which removes the recorded sends of a message.
type release struct {
	*Messages
	message capping.Message
	until   time.Time // no step begins after this time
	took    func(*part)
	answer  *api.ReleasedMessage
	left    int64 // number of users whose sends no step has released
}

// The method Release removes the recorded sends of a message on a channel; the channel "" means all channels. The
// method Release removes as many recorded sends as possible before the deadline of ctx. After each step, Release calls
// the argument "took" (a function) with the result of the step.
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

// The method "grants" reads from the audit the users with recorded sends of the message, separately for each channel.
// Sends without a channel are the last element of the result, because only a release on all channels removes sends
// without a channel.
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

// giveBack removes the recorded sends of the message on one channel, step by step, until the context ends or the time
// limit has passed.
func (r *release) giveBack(ctx context.Context, g *archive.Grants) {
	for _, users := range g.Lists() {
		r.answer.Found += int64(len(users))
		for part := range slices.Chunk(users, partUsers) {
			if ctx.Err() != nil || capping.CheckCaller(ctx) != nil || !r.until.IsZero() && r.Clock().After(r.until) {
				r.left += int64(len(part))
				continue
			}
			r.step(ctx, g.Channel, part)
		}
	}
}

// The method step removes the recorded sends of a message to one batch of users.
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

// The method count counts the sends of the message that remain to be released, and checks that the message exists.
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
