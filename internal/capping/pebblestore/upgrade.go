package pebblestore

import (
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// A store in an older format is one in the newest from its opening on: what a
// call writes is in the newest format, and what it reads may be in either. An
// upgrade walks over all logs meanwhile, as slowly as the sweep, and rewrites
// those that no call has written. How far it is stands in the database, in the
// order of its writes, so that it goes on there after a crash.

// upgradeStep rewrites the next logs that are in an older format, of so many
// keys.
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

// findOld looks at so many keys from the given one on, for logs in an older
// format, and returns where the next step begins; nil after the last log. What
// it cannot read it leaves alone.
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
		if _, version, err := decodeLog(it.Value()); err == nil && version != logVersion &&
			len(key) == database.LogKeySize {
			users = append(users, binary.BigEndian.Uint32(key[1:]))
		}
	}
	if err := it.Error(); err != nil {
		next, err = s.db.KeyBehind(last, err)
		return users, next, err
	}
	return users, nil, nil
}

// rewrite writes the users' logs as they are, in the newest format.
func (s *Store) rewrite(ctx context.Context, users []capping.UserID) error {
	if len(users) == 0 {
		return nil
	}
	c := new(call)
	c.begin(users, func(_ capping.Instant, _ int, log capping.Log, dst []byte) ([]byte, bool) {
		return append(dst, log...), len(log) > 0
	})
	c.passing = true
	if err := s.run(ctx, c); err != nil {
		return err
	}
	return c.err
}
