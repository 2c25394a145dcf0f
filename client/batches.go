package client

import (
	"context"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// FilterAll filters an audience of any size: it is split into batches, of which
// Config.Parallel are called at one time. each gets every batch and its result,
// one after the other, in no particular order; its error stops the run. Users
// still unavailable after the retries are in their batch's result. Repeats of a
// user in r.Users are decided once in each batch, and are one send all the
// same; the later batch answers them as replayed.
//
// The first error is returned when the batches under way have ended. What
// they granted is recorded: run again with the same message id.
func (c *Client) FilterAll(ctx context.Context, r *FilterRequest, each func(*FilterRequest, *FilterResult) error) error {
	if err := r.check(); err != nil {
		return err
	}
	var mu sync.Mutex
	return c.parallel(ctx, r.Users, r.Bitmap, func(ctx context.Context, users []uint32, part *roaring.Bitmap) error {
		batch := *r
		batch.Users, batch.Bitmap = users, part
		result, err := c.Filter(ctx, &batch)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		return each(&batch, result)
	})
}

// parallel calls work for each batch of the audience, which is either users or
// bitmap, until one fails.
func (c *Client) parallel(ctx context.Context, users []uint32, audience *roaring.Bitmap,
	work func(context.Context, []uint32, *roaring.Bitmap) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, c.cfg.Parallel)
	var running sync.WaitGroup
	start := func(users []uint32, part *roaring.Bitmap) bool {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := work(ctx, users, part); err != nil {
				cancel(err)
			}
		})
		return true
	}
	if audience != nil {
		SplitBitmap(audience, c.cfg.BatchBitmap, func(part *roaring.Bitmap) bool { return start(nil, part) })
	} else {
		for batch := range slices.Chunk(users, c.cfg.BatchIDs) {
			if !start(batch, nil) {
				break
			}
		}
	}
	running.Wait()
	return context.Cause(ctx)
}
