package pebblestore

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// Upgrades of the store's format run while the store serves calls. From the start on, calls write the newest format and
// read both formats. A slow background walk over all logs rewrites the logs that no call has written. The database
// stores the progress of the walk in the order of the writes, so that the walk continues after a crash.

// upgradeStep runs one step of an upgrade of the stored format: upgradeStep checks the given number of keys, and
// rewrites logs in an older format.
func (s *Store) upgradeStep(ctx context.Context, keys int) error {
	upgrade := s.db.Upgrade()
	if upgrade == nil {
		return nil
	}
	return s.db.Rescue(ctx, func() error {
		users, next, err := s.findOld(upgrade.Next, keys)
		if err != nil {
			return err
		}
		if err := s.rewrite(ctx, users); err != nil {
			return err
		}
		s.db.NoteUpgraded(next)
		if s.db.Upgrade() != nil {
			return s.db.Broken()
		}
		s.logger.Info("all logs of the embedded store are in the newest format", "from", upgrade.From, "to", upgrade.To)
		return s.db.Sync(ctx)
	})
}

// findOld finds logs in an older format among the given number of keys. The method findOld returns the key for the
// start of the next call, or nil after the last log. The method findOld skips unreadable logs.
func (s *Store) findOld(from []byte, keys int) (users []capping.UserID, next []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{database.KeyLog + 1}})
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	last := append([]byte(nil), from...)
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if keys--; keys < 0 {
			return users, append([]byte(nil), key...), nil
		}
		last = append(last[:0], key...)
		user, ok := s.db.UserOf(key)
		if _, version, err := decodeLog(it.Value()); err == nil && version != logVersion && ok {
			users = append(users, user)
		}
	}
	if err := it.Error(); err != nil {
		next, err = s.db.KeyBehind(last, err)
		return users, next, err
	}
	return users, nil, nil
}

// The method "rewrite" writes the users' logs with the same entries again, in the newest format.
func (s *Store) rewrite(ctx context.Context, users []capping.UserID) error {
	if len(users) == 0 {
		return nil
	}
	c := new(call)
	c.begin(users, s.runs, func(_ capping.Instant, _ int, log capping.Log, dst []byte) ([]byte, bool) {
		return append(dst, log...), len(log) > 0
	})
	c.passing = true
	if err := s.run(ctx, c); err != nil {
		return err
	}
	return c.err
}
