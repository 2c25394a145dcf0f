package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
	users  map[capping.UserID]error // a few, whose values are no logs
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

// err is what a status says; nil: nothing is damaged.
func (d *damage) err() error {
	if blocks := d.blocks.Load(); blocks != nil {
		first := (*blocks)[0]
		return fmt.Errorf("damaged blocks of logs: %d, among them that of users %d to %d: %w", len(*blocks), first.first, first.last, first.err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for user, err := range d.users {
		return fmt.Errorf("logs that cannot be read: %d, among them that of user %d: %w", len(d.users), user, err)
	}
	if d.unfiltered.Load() {
		return errors.New("a filter of a table is damaged: logs are read without filters, more slowly")
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
func (s *Store) mend(batch *pebble.Batch, user capping.UserID, log capping.Log) {
	if _, damaged := s.damaged.block(user); !damaged {
		return
	}
	if len(log) == 0 {
		_ = batch.Set(logKey(user), nil, nil) // fails only for indexed batches
	}
	if !s.damaged.isMended(user) {
		_ = batch.Set(mendedKey(user), nil, nil)
		s.damaged.mended.Store(user, true)
	}
}

// loadMended reads which users were mended by earlier runs.
func (s *Store) loadMended() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyMended}, UpperBound: []byte{keyMended + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); len(key) == logKeySize {
			s.damaged.mended.Store(binary.BigEndian.Uint32(key[1:]), true)
		}
	}
	return it.Error()
}

// survey finds out what of the tables is damaged so that this user's log could
// not be read, and reports whether the log may be read again for it. filtered is
// how it was read.
func (s *Store) survey(user capping.UserID, filtered bool, err error) (learned bool) {
	info := pebble.ExtractDataCorruptionInfo(err)
	if info == nil {
		return false
	}
	s.damaged.mu.Lock()
	defer s.damaged.mu.Unlock()
	if _, known := s.damaged.block(user); known {
		return true
	}
	if s.readable(user, (*pebble.Iterator).SeekGE) {
		// An iterator that comes from before a damaged block meets it on its way.
		if s.readable(user, (*pebble.Iterator).SeekPrefixGE) {
			return true
		}
		s.leaveFilters(err)
		return filtered
	}
	low, high := usersOf(info.Bounds.Start, info.Bounds.End.Key)
	if user < low || user > high {
		return false
	}
	b := block{s.firstDamaged(user, low), s.lastDamaged(user, high), firstLine(err)}
	s.damaged.put(b)
	s.logger.Error("a block of logs is damaged: its users are unavailable; erasing one makes its log new",
		"first", b.first, "last", b.last, "error", b.err.Error())
	return true
}

// leaveFilters reads without filters from now on, as one of them is damaged.
func (s *Store) leaveFilters(err error) {
	if !s.damaged.unfiltered.Swap(true) {
		s.logger.Error("a filter of a table is damaged: logs are read without filters, more slowly", "error", firstLine(err).Error())
	}
}

// usersOf is the users between two keys of a table, the others cut off.
func usersOf(start, end []byte) (low, high capping.UserID) {
	high = math.MaxUint32
	if len(start) == logKeySize && start[0] == keyLog {
		low = binary.BigEndian.Uint32(start[1:])
	}
	if len(end) == logKeySize && end[0] == keyLog {
		high = binary.BigEndian.Uint32(end[1:])
	}
	return low, high
}

// firstLine is the error without what Pebble hangs on to it.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}

// readable reports whether a new iterator can look for the user's log: by
// SeekGE without filters, by SeekPrefixGE with them.
func (s *Store) readable(user capping.UserID, seek func(*pebble.Iterator, []byte) bool) (ok bool) {
	s.walk(func(it *pebble.Iterator) {
		seek(it, logKey(user))
		ok = it.Error() == nil
	})
	return ok
}

// surveyStep is how far from a damaged log the walk towards it begins, in
// users; each further attempt costs one look at the damage.
const surveyStep = 256

// firstDamaged is the first user, not before low, that may be in the damaged
// block of user: that after the last one which can be read on the way to it.
func (s *Store) firstDamaged(user, low capping.UserID) (first capping.UserID) {
	for step := capping.UserID(surveyStep); step < user-low; step *= 4 {
		s.walk(func(it *pebble.Iterator) {
			for ok := it.SeekGE(logKey(user - step)); ok && userOfKey(it) < user; ok = it.Next() {
				first = userOfKey(it) + 1
			}
		})
		if first > 0 {
			return first
		}
		if step > math.MaxUint32/4 {
			break
		}
	}
	return low
}

// lastDamaged is firstDamaged's other end.
func (s *Store) lastDamaged(user, high capping.UserID) (last capping.UserID) {
	last = high
	for step := capping.UserID(surveyStep); step < high-user; step *= 4 {
		found := false
		s.walk(func(it *pebble.Iterator) {
			for ok := it.SeekGE(logKey(user + step)); ok && userOfKey(it) > user; ok = it.Prev() {
				last, found = userOfKey(it)-1, true
			}
		})
		if found || step > math.MaxUint32/4 {
			break
		}
	}
	return last
}

func userOfKey(it *pebble.Iterator) capping.UserID { return binary.BigEndian.Uint32(it.Key()[1:]) }

// walk has an iterator over all logs.
func (s *Store) walk(over func(*pebble.Iterator)) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyLog}, UpperBound: []byte{keyLog + 1}})
	if err != nil {
		return
	}
	over(it)
	_ = it.Close() // repeats the error at which the walk ended
}
