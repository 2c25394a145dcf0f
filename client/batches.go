package client

import (
	"context"
	"iter"
	"math"
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
// Of an r.Audience every batch is a part of one generation, whatever is published
// meanwhile: see Parts. What ends such a run while parts are asked for is an *AudienceError;
// what the count before them is refused with is not, as there is nothing to go on with.
//
// The first error is returned when the batches under way have ended. What
// they granted is recorded: run again with the same message id.
func (c *Client) FilterAll(ctx context.Context, r *FilterRequest,
	each func(*FilterRequest, *FilterResult) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Audience == nil {
		return c.filterBatches(ctx, r, c.batches(r.Users, r.Bitmap), each)
	}
	parts, err := c.Parts(ctx, r.Audience)
	if err != nil {
		return err
	}
	return c.FilterParts(ctx, r, parts, each)
}

// FilterParts is FilterAll for parts that are known already: those of r.Audience, or
// those of them that an earlier run has left.
func (c *Client) FilterParts(ctx context.Context, r *FilterRequest, parts *Parts,
	each func(*FilterRequest, *FilterResult) error) error {
	var done reached
	err := c.filterBatches(ctx, r, parts.batches(), func(batch *FilterRequest, result *FilterResult) error {
		done.add(result.Summary.Requested)
		return each(batch, result)
	})
	return parts.fault(done, err)
}

func (c *Client) filterBatches(ctx context.Context, r *FilterRequest, batches iter.Seq[batch],
	each func(*FilterRequest, *FilterResult) error) error {
	var mu sync.Mutex
	return c.parallel(ctx, batches, func(ctx context.Context, b batch) error {
		request := *r
		request.Users, request.Bitmap, request.Audience = b.users, b.bitmap, b.audience
		result, err := c.Filter(ctx, &request)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		return each(&request, result)
	})
}

// batch is the users of one call: ids, a bitmap, or a part of an audience.
type batch struct {
	users    []uint32
	bitmap   *roaring.Bitmap
	audience *Audience
}

// batches splits users, or a bitmap.
func (c *Client) batches(users []uint32, audience *roaring.Bitmap) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		if audience != nil {
			SplitBitmap(audience, c.cfg.BatchBitmap,
				func(part *roaring.Bitmap) bool { return yield(batch{bitmap: part}) })
			return
		}
		for part := range slices.Chunk(users, c.cfg.BatchIDs) {
			if !yield(batch{users: part}) {
				return
			}
		}
	}
}

// parallel calls work for each batch until one fails.
func (c *Client) parallel(ctx context.Context, batches iter.Seq[batch], work func(context.Context, batch) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, c.cfg.Parallel)
	var running sync.WaitGroup
	start := func(b batch) bool {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := work(ctx, b); err != nil {
				cancel(err)
			}
		})
		return true
	}
	for b := range batches {
		if !start(b) {
			break
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// containerUsers is how many ids a container of a roaring bitmap spans.
const containerUsers = 1 << 16

// SplitBitmap cuts an audience into bitmaps of at most size users, along its
// containers where they fit, and calls yield for each in ascending order until
// it returns false.
func SplitBitmap(audience *roaring.Bitmap, size int, yield func(*roaring.Bitmap) bool) {
	next := func(from uint64) (start, end uint64, users int) {
		if from > math.MaxUint32 {
			return 0, 0, 0
		}
		first := audience.NextValue(uint32(from))
		if first < 0 {
			return 0, 0, 0
		}
		start = uint64(first) &^ (containerUsers - 1)
		end = start + containerUsers
		return start, end, int(audience.CardinalityInRange(start, end))
	}
	start, end, users := next(0)
	for users > 0 {
		nextStart, nextEnd, more := next(end)
		for more > 0 && users+more <= size {
			end, users = nextEnd, users+more
			nextStart, nextEnd, more = next(end)
		}
		part := roaring.New()
		part.AddRange(start, end)
		part.And(audience)
		if !yieldBatches(part, users, size, yield) {
			return
		}
		start, end, users = nextStart, nextEnd, more
	}
}

// yieldBatches yields part whole, or in batches when a single container is too
// large.
func yieldBatches(part *roaring.Bitmap, users, size int, yield func(*roaring.Bitmap) bool) bool {
	if users <= size {
		return yield(part)
	}
	for ids := part.ToArray(); len(ids) > 0; {
		n := min(size, len(ids))
		if !yield(roaring.BitmapOf(ids[:n]...)) {
			return false
		}
		ids = ids[n:]
	}
	return true
}
