package bitmap

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCountsAreThoseOfAMap adds random blocks of every form, subtracts ids, and compares every answer with a map.
func TestCountsAreThoseOfAMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		var c, both Counts
		model := map[uint16]int{}
		for range 1 + r.IntN(12) {
			const key = 3 << 16
			var ids []uint32
			switch from := r.Uint32N(60_000); r.IntN(3) {
			case 0:
				for id := range 1 + r.Uint32N(4000) {
					ids = append(ids, key|from+id)
				}
			case 1:
				for range 20 {
					ids = append(ids, key|r.Uint32N(65_536))
				}
			default:
				for range 9000 {
					ids = append(ids, key|r.Uint32N(65_536))
				}
			}
			b := Of(append(ids, 5)...)
			for i := range b.Filled() {
				if b.KeyAt(i) == 3 {
					AddAt(b, i, &c, &both)
				}
			}
			slices.Sort(ids)
			for _, id := range slices.Compact(ids) {
				model[uint16(id)]++
			}
		}
		for range 3000 {
			low := uint16(r.Uint32())
			c.Subtract(low)
			model[low] = max(0, model[low]-1)
		}
		in := new(Words)
		for low := range 65_536 {
			require.Equal(t, model[uint16(low)], c.Number(uint16(low)))
			in.Put(uint16(low), low%3 == 0)
		}
		want, wantIn := make([]int64, 6), make([]int64, 6)
		atLeast := make([]int, 20)
		for low, n := range model {
			for k := 1; k <= n && k < len(atLeast); k++ {
				atLeast[k]++
			}
			if n == 0 {
				continue
			}
			want[min(n, 5)]++
			if low%3 == 0 {
				wantIn[min(n, 5)]++
			}
		}
		got, gotIn := make([]int64, 6), make([]int64, 6)
		c.Histogram(nil, got)
		c.Histogram(in, gotIn)
		require.Equal(t, want, got)
		require.Equal(t, wantIn, gotIn)
		sum, sumIn := int64(0), int64(0)
		for low, n := range model {
			if sum += int64(n); low%3 == 0 {
				sumIn += int64(n)
			}
		}
		require.Equal(t, sum, c.Sum(nil))
		require.Equal(t, sumIn, c.Sum(in))
		for n := 1; n < len(atLeast); n++ {
			var w Words
			w.Fill()
			c.AtLeast(n, &w)
			require.Equal(t, atLeast[n], w.Count(), n)
		}
		require.Positive(t, both.SizeBytes())
	}
}
