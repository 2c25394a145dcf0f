package pebblestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"capper/internal/capping"
)

// Filter judges and records the users of a batch; see capping.Recorder. When
// the deadline passes, all of them are unavailable: the one write to the disk
// that would make the call durable comes last.
func (s *Store) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) (err error) {
	defer s.metrics.observe("filter", time.Now(), &err)
	if len(b.Users) == 0 {
		return nil
	}
	c := s.calls.Get().(*call)
	c.verdicts = zeroed(c.verdicts, len(b.Users))
	c.groups = append(c.groups[:0], b.Groups...)
	kept := *b // Rules are not written to by anybody; Users and Groups are not used any more
	kept.Users, kept.Groups = nil, nil
	remember := s.remembers(b)
	c.begin(b.Users, judging(c, &kept))
	if err := s.writing(ctx, func() error { return s.filter(ctx, c, &kept, remember) }); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	copy(verdicts, c.verdicts)
	err = c.err
	s.calls.Put(c)
	return err
}

// judging is the step of a batch.
func judging(c *call, b *capping.Batch) step {
	return func(now capping.Instant, index int, log capping.Log, dst []byte) (capping.Log, bool) {
		if b.At != 0 {
			now = b.At
		}
		horizon := b.Horizon(now)
		verdict := capping.Judge(log, b.Token, b.Rules[c.groups[index]], now, horizon)
		c.verdicts[index] = verdict
		if !b.Record || verdict.Outcome != capping.Allowed {
			return nil, false
		}
		return log.Record(dst, capping.Entry{At: now, Channel: b.Channel, Token: b.Token}, horizon), true
	}
}

func (s *Store) filter(ctx context.Context, c *call, b *capping.Batch, remember bool) (err error) {
	if b.Retention, err = s.keep(b.Retention, b.Record); err != nil {
		return err
	}
	if err := s.run(ctx, c); err != nil {
		return err
	}
	if remember && slices.ContainsFunc(c.verdicts, wasAllowed) {
		if err := s.remember(b); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(c.verdicts, promises) {
		return nil
	}
	return s.sync()
}

func wasAllowed(v capping.Verdict) bool { return v.Outcome == capping.Allowed }

// promises reports whether the verdict is one that must survive a crash.
func promises(v capping.Verdict) bool {
	return v.Outcome == capping.Allowed || v.Outcome == capping.Replayed
}

// Release removes a message's sends; see capping.Recorder.
func (s *Store) Release(ctx context.Context, token capping.Token, users []capping.UserID, released []capping.Released) (err error) {
	defer s.metrics.observe("release", time.Now(), &err)
	if len(users) == 0 {
		return nil
	}
	c := s.calls.Get().(*call)
	c.released = zeroed(c.released, len(users))
	c.begin(users, releasing(c, token))
	err = s.writing(ctx, func() error {
		if err := s.run(ctx, c); err != nil {
			return err
		}
		return s.sync() // what is absent may have been released by a call that is not durable yet
	})
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	copy(released, c.released)
	err = c.err
	s.calls.Put(c)
	return err
}

// releasing is the step of a release.
func releasing(c *call, token capping.Token) step {
	return func(_ capping.Instant, index int, log capping.Log, dst []byte) (capping.Log, bool) {
		next, found := log.Release(dst, token)
		c.released[index] = capping.ReleaseAbsent
		if found {
			c.released[index] = capping.ReleaseDone
		}
		return next, found
	}
}

// Erase removes the user's log, also one that cannot be read.
func (s *Store) Erase(ctx context.Context, user capping.UserID) (err error) {
	defer s.metrics.observe("erase", time.Now(), &err)
	err = s.writing(ctx, func() error {
		if err := s.broken(); err != nil {
			return err
		}
		s.erase(user)
		return s.sync()
	})
	if err != nil {
		return fmt.Errorf("erase user %d: %w", user, err)
	}
	s.damaged.remove(user)
	return nil
}

func (s *Store) erase(user capping.UserID) {
	stripe := &s.stripes[stripeOf(user)]
	stripe.Lock()
	defer stripe.Unlock()
	stripe.cache.drop(user)
	batch := s.db.NewBatch()
	defer batch.Close()
	putLog(batch, user, nil)
	s.commit(batch)
}

// Log is the user's log; see capping.Reader.
func (s *Store) Log(ctx context.Context, user capping.UserID) (log capping.Log, err error) {
	defer s.metrics.observe("log", time.Now(), &err)
	var found capping.Log
	err = s.reading(ctx, func() error {
		value, err := lookup(s.db, logKey(user))
		if err == nil && value != nil {
			found, err = decodeLog(value)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("log of user %d: %w", user, err)
	}
	return found, nil
}

// remembers reports whether the batch's message id should be remembered.
func (s *Store) remembers(b *capping.Batch) bool {
	return len(b.MessageID) <= maxMessageID && s.memory.Keep(b)
}

// remember writes the batch's message id. It is durable with the next sync.
func (s *Store) remember(b *capping.Batch) error {
	now, err := s.now()
	if err != nil {
		return err
	}
	value := encodeMessage(now+capping.Instant(b.Retention.Milliseconds()), b.MessageID)
	s.memo.Lock()
	defer s.memo.Unlock()
	batch := s.db.NewBatch()
	defer batch.Close()
	if err := batch.Set(messageKey(b.Token), value, nil); err != nil {
		return err
	}
	s.commit(batch)
	return nil
}

// Messages finds remembered message ids; see capping.Reader.
func (s *Store) Messages(ctx context.Context, tokens []capping.Token) (ids map[capping.Token]string, err error) {
	defer s.metrics.observe("messages", time.Now(), &err)
	tokens = slices.Clone(tokens)
	found := make(map[capping.Token]string, len(tokens))
	err = s.reading(ctx, func() error {
		for _, token := range tokens {
			id, err := s.message(token)
			if err != nil {
				return fmt.Errorf("message %x: %w", token, err)
			}
			if id != "" {
				found[token] = id
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// message is the remembered id; "" when there is none.
func (s *Store) message(token capping.Token) (string, error) {
	value, err := lookup(s.db, messageKey(token))
	if err != nil || value == nil {
		return "", err
	}
	expires, id, err := decodeMessage(value)
	if err != nil || expires <= capping.InstantOf(s.clock()) {
		return "", err
	}
	return id, nil
}
