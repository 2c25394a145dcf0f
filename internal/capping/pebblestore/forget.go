package pebblestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping/pebblestore/database"
)

// lives is a map that has, for each pacer, the number of its current life (the time since the pacer was last
// forgotten). The keys of a pacer's logs begin with the number of the pacer's life. The first life of a pacer has the
// number 0. Each time a pacer is forgotten, its next life gets a number above the numbers of all pacers' lives. The
// keys of new logs then sort after all old logs. Reads of new logs of the pacer therefore touch no damaged block of old
// logs.
type lives map[string]uint32

// lifeKey returns the key under which the database stores the number of the pacer's current life. The store never
// removes the key of a pacer's life.
func lifeKey(pacer string) []byte { return append([]byte(lifePrefix), pacer...) }

const lifePrefix = "\x00pacer "

func loadLives(db *database.DB) (lives, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte(lifePrefix),
		UpperBound: database.After([]byte(lifePrefix))})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	l := make(lives)
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Value()) != lifeSize {
			return nil, fmt.Errorf("stored number of resets of a pacer: value %x of key %q must have %d bytes",
				it.Value(), it.Key(), lifeSize)
		}
		l[string(it.Key()[len(lifePrefix):])] = binary.BigEndian.Uint32(it.Value())
	}
	return l, it.Error()
}

// next returns a number for a new life, which is higher than the number of any pacer's life.
func (l lives) next() uint32 { return slices.Max(append(slices.Collect(maps.Values(l)), 0)) + 1 }

// ForgetPacer removes all logs of a pacer, even if they are unreadable; see pacing.Store.
func (l *pacerLogs) ForgetPacer(ctx context.Context, pacer, _ string) error {
	err := l.db.Write(ctx, func() error {
		if err := l.forget(pacer); err != nil {
			return err
		}
		return l.db.Sync(ctx)
	})
	if err != nil {
		return fmt.Errorf("forget pacer %q: %w", pacer, err)
	}
	return nil
}

func (l *pacerLogs) forget(pacer string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	prefix, err := pacerKey(l.lives[pacer], pacer)
	if err != nil {
		return err
	}
	now, err := l.now()
	if err != nil {
		return err
	}
	life := l.lives.next()
	batch := l.db.NewBatch()
	defer batch.Close()
	_ = batch.DeleteRange(prefix, database.After(prefix), nil) // fails only for indexed batches
	_ = batch.Set(lifeKey(pacer), binary.BigEndian.AppendUint32(nil, life), nil)
	l.db.Commit(batch)
	l.lives[pacer] = life
	l.forgets.at[pacer] = max(now, l.forgets.latest)
	l.cache.drop(prefix)
	l.db.NoteForgotten(string(prefix))
	return l.db.Broken()
}
