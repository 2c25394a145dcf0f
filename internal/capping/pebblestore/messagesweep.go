package pebblestore

import (
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// messagesSweepFrom returns the database key at which the sweep of messages with expired counts begins.
func messagesSweepFrom() []byte { return slices.Clone(listPrefix) }

// The method Sweep removes expired counts of messages. One call of Sweep checks at most "most" messages of the list,
// beginning at the given key. Sweep returns the key for the start of the next call, or nil if no older message is left.
// The method Sweep skips unreadable messages.
func (c *messageCounts) Sweep(from []byte, most int, now capping.Instant, keep time.Duration) (next []byte, err error) {
	horizon := now - capping.Instant(keep.Milliseconds())
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: listKey(max(horizon, 0), id{})})
	if err != nil {
		return nil, err
	}
	var past []id
	for ok := it.First(); ok; ok = it.Next() {
		if len(past) == most {
			next = slices.Clone(it.Key())
			break
		}
		if i, _, valid := listed(it.Key()); valid {
			past = append(past, i)
		}
	}
	if err := it.Close(); err != nil {
		return nil, err
	}
	for _, i := range past {
		c.remove(i, horizon, now)
	}
	return next, nil
}

// If the last call about a message was not later than the argument "horizon", the method "remove" removes the counts of
// the message. The store keeps counts of activity (decisions of an hour, see messages.IsActivity) longer than other
// counts.
func (c *messageCounts) remove(i id, horizon, now capping.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.load(i)
	if err != nil || r == nil || r.Last > horizon || messages.IsActivity(r.key(i).Message) &&
		r.Last > now-capping.Instant(messages.ActivityKeep.Milliseconds()) {
		return
	}
	batch := c.db.NewBatch()
	defer batch.Close()
	_ = batch.Delete(recordKey(i), nil) // fails only for indexed batches
	_ = batch.Delete(listKey(r.Last, i), nil)
	sends := i.appendTo(slices.Clone(sendsPrefix))
	_ = batch.DeleteRange(sends, database.After(sends), nil)
	c.db.Commit(batch)
	delete(c.known, i)
}
