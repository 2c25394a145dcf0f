package redisstore

import (
	"context"
	"errors"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// filterJob judges and records a batch.
type filterJob struct {
	store    *Store
	batch    *capping.Batch
	verdicts []capping.Verdict
	header   script.Header
	rules    script.Rulebook
	bad      script.BadLogs
}

func (j *filterJob) encode(c *call) {
	s := j.store
	c.args.Filter(s.scripts.Filter, s.layout, s.prefixes[c.partition], c.items, j.batch.Groups, &j.rules)
}

// stamp runs on a lane: it reads only what nobody changes during the run, and
// nothing of the batch.
func (j *filterJob) stamp(c *call) {
	h := j.header
	if h.Now == 0 {
		h.Now = c.now
	}
	h.Since = c.since
	c.args.StampFilter(h)
}

func (j *filterJob) apply(c *call) (int, error) {
	return script.DecodeVerdicts(c.reply, c.items, j.batch, j.verdicts, &j.bad)
}

// Filter judges and records every user of the batch.
func (s *Store) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	if err := b.Check(verdicts); err != nil {
		return err
	}
	return s.settled(func() (*run, error) {
		job := &filterJob{store: s, batch: b, verdicts: verdicts}
		job.prepare(s.config.ClockSkew)
		if b.Record {
			job.header.Forget = s.fleet.forget(b.Retention)
		}
		r := s.newRun(job, b.Record)
		r.most = job.rules.CallUsers(callUsers)
		r.users(b.Users)
		if b.Record {
			s.accompany(r, b, &job.header)
		}
		s.do(ctx, r)
		r.faults.undecided(fault.Corrupt, job.bad.Corrupt, errCorrupt)
		r.faults.undecided(fault.WrongType, job.bad.WrongType, errWrongType)
		return r, nil
	})
}

var (
	errCorrupt   = errors.New("the stored log is not a whole number of entries: erase the user")
	errWrongType = errors.New("the key of a bucket holds another type than a hash: something else writes to the keys of capper; find out what and move its key away")
)

// prepare encodes what is the same for every call.
func (j *filterJob) prepare(skew time.Duration) {
	b := j.batch
	j.header = script.Header{
		Retention: b.Retention, Forget: b.Retention, Skew: skew, Record: b.Record, Channel: b.Channel, Token: b.Token,
	}
	if b.At != 0 {
		j.header.Now, j.header.Skew = b.At, 0
	}
	j.rules = script.NewRulebook(b.Rules)
}

// releaseJob removes a message's sends on a channel, or on all.
type releaseJob struct {
	store    *Store
	channel  capping.Channel
	token    capping.Token
	released []capping.Released
	bad      script.BadLogs
}

func (j *releaseJob) encode(c *call) {
	s := j.store
	c.args.Release(s.scripts.Release, s.layout, s.prefixes[c.partition], c.items)
}

func (j *releaseJob) stamp(c *call) {
	c.args.StampRelease(c.now, j.store.config.ClockSkew, j.channel, j.token)
}

func (j *releaseJob) apply(c *call) (int, error) {
	return script.DecodeReleased(c.reply, c.items, c.since != capping.Never, j.released, &j.bad)
}

// Release removes the token's sends on the channel, 0 for all, from the logs of
// the users. Where an
// answer was lost and the send is gone when asked again, it counts as done.
func (s *Store) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID, released []capping.Released) error {
	if err := capping.CheckRelease(token, users, released); err != nil {
		return err
	}
	return s.settled(func() (*run, error) {
		job := &releaseJob{store: s, channel: channel, token: token, released: released}
		r := s.newRun(job, true)
		r.users(users)
		s.do(ctx, r)
		r.faults.undecided(fault.Corrupt, job.bad.Corrupt, errCorrupt)
		r.faults.undecided(fault.WrongType, job.bad.WrongType, errWrongType)
		return r, nil
	})
}
