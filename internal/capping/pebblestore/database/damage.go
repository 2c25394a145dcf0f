package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// The type "damage" lists the stored logs that cannot be read: single logs with invalid values, and logs in damaged
// blocks of tables. Each read of a damaged block takes Pebble tens of milliseconds. As soon as the database knows the
// users that a damaged block affects, it does not read the block again.
type damage struct {
	mu     sync.Mutex
	users  map[capping.UserID]error // some users whose values are not valid logs
	pacers map[string]error         // some unreadable logs of pacers, by key
	mended sync.Map                 // of capping.UserID: users whose log was written again after the damage
	blocks atomic.Pointer[[]block]  // damaged blocks, sorted by user, without overlaps

	changes    atomic.Pointer[string] // reason why live changes on the disk cannot be read; nil: none
	unfiltered atomic.Bool            // a Bloom filter of a table is damaged, so logs are read without filters
}

// A block is a range of users whose logs may be in an unreadable part of a table file.
type block struct {
	first, last capping.UserID
	err         error
}

const maxDamaged = 1000

// The method "add" records that the log of a user cannot be read, and reports whether this failure is new.
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

// The method "block" returns the damaged block that may contain the log of the user.
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

// The method "put" adds a damaged block to the list of blocks, and joins overlapping blocks. The caller of the method
// "put" must hold d.mu.
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
	slices.SortFunc(blocks, func(a, b block) int { return cmp.Compare(a.first, b.first) })
	d.blocks.Store(&blocks)
}

// Damage holds the numbers of known damaged parts of the database's files.
type Damage struct {
	Blocks     int  // number of damaged blocks of logs
	Logs       int  // number of unreadable logs outside damaged blocks, including logs of pacers
	Unfiltered bool // a Bloom filter of a table is damaged, so logs are read without filters
}

// The method Damage returns the numbers of known damaged parts of the database's files.
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

// The method "err" returns an error for the status that describes the known damage, or nil.
func (d *damage) err() error {
	if blocks := d.blocks.Load(); blocks != nil {
		first := (*blocks)[0]
		return fmt.Errorf("%d database blocks are damaged, including the block with users %d to %d: %w", len(*blocks),
			first.first, first.last, first.err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for user, err := range d.users {
		return fmt.Errorf("the stored sends of %d users cannot be read, including user %d: %w",
			len(d.users), user, err)
	}
	for _, err := range d.pacers {
		return fmt.Errorf("%d logs of pacers (rate limiters) cannot be read, for example: %w",
			len(d.pacers), err)
	}
	if why := d.changes.Load(); why != nil {
		return fmt.Errorf(
			"changes to sets of users are damaged on disk and intact only in memory, so a restart would fail: %s", *why)
	}
	if d.unfiltered.Load() {
		return errors.New("a Bloom filter of a database table is damaged: the store reads more slowly without filters")
	}
	return nil
}

// isMended reports whether the user's log was written again after the damage of its block. Pebble finds a rewritten log
// in a newer level of the database, and does not read the damaged block.
func (d *damage) isMended(user capping.UserID) bool {
	_, mended := d.mended.Load(user)
	return mended
}

// If the user's log is in a damaged block, the method "mend" adds a note to the batch: the user's new log is readable.
// If the batch removes the user's log, "mend" stores an empty value instead. Pebble would look for a removed log in the
// damaged block again.
func (d *DB) mend(batch *pebble.Batch, user capping.UserID, value []byte) {
	if _, damaged := d.damaged.block(user); !damaged {
		return
	}
	if len(value) == 0 {
		_ = batch.Set(d.LogKey(user), nil, nil) // fails only for indexed batches
	}
	if !d.damaged.isMended(user) {
		_ = batch.Set(d.userKey(nil, keyMended, user), nil, nil)
		d.damaged.mended.Store(user, true)
	}
}

// loadMended loads the list of users whose logs were written again after damage in earlier runs of the process.
func (d *DB) loadMended() error {
	it, err := d.DB.NewIter(&pebble.IterOptions{LowerBound: []byte{keyMended}, UpperBound: []byte{keyMended + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if user, ok := d.UserOf(it.Key()); ok {
			d.damaged.mended.Store(user, true)
		}
	}
	return it.Error()
}

// NoteUnreadable counts a failed read of the user's log, and logs the failure once for each user.
func (d *DB) NoteUnreadable(ctx context.Context, user capping.UserID, err error) {
	d.config.CountError("log")
	if _, damaged := d.damaged.block(user); !damaged && d.damaged.add(user, err) {
		d.config.Logger.ErrorContext(ctx, "a log cannot be read; erase the user to start a new log",
			"user", user, "error",
			err.Error())
	}
}

// NoteErased removes an erased user from the list of users with unreadable logs.
func (d *DB) NoteErased(user capping.UserID) { d.damaged.remove(user) }

// NotePacerUnreadable counts a failed read of the pacer's log with the given key, and logs the failure once for each
// key.
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
	d.config.Logger.Error("the stored log of a pacer (rate limiter) cannot be read",
		"error", d.damaged.pacers[key].Error())
}

// After the reset of a pacer, NoteForgotten removes the pacer's logs from the list of unreadable logs. The argument
// "prefix" of NoteForgotten is the prefix of the logs' keys.
func (d *DB) NoteForgotten(prefix string) {
	d.damaged.mu.Lock()
	defer d.damaged.mu.Unlock()
	maps.DeleteFunc(d.damaged.pacers, func(key string, _ error) bool { return strings.HasPrefix(key, prefix) })
}

// NoteChangesDamaged records that stored live changes (changes of sets by API calls) cannot be read. With a nil error,
// NoteChangesDamaged records that the live changes can be read again.
func (d *DB) NoteChangesDamaged(err error) {
	if err == nil {
		d.damaged.changes.Store(nil)
		return
	}
	d.config.CountError("log")
	why := firstLine(err).Error()
	d.damaged.changes.Store(&why)
}

// acceptName is the name of a file in the store's directory. With this file, an operator accepts the loss of unreadable
// live changes (changes of sets by API calls).
const acceptName = "ACCEPT-LOST-CHANGES"

// AcceptFile returns the path of the file with which an operator accepts the loss of unreadable live changes (changes
// by API calls).
func (d *DB) AcceptFile() string { return d.config.FS.PathJoin(d.config.Path, acceptName) }

// AcceptsLostChanges reports whether an operator has created the file that accepts the loss of unreadable live changes
// (changes by API calls).
func (d *DB) AcceptsLostChanges() (bool, error) {
	_, err := d.config.FS.Stat(d.AcceptFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// AcceptedLostChanges removes the file ACCEPT-LOST-CHANGES after the accepted loss, so that the file does not accept a
// later loss.
func (d *DB) AcceptedLostChanges() error { return d.config.FS.Remove(d.AcceptFile()) }
