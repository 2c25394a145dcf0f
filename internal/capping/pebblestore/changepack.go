package pebblestore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/live"
)

// Packing keeps the stored log of live changes to sets small. To pack is to combine the records of calls with few users
// into full records. From time to time, a pass over the full records drops changes that were freed, and changes that a
// later change of the same user replaced.
const (
	packFrom   = 64       // from this number of records of small calls on, the records are packed
	packBytes  = 64 << 10 // size of the records that are packed together; takes about 3 ms
	packRounds = 16       // largest number of packs of this size in one step
	packSlack  = 10_000   // superfluous changes that the log may have before a pass starts
)

// packing holds how far the store has packed its records of live changes to sets.
type packing struct {
	mu     sync.Mutex // held during a pack; protects the fields below
	wanted bool       // a pass must start
	stuck  bool       // damaged records could not be written again; packing would fail at them again and again
	pass   *pass      // nil: no pass is in progress
	pause  int        // number of steps in which no pass starts that only removes forgotten changes
	floor  int        // number of changes after the last pass
	// When changeLog.forgot has the value clean, the log has lost every change that came before a forgotten change. If
	// there is no such value of changeLog.forgot, clean is -1.
	clean int
	from  uint64 // no record of a small call has a lower number; saves reading over removed keys
}

// A pass is a walk over the full change records, which drops changes that are no longer needed. The pass covers those
// records whose numbers are at least "next" and below "end".
type pass struct {
	next, end uint64
	skip      []interval // records that were pending when the pass started
	forgot    int        // the value of changeLog.forgot when the pass started
	whole     bool       // this pass also removes the forgotten changes themselves
}

// Pack runs one step of packing, which combines stored records of live changes into fewer records.
func (c *changeLog) Pack(ctx context.Context) error {
	c.packing.mu.Lock()
	defer c.packing.mu.Unlock()
	if c.packing.stuck {
		return nil
	}
	c.packing.pause--
	for range packRounds {
		if err := errors.Join(ctx.Err(), c.db.Broken()); err != nil {
			return err
		}
		busy, err := c.packSome()
		if isDamage(err) {
			return c.mend(err)
		}
		if err != nil || !busy {
			return err
		}
	}
	return nil
}

// packSome packs some records of live changes, and reports whether there may be more records to pack.
func (c *changeLog) packSome() (busy bool, err error) {
	p := &c.packing
	fresh, needed := c.need()
	if fresh > packFrom || needed && p.pass == nil && fresh > 0 {
		remaining, err := c.packFresh()
		if err != nil || remaining < fresh {
			return true, err
		}
	}
	if p.pass == nil && !needed {
		return false, nil
	}
	if p.pass == nil {
		c.beginPass()
	}
	return c.continuePass()
}

// need returns how many records of small calls are stored. need also reports whether a pass over the full records must
// start.
func (c *changeLog) need() (fresh int, pass bool) {
	p := &c.packing
	c.mu.Lock()
	defer c.mu.Unlock()
	pass = p.wanted || c.forgets > 0 && p.pause <= 0 || c.entries > 2*max(c.standing(), p.floor)+packSlack
	return c.fresh, pass
}

// standing returns how many live changes to sets the lists in memory hold. The caller of standing holds c.mu.
func (c *changeLog) standing() (n int) {
	for set := range c.sets {
		n += c.lists.Len(set)
	}
	return n
}

// packFresh packs the oldest change records of small calls into full records. packFresh returns how many records of
// small calls remain.
func (c *changeLog) packFresh() (remaining int, err error) {
	end, skip := c.applied()
	found, err := c.read(freshPrefix, c.packing.from, end, skip)
	if err != nil {
		return 0, err
	}
	if c.packing.from = found.next; found.next == 0 {
		c.packing.from = end
	}
	for _, s := range skip {
		c.packing.from = min(c.packing.from, s.first)
	}
	if len(found.numbers) > 0 {
		c.replace(freshPrefix, found, c.lists.Pack(found.records, false))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fresh, c.db.Broken()
}

// applied returns the number that the next change record will get. All change records with lower numbers are also in
// the lists in memory, with some exceptions. The result "except" of the method applied lists these exceptions: records
// whose changes the lists in memory may lack.
func (c *changeLog) applied() (end uint64, except []interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next, slices.Clone(c.pending)
}

func (c *changeLog) beginPass() {
	p := &c.packing
	p.pass, p.wanted = &pass{}, false
	p.pass.end, p.pass.skip = c.applied()
	c.mu.Lock()
	defer c.mu.Unlock()
	p.pass.forgot = c.forgot
	p.pass.whole = p.clean == c.forgot
	p.clean = -1
}

// continuePass packs the next full change records in the present pass.
func (c *changeLog) continuePass() (busy bool, err error) {
	p := c.packing.pass
	found, err := c.read(packedPrefix, p.next, p.end, p.skip)
	if err != nil {
		return false, err
	}
	packed := c.lists.Pack(found.records, p.whole)
	if lenOf(packed) < lenOf(found.records) || len(packed) <= len(found.records)/2 {
		c.replace(packedPrefix, found, packed)
	}
	if p.next = found.next; p.next > 0 {
		return true, c.db.Broken()
	}
	return c.endPass(p), c.db.Broken()
}

// endPass ends a pass over the full change records. endPass reports whether the next pass can start at once. Some
// changes say that earlier changes are forgotten. A pass may remove a change that forgets earlier changes only after a
// pass that removed the forgotten changes.
func (c *changeLog) endPass(ended *pass) (busy bool) {
	p := &c.packing
	p.pass, p.pause = nil, sweepPause
	c.mu.Lock()
	defer c.mu.Unlock()
	p.floor = c.entries
	if !ended.whole && c.forgets > 0 && c.forgot == ended.forgot {
		p.clean, p.pause = c.forgot, 0
	}
	return p.pause == 0
}

func lenOf(records []*live.Record) (n int) {
	for _, r := range records {
		n += r.Len()
	}
	return n
}

// A records value holds the change records that one call has read from the database.
type records struct {
	numbers []uint64
	records []*live.Record
	next    uint64 // the number at which the next read starts; 0: no record follows
}

// read reads the change records with numbers from the argument "from" up to, but not including, the argument "end".
// read leaves out the records whose numbers are in the argument "skip".
func (c *changeLog) read(prefix []byte, from, end uint64, skip []interval) (found records, err error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: changeKey(prefix, from),
		UpperBound: changeKey(prefix, end)})
	if err != nil {
		return found, err
	}
	size := 0
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		number, r, failed := decodeChange(it.Key(), it.Value())
		switch {
		case failed != nil:
			err = failed
		case slices.ContainsFunc(skip, func(s interval) bool { return s.first <= number && number < s.end }):
		case size >= packBytes:
			found.next = number
			return found, it.Close()
		default:
			found.numbers, found.records = append(found.numbers, number), append(found.records, r)
			size += len(it.Value())
		}
	}
	return found, errors.Join(err, it.Close())
}

// replace replaces the change records in the argument "found" by packed records, in one atomic step.
func (c *changeLog) replace(prefix []byte, found records, packed []*live.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.db.NewBatch()
	defer batch.Close()
	for i, number := range found.numbers {
		_ = batch.Delete(changeKey(prefix, number), nil) // fails only for indexed batches
		c.count(prefix, found.records[i], -1)
	}
	for _, r := range packed {
		c.put(batch, packedPrefix, r)
	}
	c.db.Commit(batch)
}
