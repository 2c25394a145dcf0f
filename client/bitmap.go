package client

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// bitmap is a roaring bitmap as the API writes it: base64 of the portable
// format.
type bitmap struct{ *roaring.Bitmap }

// MarshalText and UnmarshalText make it a JSON string.
func (b bitmap) MarshalText() ([]byte, error) {
	raw, err := b.ToBytes()
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText trusts nothing: the library may corrupt memory on a bitmap
// that has not been validated.
func (b *bitmap) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	b.Bitmap = roaring.New()
	n, err := b.ReadFrom(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	if n != int64(len(raw)) {
		return fmt.Errorf("bitmap: %d bytes after its end", int64(len(raw))-n)
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	return nil
}

func (b bitmap) orEmpty() *roaring.Bitmap {
	if b.Bitmap == nil {
		return roaring.New()
	}
	return b.Bitmap
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
		if !pieces(part, users, size, yield) {
			return
		}
		start, end, users = nextStart, nextEnd, more
	}
}

// pieces yields part whole, or in pieces when a single container is too large.
func pieces(part *roaring.Bitmap, users, size int, yield func(*roaring.Bitmap) bool) bool {
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
