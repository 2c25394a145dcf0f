package client

import (
	"context"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// FilterAll decides which users of an audience of any size may receive a send. FilterAll splits the users into
// batches, and makes at most Config.Parallel filter calls at a time. FilterAll calls the function "each" with every
// batch and its result, one after the other, in any order. If the function "each" returns an error, FilterAll stops.
// The result of each batch also holds those users about whom the service could not decide even after retries. A user
// who occurs in several batches gets only one send; the result of the later batch lists the user as replayed.
//
// All batches of r.Audience use one generation of the segments, even if a new generation is published during the call
// of FilterAll; see Parts. An error during the filter calls for r.Audience is an *AudienceError. If FilterAll cannot
// count the audience at its start, it returns that error unchanged.
//
// FilterAll returns the first error after all running calls have ended. The service has recorded the allowed sends of
// finished batches, so a new call of FilterAll with the same message id continues an interrupted call.
func (c *Client) FilterAll(ctx context.Context, r *FilterRequest,
	each func(*FilterRequest, *FilterResult) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Audience == nil {
		return c.filterBatches(ctx, r, c.batches(&given{r.Users, r.IDs, r.Bitmap, r.Packed, nil}), each)
	}
	parts, err := c.Parts(ctx, r.Audience)
	if err != nil {
		return err
	}
	return c.FilterParts(ctx, r, parts, each)
}

// FilterParts works like FilterAll, but only for the given parts of r.Audience. The argument "parts" of FilterParts
// holds all parts of the audience, or only those that an earlier, interrupted call has not completed.
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
		request.Users, request.IDs, request.Bitmap = b.users, b.ids, b.bitmap
		request.Packed, request.Audience = b.packed, b.audience
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

// The type batch holds the users of one API call: ids, a bitmap, packed ids, or a part of an audience.
type batch = given

// The method "batches" splits a list of users or ids, a bitmap, or packed ids into batches.
func (c *Client) batches(all *given) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		switch {
		case all.bitmap != nil:
			SplitBitmap(all.bitmap, c.cfg.BatchBitmap,
				func(part *roaring.Bitmap) bool { return yield(batch{bitmap: part}) })
		case all.packed != nil:
			for first, n := 0, all.packed.Len(); first < n; first += c.cfg.BatchBitmap {
				if !yield(batch{packed: all.packed.slice(first, min(first+c.cfg.BatchBitmap, n))}) {
					return
				}
			}
		case all.ids != nil:
			for part := range slices.Chunk(all.ids, c.cfg.BatchIDs) {
				if !yield(batch{ids: part}) {
					return
				}
			}
		default:
			for part := range slices.Chunk(all.users, c.cfg.BatchIDs) {
				if !yield(batch{users: part}) {
					return
				}
			}
		}
	}
}

// The method "parallel" calls the function "work" for each batch, at most Config.Parallel batches at a time, until one
// call fails.
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

// containerUsers is the number of neighbouring ids for which a roaring bitmap has one container.
const containerUsers = 1 << 16

// SplitBitmap splits an audience into bitmaps of at most size users, at container boundaries where possible.
// SplitBitmap calls yield for each bitmap in ascending order until yield returns false.
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

// yieldBatches yields a bitmap unchanged if it has at most size users, and splits a larger bitmap.
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
