package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/live"
)

var _ live.Store = (*Store)(nil)

// Lists returns all live changes to sets that the store has; see live.Store.
func (s *Store) Lists() *live.Lists { return s.changes.lists }

// Change stores the changes of a call to the users of a set; see live.Store. If Change returns an error, all users of
// the batch are Unstored.
func (s *Store) Change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	stored, err := s.changes.Change(ctx, b)
	if err != nil {
		return live.Stored{Unstored: usersOf(b)}, fmt.Errorf("change set %q: %w", b.Set, err)
	}
	return stored, nil
}

// Free removes the live changes that every generation of segments in use contains; see live.Store. Free removes the
// live changes from memory. Background work later removes them from the disk.
func (s *Store) Free(ctx context.Context, upTo map[string]capping.Instant) error {
	if err := s.changes.Free(ctx, upTo); err != nil {
		return fmt.Errorf("free changes to sets: %w", err)
	}
	return nil
}

// Renew does nothing, because a store that only one process uses already has every change.
func (s *Store) Renew(context.Context, []capping.UserID) error { return nil }

// AnnounceAsOf does nothing, because there is no other instance of capper that shares the embedded store.
func (s *Store) AnnounceAsOf(map[string]capping.Instant) {}

// OthersAsOf returns nil and true, because there is no other instance of capper that shares the embedded store.
func (s *Store) OthersAsOf() (asOf map[string]capping.Instant, ok bool) { return nil, true }

// A changeLog keeps the live changes that API calls make to sets. A changeLog has all records in the database, and the
// latest change of each user in memory. A changeLog is safe for concurrent use.
type changeLog struct {
	db     *database.DB
	lists  *live.Lists
	logger *slog.Logger

	mu      sync.Mutex // protects the fields below, and writes of records
	next    uint64     // the number of the next record
	pending []interval // records of calls whose changes the lists in memory may lack
	fresh   int        // number of records under freshPrefix
	entries int        // number of changes in all records
	forgets int        // number of changes in all records that forget earlier changes
	forgot  int        // number of such changes that were ever written or loaded
	sets    map[string]bool

	packing packing
	lost    string // a text about changes that could not be read and whose loss an operator accepted; "": none
}

// An interval is a range of numbers of change records: at least "first" and below "end".
type interval struct{ first, end uint64 }

// bulkUsers is the number of changed users from which on a call writes full change records and not small ones.
const bulkUsers = 500

// These constants are the numbers of users in a full change record. In a change record, a dense id takes at most five
// bytes, and an id image (64-bit number that stands for the id) at most ten.
const (
	recordUsers  = live.RecordBytes / 5
	recordImages = live.RecordBytes / 10
)

// Change stores the changes of the batch durably, and then applies them to the lists in memory.
func (c *changeLog) Change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	if err := errors.Join(checkBatch(b), c.db.CheckUsers(usersOf(b)...)); err != nil {
		return live.Stored{}, err
	}
	kept := *b // the caller may stop waiting and reuse the slices
	kept.Add, kept.Remove, kept.Forget = slices.Clone(b.Add), slices.Clone(b.Remove), slices.Clone(b.Forget)
	var stored live.Stored
	err := c.db.Write(ctx, func() (err error) {
		stored, err = c.change(ctx, &kept)
		return err
	})
	if err != nil {
		return live.Stored{}, err // the write may still be in progress and set stored
	}
	return stored, nil
}

func (c *changeLog) change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	record, numbers, err := c.write(ctx, b)
	if err != nil {
		return live.Stored{}, err
	}
	if err := c.db.Sync(ctx); err != nil {
		return live.Stored{}, err
	}
	c.lists.Apply(record)
	c.mu.Lock()
	c.pending = slices.DeleteFunc(c.pending, func(s interval) bool { return s == numbers })
	c.mu.Unlock()
	return live.Stored{At: record.Runs[0].At, Superseded: c.lists.Superseded(record)}, nil
}

// write commits the change records of the batch to the database. write does not wait for a sync to the disk.
// The written records count as pending until their changes are also in the lists in memory.
func (c *changeLog) write(ctx context.Context, b *live.Batch) (*live.Record, interval, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.db.Now()
	if err := errors.Join(err, ctx.Err(), c.db.Broken()); err != nil {
		return nil, interval{}, err
	}
	at := c.lists.Stamp(b, now)
	if at >= capping.Never {
		return nil, interval{}, fmt.Errorf("change to a set: the time must be below %d, got %d", capping.Never, at)
	}
	record := live.RecordOf(b, at)
	batch := c.db.NewBatch()
	defer batch.Close()
	numbers := interval{first: c.next}
	c.forgot += len(b.Forget)
	if record.Len() < bulkUsers {
		c.put(batch, freshPrefix, record)
	} else {
		for _, part := range c.parts(record) {
			c.put(batch, packedPrefix, part)
		}
	}
	numbers.end = c.next
	c.db.MarkChanges(batch)
	c.pending = append(c.pending, numbers)
	c.db.Commit(batch)
	return record, numbers, c.db.Broken()
}

// put adds one record of live changes to the database batch, and gives it the next number. The caller of put must hold
// the lock c.mu, and must commit the batch.
func (c *changeLog) put(batch *pebble.Batch, prefix []byte, r *live.Record) {
	_ = batch.Set(changeKey(prefix, c.next), live.AppendRecord(nil, r), nil) // fails only for indexed batches
	c.next++
	c.count(prefix, r, 1)
}

// count adds the change record to the counters of the changeLog. If n is -1, count subtracts the record. The caller of
// count holds c.mu.
func (c *changeLog) count(prefix []byte, r *live.Record, n int) {
	if bytes.Equal(prefix, freshPrefix) {
		c.fresh += n
	}
	c.entries += n * r.Len()
	c.forgets += n * forgetsOf(r)
	c.sets[r.Set] = true
}

func forgetsOf(r *live.Record) (n int) {
	for i := range r.Runs {
		n += len(r.Runs[i].Users[live.Forgotten])
	}
	return n
}

// parts splits a large change record into several full records.
func (c *changeLog) parts(r *live.Record) (parts []*live.Record) {
	most := recordUsers
	if c.db.IDs() != (IDs{}) {
		most = recordImages
	}
	for kind, users := range r.Runs[0].Users {
		for some := range slices.Chunk(users, most) {
			run := live.Run{At: r.Runs[0].At}
			run.Users[kind] = some
			parts = append(parts, &live.Record{Set: r.Set, By: r.By, Runs: []live.Run{run}})
		}
	}
	return parts
}

// checkBatch rejects a batch of live changes that the store could write, but could not read back later.
func checkBatch(b *live.Batch) error {
	switch {
	case b.Set == "":
		return errors.New("change to a set must name the set")
	case b.At < 0 || b.At >= capping.Never:
		return fmt.Errorf("change to a set: the time must be from 0 to below %d, got %d", capping.Never, b.At)
	case len(b.Add)+len(b.Remove)+len(b.Forget) == 0:
		return errors.New("change to a set must name at least one user")
	}
	for _, users := range [][]capping.UserID{b.Add, b.Remove, b.Forget} {
		for i := 1; i < len(users); i++ {
			if users[i-1] >= users[i] {
				return fmt.Errorf("change to a set: the user ids must ascend, but user %d follows user %d",
					users[i], users[i-1])
			}
		}
	}
	return nil
}

func usersOf(b *live.Batch) []capping.UserID { return slices.Concat(b.Add, b.Remove, b.Forget) }

// For each set, Free stores durably up to which instant the generations contain the set's changes. Free then removes
// these changes from memory. If a set has no live changes up to its instant, Free stores nothing for the set, so that
// older generations of segments can still be used.
func (c *changeLog) Free(ctx context.Context, upTo map[string]capping.Instant) error {
	kept := make(map[string]capping.Instant, len(upTo))
	for _, size := range c.lists.Sizes() {
		if at := upTo[size.Set]; size.Oldest > 0 && size.Oldest <= at {
			kept[size.Set] = at
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return c.db.Write(ctx, func() error { return c.free(ctx, kept) })
}

func (c *changeLog) free(ctx context.Context, upTo map[string]capping.Instant) error {
	c.packing.mu.Lock() // packing must not remove changes before their freeing is durable
	defer c.packing.mu.Unlock()
	freed := c.lists.AllFreed()
	for set, at := range upTo {
		freed[set] = max(freed[set], at)
	}
	batch := c.db.NewBatch()
	defer batch.Close()
	_ = batch.Set(freedKey, live.AppendFreed(nil, freed), nil) // fails only for indexed batches
	c.db.Commit(batch)
	if err := c.db.Sync(ctx); err != nil {
		return err
	}
	c.lists.Drop(freed)
	c.packing.wanted = true
	return nil
}
