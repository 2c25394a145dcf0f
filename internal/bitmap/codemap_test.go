package bitmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCodeMapFindsTheFirstBitmap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(9) {
		var bitmaps []*Bitmap
		n := 1 + int(seed)%9
		for i := range n {
			bitmaps = append(bitmaps, Of(sample(seed*7+uint64(i)%3)...))
		}
		m := NewCodeMap(bitmaps)
		ids := append(sample(seed*7), sample(seed+1000)...)
		for i := range ids {
			ids[i] += uint32(i % 3)
		}
		codes := make([]uint8, len(ids))
		m.Lookup(ids, codes)
		for i, id := range ids {
			want := uint8(0)
			for k, b := range bitmaps {
				if b.Roaring().Contains(id) {
					want = uint8(k + 1)
					break
				}
			}
			if want != codes[i] {
				require.Equal(t, want, codes[i], "seed %d id %d", seed, id)
			}
			if i > 3000 {
				break
			}
		}
	}
}
