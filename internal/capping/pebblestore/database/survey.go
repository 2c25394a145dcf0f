package database

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// After a failed read of a user's log, the method "survey" finds the damaged part of the table files. The method
// "survey" also finds the range of users whose logs may be in the damaged part. If the method "survey" has found new
// facts about the damage, its result "learned" is true, and the caller should read the log again. The argument
// "filtered" of the method "survey" is true if the failed read used Bloom filters.
func (d *DB) survey(user capping.UserID, filtered bool, err error) (learned bool) {
	info := pebble.ExtractDataCorruptionInfo(err)
	if info == nil {
		return false
	}
	d.damaged.mu.Lock()
	defer d.damaged.mu.Unlock()
	if _, known := d.damaged.block(user); known {
		return true
	}
	if d.canSeek(user, (*pebble.Iterator).SeekGE) {
		// The failed iterator may have met a damaged block between its start and this log.
		if d.canSeek(user, (*pebble.Iterator).SeekPrefixGE) {
			return true
		}
		d.stopFiltering(err)
		return filtered
	}
	low, high := d.usersOf(info.Bounds.Start, info.Bounds.End.Key)
	if user < low || user > high {
		return false
	}
	b := block{d.firstDamaged(user, low), d.lastDamaged(user, high), firstLine(err)}
	d.damaged.put(b)
	d.config.Logger.Error("a block of logs is damaged: its users are unavailable; erase a user to start a new log",
		"first", b.first, "last", b.last, "error", b.err.Error())
	return true
}

// stopFiltering makes all later reads of logs work without Bloom filters, because a Bloom filter is damaged.
func (d *DB) stopFiltering(err error) {
	if !d.damaged.unfiltered.Swap(true) {
		d.config.Logger.Error("a filter of a database table is damaged: logs are read without filters, which is slower",
			"error",
			firstLine(err).Error())
	}
}

// usersOf returns the range of users whose logs can be between two keys of a table file. If the argument "start" or
// "end" is not the key of a log, the range of users is unlimited on that side.
func (d *DB) usersOf(start, end []byte) (low, high capping.UserID) {
	high = d.lastUser()
	if len(start) == d.logKeySize() && start[0] == KeyLog {
		low = d.firstUser(start)
	}
	if len(end) == d.logKeySize() && end[0] == KeyLog {
		high = d.firstUser(end)
	}
	return low, high
}

// firstLine returns an error with only the first line of the error text, because the other lines are details of Pebble.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}

// canSeek reports whether a new iterator can seek to the user's log without an error. The argument "seek" of canSeek is
// SeekPrefixGE (with Bloom filters) or SeekGE (without Bloom filters).
func (d *DB) canSeek(user capping.UserID, seek func(*pebble.Iterator, []byte) bool) (ok bool) {
	d.walk(func(it *pebble.Iterator) {
		seek(it, d.LogKey(user))
		ok = it.Error() == nil
	})
	return ok
}

// surveyStep returns the distance in user ids from a damaged log at which the first walk towards this log starts. If a
// walk starts too near to the damaged log, it reads the damaged block one more time. With 270 million users,
// neighbouring id images (64-bit numbers that stand for ids) are on average 1<<36 apart, so 1<<44 skips about 256
// users.
func (d *DB) surveyStep() capping.UserID {
	if d.wide {
		return 1 << 44
	}
	return 256
}

// firstDamaged returns the first user, from "low" on, whose log may be in the same damaged block as the log of the
// given user. A walk in ascending order can read all logs of users before the returned user.
func (d *DB) firstDamaged(user, low capping.UserID) (first capping.UserID) {
	for step := d.surveyStep(); step < user-low; step *= 4 {
		d.walk(func(it *pebble.Iterator) {
			for ok := it.SeekGE(d.LogKey(user - step)); ok && d.firstUser(it.Key()) < user; ok = it.Next() {
				first = d.firstUser(it.Key()) + 1
			}
		})
		if first > 0 {
			return first
		}
		if step > d.lastUser()/4 {
			break
		}
	}
	return low
}

// lastDamaged returns the last user, up to "high", whose log may be in the same damaged block as the log of the given
// user.
func (d *DB) lastDamaged(user, high capping.UserID) (last capping.UserID) {
	last = high
	for step := d.surveyStep(); step < high-user; step *= 4 {
		found := false
		d.walk(func(it *pebble.Iterator) {
			for ok := it.SeekGE(d.LogKey(user + step)); ok && d.firstUser(it.Key()) > user; ok = it.Prev() {
				last, found = d.firstUser(it.Key())-1, true
			}
		})
		if found || step > d.lastUser()/4 {
			break
		}
	}
	return last
}

// The method "walk" calls the function "over" with an iterator over the logs of all users.
func (d *DB) walk(over func(*pebble.Iterator)) {
	it, err := d.DB.NewIter(&pebble.IterOptions{LowerBound: []byte{KeyLog}, UpperBound: []byte{KeyLog + 1}})
	if err != nil {
		return
	}
	over(it)
	_ = it.Close() // repeats the error at which the walk ended
}

// KeyBehind returns the first key after a damaged block, so that a walk over the keys can continue there. The argument
// "key" of KeyBehind is the last key that the walk reached, and "err" is the error of the walk.
func (d *DB) KeyBehind(key []byte, err error) (next []byte, _ error) {
	if len(key) > d.logKeySize() || key[0] != KeyLog {
		return nil, err
	}
	user, whole := d.UserOf(key)
	if whole && user < d.lastUser() {
		user++
	}
	if _, known := d.damaged.block(user); !known && !d.survey(user, false, err) {
		return nil, err
	}
	b, damaged := d.damaged.block(user)
	if !damaged {
		return nil, err
	}
	if b.last == d.lastUser() {
		return []byte{KeyMessage}, nil
	}
	return d.LogKey(b.last + 1), nil
}
