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

// The method Lists returns all live changes (changes of sets by API calls) in the store; see live.Store.
func (s *Store) Lists() *live.Lists { return s.changes.lists }

// The method Change stores the changes that an API call makes to a set; see live.Store. If Change returns an error, all
// users of the batch are Unstored.
func (s *Store) Change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	stored, err := s.changes.Change(ctx, b)
	if err != nil {
		return live.Stored{Unstored: usersOf(b)}, fmt.Errorf("change set %q: %w", b.Set, err)
	}
	return stored, nil
}

// The method Free removes live changes that every generation (published version) in use contains; see live.Store. The
// method Free removes the changes from memory, and background work later removes them from the disk.
func (s *Store) Free(ctx context.Context, upTo map[string]capping.Instant) error {
	if err := s.changes.Free(ctx, upTo); err != nil {
		return fmt.Errorf(
			"remove stored changes of sets that all generations (published versions) in use contain: %w", err)
	}
	return nil
}

// The method Renew does nothing, because the embedded store has every change in memory.
func (s *Store) Renew(context.Context, []capping.UserID) error { return nil }

// AnnounceAsOf does nothing, because no other instance of capper shares the embedded store.
func (s *Store) AnnounceAsOf(map[string]capping.Instant) {}

// OthersAsOf returns nil and true, because no other instance of capper shares the embedded store.
func (s *Store) OthersAsOf() (asOf map[string]capping.Instant, ok bool) { return nil, true }

// A changeLog keeps the live changes (changes of sets by API calls): all records in the database, and the latest change
// of each user in memory. A changeLog is safe for concurrent use.
type changeLog struct {
	db     *database.DB
	lists  *live.Lists
	logger *slog.Logger

	mu      sync.Mutex // protects the fields below, and writes of records
	next    uint64     // the number of the next record
	pending []interval // records whose changes may be missing from the lists in memory
	fresh   int        // number of records under freshPrefix
	entries int        // number of changes in all records
	forgets int        // number of changes in all records that forget earlier changes
	forgot  int        // total number of such changes that were written or loaded
	sets    map[string]bool

	packing packing
	lost    string // a text about unreadable changes whose loss an operator accepted; "": none
}

// An interval contains the numbers of change records from "first" up to, but not including, "end".
type interval struct{ first, end uint64 }

// If a call changes at least bulkUsers users, the store writes full change records instead of one small record.
const bulkUsers = 500

// recordUsers and recordImages are the maximum numbers of users in a change record. A dense id takes up to five bytes
// in a record, and an id image (64-bit number that stands for the id) up to ten bytes.
const (
	recordUsers  = live.RecordBytes / 5
	recordImages = live.RecordBytes / 10
)

// The method Change stores the changes of the batch durably, and then applies them to the lists in memory.
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
	now, err := c.db.Now()
	if err != nil {
		return live.Stored{}, err
	}
	rest, followed := c.lists.WithoutLater(b, capping.CallerOf(ctx).Later(now, 0))
	if len(usersOf(&rest)) == 0 {
		return live.Stored{At: now, Superseded: followed}, nil
	}
	record, numbers, err := c.write(ctx, &rest)
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
	return live.Stored{At: record.Runs[0].At, Superseded: followed + c.lists.Superseded(record)}, nil
}

// The method "write" commits the change records of the batch to the database, without a sync to the disk. The written
// records are pending until their changes are also in the lists in memory.
func (c *changeLog) write(ctx context.Context, b *live.Batch) (*live.Record, interval, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.db.Now()
	if err := errors.Join(err, ctx.Err(), c.db.Broken()); err != nil {
		return nil, interval{}, err
	}
	at := c.lists.Stamp(b, now)
	if at >= capping.Never {
		return nil, interval{}, fmt.Errorf(
			"change to a set of users: the time must be below %d ms since 2024-01-01T00:00:00Z, got %d",
			capping.Never, at)
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

// The method "put" adds one record of live changes (changes by API calls) with the next record number to the database
// batch. The caller of the method "put" must hold the lock c.mu, and must commit the batch.
func (c *changeLog) put(batch *pebble.Batch, prefix []byte, r *live.Record) {
	_ = batch.Set(changeKey(prefix, c.next), live.AppendRecord(nil, r), nil) // fails only for indexed batches
	c.next++
	c.count(prefix, r, 1)
}

// The method "count" adds the change record to the counters of the changeLog; n = -1 subtracts the record. The caller
// of the method "count" must hold c.mu.
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

// The method "parts" splits a large change record into several full records.
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

// checkBatch rejects a batch of live changes (changes by API calls) that the store could write, but could not read back
// later.
func checkBatch(b *live.Batch) error {
	switch {
	case b.Set == "":
		return errors.New("change to a set of users must name the set")
	case b.At < 0 || b.At >= capping.Never:
		return fmt.Errorf(
			"change to a set of users: the time must be at least 0 and below %d ms since 2024-01-01T00:00:00Z, got %d",
			capping.Never, b.At)
	case len(b.Add)+len(b.Remove)+len(b.Forget) == 0:
		return errors.New("change to a set of users must name at least one user")
	}
	for _, users := range [][]capping.UserID{b.Add, b.Remove, b.Forget} {
		for i := 1; i < len(users); i++ {
			if users[i-1] >= users[i] {
				return fmt.Errorf("change to a set of users: the user ids must ascend, but user %d follows user %d",
					users[i], users[i-1])
			}
		}
	}
	return nil
}

func usersOf(b *live.Batch) []capping.UserID { return slices.Concat(b.Add, b.Remove, b.Forget) }

// The method Free durably stores a time for each set: all generations (published versions) in use contain the set's
// changes up to this time. The method Free also removes the freed changes from memory. If a set has no live changes
// (changes by API calls) up to its time, Free stores no time for the set. Without such a time, older generations
// (published versions) of segments stay usable.
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
