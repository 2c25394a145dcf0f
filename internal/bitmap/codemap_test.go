package bitmap

import (
	"runtime"
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
		m := NewCodeMap(runtime.GOMAXPROCS(0), bitmaps)
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

// TestCodeMapOfEveryWidth tests the maximum number of bitmaps for every width of a code.
func TestCodeMapOfEveryWidth(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 4, 7, 8, 15, 31, 32, 38, 63, 64, 127, 128, 255} {
		lists := make([][]uint32, n)
		const users = 3 * containerIDs
		for id := range uint32(users) {
			of := id * 2_654_435_761 >> 8 % uint32(n)
			lists[of] = append(lists[of], id)
		}
		bitmaps := make([]*Bitmap, n)
		for i := range lists {
			bitmaps[i] = OfSorted(lists[i])
		}
		m := NewCodeMap(runtime.GOMAXPROCS(0), bitmaps)
		ids, codes := make([]uint32, users), make([]uint8, users)
		for i := range ids {
			ids[i] = uint32(i)
		}
		m.Lookup(ids, codes)
		for _, id := range ids {
			if want := uint8(id*2_654_435_761>>8%uint32(n) + 1); codes[id] != want {
				require.Equal(t, want, codes[id], "%d bitmaps, id %d", n, id)
			}
		}
	}
}
