package pebblestore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/live"
)

// Packing keeps the stored log of live changes (changes of sets by API calls) small: packing combines the records of
// small calls into full records. From time to time, a pass over the full records drops unnecessary changes. A change is
// unnecessary if a later change of the same user has replaced it, or if all generations (published versions) contain
// it.
const (
	packFrom   = 64       // records of small calls are packed if there are more than this number
	packBytes  = 64 << 10 // approximate size of the records in one pack, which takes about 3 ms
	packRounds = 16       // largest number of packs of this size in one step
	packSlack  = 10_000   // number of superfluous changes in the log before a pass starts
)

// The type "packing" is the progress of packing the records of live changes (changes of sets by API calls).
type packing struct {
	mu     sync.Mutex // held during a pack; protects the fields below
	wanted bool       // a pass must start
	stuck  bool       // damaged records could not be written again, so packing would always fail
	pass   *pass      // nil: no pass is in progress
	pause  int        // number of steps before the next pass for changes of the kind Forgotten
	floor  int        // number of changes after the last pass
	// If changeLog.forgot equals clean, a pass has removed every change that a change of the kind Forgotten cancels.
	// The value -1 means that no ended pass has removed all these changes.
	clean int
	from  uint64 // lowest possible number of a record of a small call, so that reads skip removed keys
}

// A pass is a walk over the full change records that drops unnecessary changes. The remaining records of the pass have
// numbers from "next" to below "end".
type pass struct {
	next, end uint64
	skip      []interval // records that were pending at the start of the pass
	forgot    int        // the value of changeLog.forgot at the start of the pass
	whole     bool       // this pass also removes changes of the kind Forgotten
}

// The method Pack runs one step of packing: combining stored records of live changes (changes by API calls) into fewer
// records.
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

// packSome packs some records of live changes (changes by API calls), and reports whether more records may need
// packing.
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

// The method "need" returns the number of stored records of small calls, and reports whether a pass over the full
// records must start.
func (c *changeLog) need() (fresh int, pass bool) {
	p := &c.packing
	c.mu.Lock()
	defer c.mu.Unlock()
	pass = p.wanted || c.forgets > 0 && p.pause <= 0 || c.entries > 2*max(c.standing(), p.floor)+packSlack
	return c.fresh, pass
}

// The method "standing" returns the number of live changes (changes by API calls) in the lists in memory. The caller of
// the method "standing" must hold c.mu.
func (c *changeLog) standing() (n int) {
	for set := range c.sets {
		n += c.lists.Len(set)
	}
	return n
}

// packFresh packs the oldest change records of small calls into full records. It returns the number of records that are
// not packed yet.
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

// The method "applied" returns the number of the next change record. The lists in memory contain the changes of all
// records with lower numbers. Only the changes of the pending records in the result "except" may be missing.
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

// continuePass packs the next full change records in the current pass (walk that drops unnecessary changes).
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

// endPass ends a pass over the full change records, and reports whether the next pass can start immediately. A change
// of the kind Forgotten cancels earlier changes of a user. A pass may remove changes of the kind Forgotten only after
// another pass has removed the canceled changes.
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

// The type "records" holds change records that were read from the database together.
type records struct {
	numbers []uint64
	records []*live.Record
	next    uint64 // the number at which the next read starts; 0: no record follows
}

// The method "read" reads the change records with numbers from "from" to below "end", except the records in the
// argument "skip".
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

// The method "replace" replaces the change records in the argument "found" by packed records, in one atomic step.
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
