package redisstore

import (
	"context"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// A releaseOperation removes the sends of a message, on one channel or on all channels.
type releaseOperation struct {
	store    *Store
	users    []capping.UserID
	channel  capping.Channel
	token    capping.Token
	until    capping.Instant // later sends stay
	released []capping.Released
	bad      script.BadLogs
}

// The method Encode encodes a call of release.lua for the users of the command c.
func (o *releaseOperation) Encode(c *dispatch.Command) {
	s := o.store
	c.Args.Release(s.scripts.Release, s.keyspace, s.prefixes[c.Partition], c.Items, o.users,
		script.Counts{Counted: !c.Bare, Token: o.token})
}

// The method Stamp writes the time of the attempt into the header, so that Redis rejects a late command and removes
// nothing.
func (o *releaseOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampRelease(at.Now, o.store.config.ClockSkew, o.channel, o.token, o.until)
}

// The method Apply decodes the reply of release.lua, and stores the results for the users of the command.
func (o *releaseOperation) Apply(c *dispatch.Command) (int, error) {
	return script.DecodeReleased(c.Reply, c.Items, c.Repeated(), o.released, &o.bad)
}

// The function "later" returns a period: each record with a time in this period was certainly made after the caller's
// call. The period is empty if the clocks are not checked, because the clock tolerance is 0.
func later(ctx context.Context, now capping.Instant, skew time.Duration) capping.Period {
	if skew == 0 {
		return capping.Period{}
	}
	return capping.CallerOf(ctx).Later(now, skew)
}

// The method Release removes the sends of a message on the channel from the logs of the users. The token is the short
// hash of the message; channel 0 means all channels. If a reply was lost and the retry does not find the send any more,
// Release reports the send as released. Release keeps sends that were certainly recorded after the caller's call.
func (s *Store) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	if err := capping.CheckRelease(token, users, released); err != nil {
		return err
	}
	return s.perform(func() *dispatch.Run {
		op := &releaseOperation{store: s, users: users, channel: channel, token: token, released: released}
		if op.until = later(ctx, 0, s.config.ClockSkew).After; op.until == 0 {
			op.until = capping.Never
		}
		r := s.dispatch.NewRun(op, true)
		r.BeforeBare = func(*dispatch.Command) []dispatch.Operation { return s.counts.AtLeast(false, token) }
		r.AddUsers(users, dispatch.MostUsers)
		r.Do(ctx)
		r.Faults.AddUndecided(fault.Corrupt, op.bad.Corrupt, errCorrupt)
		r.Faults.AddUndecided(fault.WrongType, op.bad.WrongType, errWrongType)
		return r
	})
}
