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

// The type "lives" holds the number of the current life (the time since the last reset) of each pacer. The keys of a
// pacer's logs begin with the number of the pacer's life (time between two resets). The first life of a pacer has the
// number 0. After a reset, the next life of the pacer (time between two resets) gets a number above the numbers of all
// pacers' lives. After a reset, the keys of a pacer's new logs therefore sort after the keys of all old logs. Reads of
// logs after a reset do not touch a damaged block of logs from before the reset.
type lives map[string]uint32

// lifeKey returns the database key for the number of the pacer's current life (the time since the last reset). The
// store never removes the key with the number of a pacer's life (time between two resets).
func lifeKey(pacer string) []byte { return append([]byte(lifePrefix), pacer...) }

const lifePrefix = "\x00pacer "

// resetKey returns the database key for the time of the pacer's last reset. The value of a reset key holds the time of
// the last reset, and the number of the pacer's life since this reset.
func resetKey(pacer string) []byte { return append([]byte(resetPrefix), pacer...) }

const resetPrefix = "\x00reset "

func loadLives(db *database.DB) (lives, error) {
	l := make(lives)
	return l, eachPacer(db, lifePrefix, lifeSize, func(pacer string, value []byte) {
		l[pacer] = binary.BigEndian.Uint32(value)
	})
}

// eachPacer calls the function "load" for each pacer with a value under a key with the prefix. If a value does not have
// the given size in bytes, eachPacer returns an error.
func eachPacer(db *database.DB, prefix string, size int, load func(pacer string, value []byte)) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte(prefix), UpperBound: database.After([]byte(prefix))})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Value()) != size {
			return fmt.Errorf("stored reset of a pacer (rate limiter): the value %x of key %q must have %d bytes",
				it.Value(), it.Key(), size)
		}
		load(string(it.Key()[len(prefix):]), it.Value())
	}
	return it.Error()
}

// The method "next" returns a number for a new life (the time after a reset), above the numbers of all pacers' lives.
func (l lives) next() uint32 { return slices.Max(append(slices.Collect(maps.Values(l)), 0)) + 1 }

// ForgetPacer resets a pacer: ForgetPacer removes all logs of the pacer, even unreadable logs; see pacing.Store.
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
	number, at := binary.BigEndian.AppendUint32(nil, life), max(now, l.forgets.latest)
	_ = batch.Set(lifeKey(pacer), number, nil)
	_ = batch.Set(resetKey(pacer), binary.BigEndian.AppendUint64(number, uint64(at)), nil)
	l.db.Commit(batch)
	l.lives[pacer] = life
	l.forgets.at[pacer] = at
	l.cache.drop(prefix)
	l.db.NoteForgotten(string(prefix))
	return l.db.Broken()
}
