package pebblestore

import (
	"context"
	"fmt"

	"capper/internal/messages"
)

// AddAnswers adds numbers of decisions to the stored counts of messages; see messages.Store. The new counts become
// durable with the next sync to the disk.
func (c *messageCounts) AddAnswers(ctx context.Context, deltas []messages.Delta) error {
	for i := range deltas {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.add(&deltas[i]); err != nil {
			return fmt.Errorf("add decisions to the counts of message %q: %w", deltas[i].Message.ID, err)
		}
	}
	return c.db.Broken()
}

func (c *messageCounts) add(delta *messages.Delta) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := idOf(delta.Key)
	r, err := c.load(i)
	if err != nil {
		return err
	}
	if r == nil {
		if !delta.Begins(c.memory) {
			return nil
		}
		r = newRecord(delta.Key, delta.First)
	}
	last := r.Last
	r.Answers.Add(&delta.Answers)
	r.Last = last // put sets the time of the last call
	batch := c.db.NewBatch()
	defer batch.Close()
	if err := c.put(batch, i, r, delta.Last); err != nil {
		return err
	}
	c.db.Commit(batch)
	return nil
}
