package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/live"
)

func openChanges(db *database.DB, logger *slog.Logger) (*changeLog, error) {
	c := newChanges(db, logger)
	damage := c.load()
	if damage == nil {
		return c, nil
	}
	accepted, err := db.AcceptsLostChanges()
	switch {
	case err != nil:
		return nil, err
	case !accepted:
		return nil, fmt.Errorf(
			"changes to sets of users cannot be read, so the store may not know all users who opted out: "+
				"%w: restore a backup; or, to continue without the unreadable changes, create the file %s", damage,
			db.AcceptFile())
	}
	return salvage(db, logger, damage)
}

func newChanges(db *database.DB, logger *slog.Logger) *changeLog {
	c := &changeLog{db: db, lists: live.New(0), logger: logger, next: 1, sets: map[string]bool{}}
	if db.IDs() != (IDs{}) {
		c.lists = live.NewOfImages(0)
	}
	c.packing.clean = -1
	return c
}

// The method "load" reads all live changes (changes of sets by API calls) from the database into the lists in memory.
// If a record of a live change cannot be read, "load" returns an error.
func (c *changeLog) load() error {
	freed, err := c.loadFreed()
	if err != nil {
		return err
	}
	c.lists.Drop(freed)
	if !c.db.HasChanges() {
		return nil
	}
	return c.eachRecord(func(prefix []byte, r *live.Record) { c.add(prefix, r) })
}

func (c *changeLog) loadFreed() (map[string]capping.Instant, error) {
	value, err := c.db.Lookup(freedKey)
	if err != nil {
		return nil, err
	}
	return live.DecodeFreed(value)
}

// The method "add" applies a record of live changes (changes by API calls) from the database to the lists in memory.
func (c *changeLog) add(prefix []byte, r *live.Record) {
	c.lists.Apply(r)
	c.count(prefix, r, 1)
	c.forgot += forgetsOf(r)
}

// eachRecord calls the function "do" for every stored record of live changes (changes by API calls). It then sets
// c.next to a number above all record numbers.
func (c *changeLog) eachRecord(do func(prefix []byte, r *live.Record)) error {
	for _, prefix := range [][]byte{freshPrefix, packedPrefix} {
		if _, err := c.eachFrom(prefix, 0, do); err != nil {
			return err
		}
	}
	return nil
}

// eachFrom calls the function "do" for records of live changes (changes by API calls). The keys of these records begin
// with the prefix, and the records' numbers are at least the argument "from". The method eachFrom returns the number of
// the last found record, and an error if a record cannot be read.
func (c *changeLog) eachFrom(prefix []byte, from uint64, do func([]byte, *live.Record)) (last uint64, err error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: changeKey(prefix, from),
		UpperBound: database.After(prefix)})
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var r *live.Record
		if last, r, err = decodeChange(it.Key(), it.Value()); err == nil {
			do(prefix, r)
			c.next = max(c.next, last+1)
		}
	}
	return last, errors.Join(err, it.Close())
}

// decodeChange decodes the key and the value of a change record. If the value cannot be decoded, decodeChange still
// returns the record's number from the key.
func decodeChange(key, value []byte) (number uint64, r *live.Record, err error) {
	number, ok := changeNumber(key)
	if !ok {
		return 0, nil, damaged("key %x is not one of a record", key)
	}
	if r, err = live.DecodeRecord(value); err != nil {
		return number, nil, damaged("number %d: %w", number, err)
	}
	return number, r, nil
}

// The function "salvage" repairs a damaged log of live changes (changes by API calls): it loads the readable records,
// and writes the log again with these records.
func salvage(db *database.DB, logger *slog.Logger, damage error) (*changeLog, error) {
	c := newChanges(db, logger)
	if freed, err := c.loadFreed(); err == nil {
		c.lists.Drop(freed)
	}
	for _, prefix := range [][]byte{freshPrefix, packedPrefix} {
		c.readAround(prefix)
	}
	if err := c.rewrite(nil); err != nil {
		return nil, fmt.Errorf("rewrite the stored records of changes to sets of users: %w", err)
	}
	if err := db.AcceptedLostChanges(); err != nil {
		return nil, err
	}
	c.lost = "changes to sets were damaged, and the unreadable ones are lost: " + damage.Error()
	logger.Error("damaged changes to sets of users are lost: the operator accepted the loss", "error", damage.Error())
	return c, nil
}

// readAround loads the readable live change records whose keys have the prefix. After an unreadable record, readAround
// continues at a larger number, and doubles the distance until it finds a readable record.
func (c *changeLog) readAround(prefix []byte) {
	for from, step := uint64(0), uint64(1); ; step *= 2 {
		last, err := c.eachFrom(prefix, from, c.add)
		if err == nil {
			return
		}
		if last > from {
			from, step = last, 1
		}
		if from > math.MaxUint64-step {
			return
		}
		from += step
	}
}

// The method "rewrite" replaces the stored change records by records with the changes in memory, except the pending
// records (records of calls in progress). The method "rewrite" also reads the new records back to check them.
func (c *changeLog) rewrite(pending []interval) error {
	batch := c.db.NewBatch()
	defer batch.Close()
	for _, prefix := range [][]byte{freshPrefix, packedPrefix} {
		from := uint64(0)
		for _, kept := range slices.SortedFunc(slices.Values(pending), func(a, b interval) int {
			return int(int64(a.first) - int64(b.first))
		}) {
			_ = batch.DeleteRange(changeKey(prefix, from), changeKey(prefix, kept.first), nil)
			from = kept.end
		}
		_ = batch.DeleteRange(changeKey(prefix, from), database.After(prefix), nil)
	}
	for _, r := range c.lists.Records(func(capping.UserID) bool { return true }) {
		c.put(batch, packedPrefix, r)
	}
	_ = batch.Set(freedKey, live.AppendFreed(nil, c.lists.AllFreed()), nil)
	c.db.Commit(batch)
	if err := c.db.Sync(context.Background()); err != nil {
		return err
	}
	c.fresh, c.entries, c.forgets = 0, 0, 0
	return c.eachRecord(func(prefix []byte, r *live.Record) { c.count(prefix, r, 1) })
}

// The method "mend" writes all live changes (changes by API calls) from memory to the database again, because some
// stored records could not be read. The method "mend" loses no live change, because the memory has every live change.
func (c *changeLog) mend(damage error) error {
	c.packing.pass, c.packing.clean, c.packing.from = nil, -1, 0
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.rewrite(c.pending); err != nil {
		c.packing.stuck = true
		c.db.NoteChangesDamaged(damage)
		return fmt.Errorf("rewrite the damaged records of changes to sets of users: %w", err)
	}
	c.db.NoteChangesDamaged(nil)
	c.logger.Warn("the store rewrote damaged changes to sets of users from memory", "error", damage.Error())
	return nil
}
