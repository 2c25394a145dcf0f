package pebblestore

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// The sweep is a slow walk over all keys of the database that removes expired logs and message texts. A write of a
// user's log also removes the log's expired entries. Only the sweep removes the logs of users without new sends.
const (
	sweepKeys  = 20_000 // largest number of keys in a step, which takes about 10 ms
	sweepPause = 60     // number of skipped steps after a pass over all keys
)

// keepTending does the background work of an open store, one step after another.
func (s *Store) keepTending(ctx context.Context, config Config) {
	ticker := time.NewTicker(config.SweepInterval)
	defer ticker.Stop()
	sweeps := []*sweep{
		{start: []byte{database.KeyLog}, step: s.sweepStep},
		{start: pacersSweepFrom(), step: s.sweepPacers},
		{start: messagesSweepFrom(), step: s.sweepCounts(s.counts.Sweep)},
		{start: titlePrefix, step: s.sweepCounts(s.counts.SweepTitles)},
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.db.Broken() != nil {
			continue
		}
		s.reportTending(ctx, "maintaining data files",
			s.db.Rescue(ctx, func() error { return s.db.Watch(time.Now()) }))
		s.reportTending(ctx, "the upgrade", s.upgradeStep(ctx, config.upgradeKeys))
		for _, sweep := range sweeps {
			s.reportTending(ctx, "the sweep", s.advance(ctx, sweep))
		}
		s.reportTending(ctx, "packing changes to sets",
			s.db.Rescue(ctx, func() error { return s.changes.Pack(ctx) }))
	}
}

// reportTending logs an error of background work. After a failure, the store tries the background work again later.
func (s *Store) reportTending(ctx context.Context, work string, err error) {
	if err != nil && ctx.Err() == nil {
		s.logger.Error("background work of the embedded store failed", "work", work, "error", err.Error())
	}
}

// A sweep is a walk over some keys of the database that removes expired data, with the progress of the walk.
type sweep struct {
	start []byte
	step  func(ctx context.Context, from []byte) (next []byte, err error)
	next  []byte // the key at which the next step begins; nil: start
	pause int    // number of steps to skip
}

// If the sweep does not pause, the method "advance" runs its next step.
func (s *Store) advance(ctx context.Context, sweep *sweep) (err error) {
	if sweep.pause--; sweep.pause >= 0 || s.db.Broken() != nil {
		return nil
	}
	if sweep.next == nil {
		sweep.next = sweep.start
	}
	if sweep.next, err = sweep.step(ctx, sweep.next); sweep.next == nil {
		sweep.pause = sweepPause
	}
	return err
}

// sweepStep checks some keys of the database, beginning at the given key, and removes expired logs and message texts.
// The method sweepStep returns the key for the start of the next step, or nil after the last key.
func (s *Store) sweepStep(ctx context.Context, from []byte) (next []byte, err error) {
	now, err := s.db.Now()
	retention := capping.Instant(s.retained.current().longest(now).millis)
	if err != nil || retention == 0 {
		return nil, err
	}
	err = s.db.Rescue(ctx, func() error {
		var dead dead
		if dead, next, err = s.findDead(from, now, now-retention); err != nil {
			return err
		}
		s.removeMessages(dead.messages, now)
		return s.removeLogs(ctx, dead.users, retention)
	})
	return next, err
}

type dead struct {
	users    []capping.UserID
	messages [][]byte // keys of message texts
}

// findDead returns the expired logs and message texts among the keys of one step of the sweep. The method findDead
// skips unreadable values.
func (s *Store) findDead(from []byte, now, horizon capping.Instant) (found dead, next []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{database.KeyEnd}})
	if err != nil {
		return found, nil, err
	}
	defer it.Close()
	n, last := 0, slices.Clone(from)
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if n++; n > sweepKeys {
			return found, append([]byte(nil), key...), nil
		}
		last = append(last[:0], key...)
		if key[0] != database.KeyLog {
			if expires, _, err := decodeMessage(it.Value()); err == nil && expires <= now {
				found.messages = append(found.messages, append([]byte(nil), key...))
			}
			continue
		}
		user, ok := s.db.UserOf(key)
		if log, _, err := decodeLog(it.Value()); err == nil && ok && log.At(log.Len()-1) <= horizon {
			found.users = append(found.users, user)
		}
	}
	if err := it.Error(); err != nil {
		next, err = s.db.KeyBehind(last, err)
		return found, next, err
	}
	return found, nil, nil
}

// removeLogs removes expired logs of users. The method removeLogs first locks the users' stripes (groups of users with
// a common lock) and checks the logs again, because a call may have changed a log.
func (s *Store) removeLogs(ctx context.Context, users []capping.UserID, retention capping.Instant) error {
	if len(users) == 0 {
		return nil
	}
	c := new(call)
	c.begin(users, s.runs, func(now capping.Instant, _ int, log capping.Log, _ []byte) ([]byte, bool) {
		return nil, len(log) > 0 && len(log.Live(now-retention)) == 0
	})
	if err := s.run(ctx, c); err != nil {
		return err
	}
	return c.err
}

// removeMessages removes expired texts of messages. The method removeMessages first takes the lock for message texts
// and checks the texts again, because a call may have written a text again.
func (s *Store) removeMessages(keys [][]byte, now capping.Instant) {
	if len(keys) == 0 {
		return
	}
	s.messages.Lock()
	defer s.messages.Unlock()
	batch := s.db.NewBatch()
	defer batch.Close()
	for _, key := range keys {
		value, err := s.db.Lookup(key)
		if err != nil || value == nil {
			continue
		}
		if expires, _, err := decodeMessage(value); err == nil && expires <= now {
			_ = batch.Delete(key, nil) // fails only for indexed batches
		}
	}
	s.db.Commit(batch)
}

// sweepCounts returns a step of the sweep that removes expired counts or titles of messages. The store keeps counts and
// titles about as long as logs.
func (s *Store) sweepCounts(sweep func(from []byte, most int, now capping.Instant, keep time.Duration) ([]byte, error),
) func(ctx context.Context, from []byte) (next []byte, err error) {
	return func(ctx context.Context, from []byte) (next []byte, err error) {
		now, err := s.db.Now()
		if err != nil {
			return nil, err
		}
		err = s.db.Rescue(ctx, func() error {
			next, err = sweep(from, sweepKeys/10, now, s.countsKept(now)) // also removes each message's sends
			return err
		})
		return next, err
	}
}

// countsKept returns the time for which the store keeps the counts of a message after the last call about the message.
func (s *Store) countsKept(now capping.Instant) time.Duration {
	return messages.KeepFor(time.Duration(s.retained.current().longest(now).millis) * time.Millisecond)
}

// sweepPacers does one step of the sweep that removes expired logs of pacers and expired permit requests.
func (s *Store) sweepPacers(ctx context.Context, from []byte) (next []byte, err error) {
	err = s.db.Rescue(ctx, func() error {
		next, err = s.pacers.Sweep(from, sweepKeys)
		return err
	})
	return next, err
}
