package audience

import (
	"context"
	"sync/atomic"

	"capper/internal/bitmap"
)

// The type Breakdown holds the number of users that a query selects, in total, by segment and by set. A Breakdown omits
// segments and sets without a selected user.
type Breakdown struct {
	Users    uint64
	Segments map[string]uint64 // by segment; the key Default is for users in no segment
	Sets     map[string]uint64
}

// Breakdown counts the users that a query selects, by segment and by set.
func (a *Audience) Breakdown(ctx context.Context, q Query) (*Breakdown, error) {
	names, sets := a.snapshot.Names(), a.snapshot.Sets()
	bySegment, bySet := make([]atomic.Uint64, len(names)+1), make([]atomic.Uint64, len(sets))
	bitmaps := make([]*bitmap.Bitmap, len(sets))
	for i, set := range sets {
		bitmaps[i] = a.snapshot.Set(set.Name)
	}
	codes := a.snapshot.Codes()
	err := a.eachOf(ctx, &q, func(key int, w *bitmap.Words) {
		var counts [256]uint64
		codes.CountCodes(key, w, counts[:])
		for code := range bySegment {
			bySegment[code].Add(counts[code])
		}
		for i, b := range bitmaps {
			if n := b.CountIn(key, w); n > 0 {
				bySet[i].Add(uint64(n))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	b := &Breakdown{Segments: map[string]uint64{}, Sets: map[string]uint64{}}
	for code := range bySegment {
		n := bySegment[code].Load()
		name := Default
		if code > 0 {
			name = names[code-1]
		}
		b.Users += n
		note(b.Segments, name, n)
	}
	for i := range bySet {
		note(b.Sets, sets[i].Name, bySet[i].Load())
	}
	return b, nil
}

// The function "note" stores the number of users in a segment or set in the map "counts". It does not store the number
// 0.
func note(counts map[string]uint64, name string, n uint64) {
	if n > 0 {
		counts[name] = n
	}
}
