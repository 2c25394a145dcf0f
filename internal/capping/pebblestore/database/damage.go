package database

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// damage is what is known of logs that cannot be read: single ones that are
// none, and blocks of a table. Reading a damaged block costs Pebble tens of
// milliseconds each time, so it is read until its users are known, and no more.
type damage struct {
	mu     sync.Mutex
	users  map[capping.UserID]error // a few, whose values are not logs
	pacers map[string]error         // a few logs of pacers, by key
	mended sync.Map                 // of capping.UserID: written since, and so read from above the damage
	blocks atomic.Pointer[[]block]  // by user, apart from each other

	unfiltered atomic.Bool // a filter of a table is damaged: logs are read without
}

// block is neighbouring users whose logs may be in a part of a table that
// cannot be read.
type block struct {
	first, last capping.UserID
	err         error
}

const maxDamaged = 1000

// add notes a single log that cannot be read.
func (d *damage) add(user capping.UserID, err error) (isNew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users == nil {
		d.users = make(map[capping.UserID]error)
	}
	if _, known := d.users[user]; known || len(d.users) >= maxDamaged {
		return false
	}
	d.users[user] = err
	return true
}

func (d *damage) remove(user capping.UserID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.users, user)
}

// block is the damaged block that the user may be in.
func (d *damage) block(user capping.UserID) (b block, found bool) {
	blocks := d.blocks.Load()
	if blocks == nil {
		return block{}, false
	}
	i, _ := slices.BinarySearchFunc(*blocks, user, func(b block, user capping.UserID) int {
		if b.last < user {
			return -1
		}
		return 1
	})
	if i < len(*blocks) && (*blocks)[i].first <= user {
		return (*blocks)[i], true
	}
	return block{}, false
}

// put notes a block. d.mu is held.
func (d *damage) put(b block) {
	var blocks []block
	if known := d.blocks.Load(); known != nil {
		for _, other := range *known {
			if other.last < b.first || other.first > b.last {
				blocks = append(blocks, other)
				continue
			}
			b.first, b.last = min(b.first, other.first), max(b.last, other.last)
		}
	}
	blocks = append(blocks, b)
	slices.SortFunc(blocks, func(a, b block) int { return int(int64(a.first) - int64(b.first)) })
	d.blocks.Store(&blocks)
}

// Damage is how much is known to be damaged.
type Damage struct {
	Blocks     int  // of logs
	Logs       int  // that cannot be read, outside of those blocks; those of pacers, too
	Unfiltered bool // a filter of a table is damaged: logs are read without filters
}

// Damage is how much is known to be damaged now.
func (d *DB) Damage() Damage {
	damage := Damage{Unfiltered: d.damaged.unfiltered.Load()}
	if blocks := d.damaged.blocks.Load(); blocks != nil {
		damage.Blocks = len(*blocks)
	}
	d.damaged.mu.Lock()
	defer d.damaged.mu.Unlock()
	damage.Logs = len(d.damaged.users) + len(d.damaged.pacers)
	return damage
}

// err is what a status says; nil: nothing is damaged.
func (d *damage) err() error {
	if blocks := d.blocks.Load(); blocks != nil {
		first := (*blocks)[0]
		return fmt.Errorf("%d blocks of logs are damaged, including the block of users %d to %d: %w", len(*blocks),
			first.first, first.last, first.err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for user, err := range d.users {
		return fmt.Errorf("%d logs cannot be read, including the log of user %d: %w", len(d.users), user, err)
	}
	for _, err := range d.pacers {
		return fmt.Errorf("%d logs of pacers cannot be read, for example: %w", len(d.pacers), err)
	}
	if d.unfiltered.Load() {
		return errors.New("a filter of a database table is damaged: logs are read without filters, which is slower")
	}
	return nil
}

// isMended reports whether the user's log was written since its block was
// damaged: then it is found above the block, which is not asked.
func (d *damage) isMended(user capping.UserID) bool {
	_, mended := d.mended.Load(user)
	return mended
}

func mendedKey(user capping.UserID) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyMended}, user)
}

// mend notes, with a log that is written or removed in the batch, that it is to
// be read from above its damaged block. A removed one is written empty: Pebble
// looks for what lies below what it finds deleted.
func (d *DB) mend(batch *pebble.Batch, user capping.UserID, value []byte) {
	if _, damaged := d.damaged.block(user); !damaged {
		return
	}
	if len(value) == 0 {
		_ = batch.Set(LogKey(user), nil, nil) // fails only for indexed batches
	}
	if !d.damaged.isMended(user) {
		_ = batch.Set(mendedKey(user), nil, nil)
		d.damaged.mended.Store(user, true)
	}
}

// loadMended reads which users were mended by earlier runs.
func (d *DB) loadMended() error {
	it, err := d.DB.NewIter(&pebble.IterOptions{LowerBound: []byte{keyMended}, UpperBound: []byte{keyMended + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); len(key) == LogKeySize {
			d.damaged.mended.Store(binary.BigEndian.Uint32(key[1:]), true)
		}
	}
	return it.Error()
}

// NoteUnreadable counts that a log could not be read, and tells it once.
func (d *DB) NoteUnreadable(ctx context.Context, user capping.UserID, err error) {
	d.config.CountError("log")
	if _, damaged := d.damaged.block(user); !damaged && d.damaged.add(user, err) {
		d.config.Logger.ErrorContext(ctx, "a log cannot be read; erase the user to start a new log",
			"user", user, "error",
			err.Error())
	}
}

// NoteErased forgets that the user's log could not be read.
func (d *DB) NoteErased(user capping.UserID) { d.damaged.remove(user) }

// NotePacerUnreadable counts that the log of a pacer at a key could not be read, and tells
// it once.
func (d *DB) NotePacerUnreadable(key string, err error) {
	d.config.CountError("log")
	d.damaged.mu.Lock()
	defer d.damaged.mu.Unlock()
	if d.damaged.pacers == nil {
		d.damaged.pacers = make(map[string]error)
	}
	if _, known := d.damaged.pacers[key]; known || len(d.damaged.pacers) >= maxDamaged {
		return
	}
	d.damaged.pacers[key] = firstLine(err)
	d.config.Logger.Error("a log of a pacer cannot be read", "error", d.damaged.pacers[key].Error())
}

// NoteForgotten forgets that logs of a pacer could not be read: those at keys with the prefix.
func (d *DB) NoteForgotten(prefix string) {
	d.damaged.mu.Lock()
	defer d.damaged.mu.Unlock()
	maps.DeleteFunc(d.damaged.pacers, func(key string, _ error) bool { return strings.HasPrefix(key, prefix) })
}
