package client

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

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
