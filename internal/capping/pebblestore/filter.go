package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"capper/internal/capping"
	"capper/internal/messages"
)

// The method Filter decides about the users of a batch and records allowed sends; see capping.Store. One sync to the
// disk at the end makes the call of Filter durable. If the deadline passes before this sync begins, all users of the
// batch are unavailable.
func (s *Store) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	if err := b.Check(verdicts); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	if len(b.Users) == 0 {
		return nil
	}
	if err := s.db.CheckUsers(b.Users...); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	c := s.calls.Get().(*call)
	c.verdicts = zeroed(c.verdicts, len(b.Users))
	c.groups = append(c.groups[:0], b.Groups...)
	kept := *b // the store never writes to Rules; Users and Groups are no longer used
	kept.Users, kept.Groups = nil, nil
	keep, due := s.shouldRemember(b)
	c.begin(b.Users, s.runs, judging(c, &kept))
	if err := s.db.Write(ctx, func() error { return s.filter(ctx, c, &kept, keep, due) }); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	copy(verdicts, c.verdicts)
	err := c.err
	s.calls.Put(c)
	return err
}

// The function "judging" returns a step function that decides about one user of the batch and records an allowed send.
func judging(c *call, b *capping.Batch) step {
	return func(now capping.Instant, index int, log capping.Log, dst []byte) ([]byte, bool) {
		if b.At != 0 {
			now = b.At
		}
		horizon := b.Horizon(now)
		verdict := capping.Judge(log, b.Channel, b.Token, b.Rules[c.groups[index]], now, horizon)
		c.verdicts[index] = verdict
		if !b.Record || verdict.Outcome != capping.Allowed {
			return nil, false
		}
		return log.Record(dst, capping.Entry{At: now, Channel: b.Channel, Token: b.Token}, horizon), true
	}
}

func (s *Store) filter(ctx context.Context, c *call, b *capping.Batch, keep, due bool) (err error) {
	if b.Retention, err = s.retain(b.Retention, b.Record); err != nil {
		return err
	}
	if b.Record {
		c.counting = s.countingSends(b, keep)
	}
	if err := s.run(ctx, c); err != nil {
		return err
	}
	if due && slices.ContainsFunc(c.verdicts, wasAllowed) {
		if err := s.remember(b.Retention, b.Message); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(c.verdicts, promises) {
		return nil
	}
	return s.db.Sync(ctx)
}

// countingSends returns the counts of messages that change when the store records the sends of the batch. The argument
// "keep" of countingSends is true if the store remembers the message. If "keep" is true, countingSends creates missing
// counts of the message.
func (s *Store) countingSends(b *capping.Batch, keep bool) counting {
	c := counting{tally: func(t *Tally, _, _ capping.Log) { t.Of(b.Token, b.Channel).Recorded++ }}
	now, err := s.db.Now()
	switch {
	case err != nil: // no user is decided in this case
	case keep:
		c.lives = s.counts.Begin(messages.Key{Message: b.Message, Channel: b.Channel}, now)
	default:
		c.lives = s.counts.Known(b.Token, b.Channel)
	}
	return c
}

func wasAllowed(v capping.Verdict) bool { return v.Outcome == capping.Allowed }

// The function "promises" reports whether the verdict is Allowed or Replayed, so that the send must survive a crash.
func promises(v capping.Verdict) bool {
	return v.Outcome == capping.Allowed || v.Outcome == capping.Replayed
}

// The method Release removes the sends of a message from the users' logs; see capping.Store.
func (s *Store) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	if err := capping.CheckRelease(token, users, released); err != nil {
		return err
	}
	if len(users) == 0 {
		return nil
	}
	if err := s.db.CheckUsers(users...); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	c := s.calls.Get().(*call)
	c.released = zeroed(c.released, len(users))
	c.begin(users, s.runs, releasing(c, channel, token, capping.CallerOf(ctx)))
	err := s.db.Write(ctx, func() error {
		c.counting = s.countingReleases(channel, token)
		if err := s.run(ctx, c); err != nil {
			return err
		}
		return s.db.Sync(ctx) // a call that is not durable yet may have released a missing send
	})
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	copy(released, c.released)
	err = c.err
	s.calls.Put(c)
	return err
}

// The function "releasing" returns a step function that removes the sends with the token (short hash of a message) from
// one user's log. The step function keeps sends that were certainly recorded after the caller's call.
func releasing(c *call, channel capping.Channel, token capping.Token, caller capping.Caller) step {
	return func(now capping.Instant, index int, log capping.Log, dst []byte) ([]byte, bool) {
		next, found := log.Release(dst, channel, token, caller.Later(now, 0))
		c.released[index] = capping.ReleaseAbsent
		if found {
			c.released[index] = capping.ReleaseDone
		}
		return next, found
	}
}

// countingReleases returns the counts of messages that change when a release removes sends.
func (s *Store) countingReleases(channel capping.Channel, token capping.Token) counting {
	return counting{s.counts.Counted(token, channel), func(t *Tally, before, after capping.Log) {
		of := func(log capping.Log, add int64) {
			for i := range log.Len() {
				if e := log.Entry(i); e.Token == token && (channel == 0 || e.Channel == channel) {
					t.Of(token, e.Channel).Released += add
				}
			}
		}
		of(before, 1)
		of(after, -1) // sends that followed the call
	}}
}

// The method Erase removes the user's log, even if the log cannot be read.
func (s *Store) Erase(ctx context.Context, user capping.UserID) error {
	err := s.db.Write(ctx, func() error {
		if err := errors.Join(s.db.Broken(), s.db.CheckUsers(user)); err != nil {
			return err
		}
		s.erase(user)
		return s.db.Sync(ctx)
	})
	if err != nil {
		return fmt.Errorf("erase user %d: %w", user, err)
	}
	s.db.NoteErased(user)
	return nil
}

func (s *Store) erase(user capping.UserID) {
	stripe := &s.stripes[s.runs.stripe(user)]
	stripe.Lock()
	defer stripe.Unlock()
	stripe.cache.Drop(user)
	batch := s.db.NewBatch()
	defer batch.Close()
	_, _ = s.stored(user) // finds out whether the user's block is damaged
	s.db.Put(batch, user, nil)
	s.db.Commit(batch)
}

// The method "stored" returns a copy of the stored value of the user's log, or nil if the user has no log.
func (s *Store) stored(user capping.UserID) ([]byte, error) {
	w := s.workers.Get().(*worker)
	defer s.workers.Put(w)
	defer w.reader.End()
	value, err := w.reader.Value(user)
	return slices.Clone(value), err
}

// Log returns the user's log; see capping.Store.
func (s *Store) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	var found capping.Log
	err := s.db.Read(ctx, func() error {
		if err := s.db.CheckUsers(user); err != nil {
			return err
		}
		value, err := s.stored(user)
		if err == nil && value != nil {
			found, _, err = decodeLog(value)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("log of user %d: %w", user, err)
	}
	return found, nil
}
