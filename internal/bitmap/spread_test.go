package bitmap

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSpreadMatchesAListThatGrows inserts numbers at random places, and compares Spread with the places of the old
// numbers in the new list.
func TestSpreadMatchesAListThatGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := audience(t)
		members.RemoveRange(1<<31, 1<<32) // leaves room
		var before []uint32
		for range rapid.IntRange(0, 5).Draw(t, "places") {
			at := rapid.Uint32Range(0, 1<<31).Draw(t, "place")
			if list := members.ToArray(); len(list) > 0 && rapid.Bool().Draw(t, "near") {
				at = list[rapid.IntRange(0, len(list)-1).Draw(t, "member")] + rapid.Uint32Range(0, 2).Draw(t, "beside")
			}
			n := rapid.SampledFrom([]int{1, 2, 3, 100, 66_000}).Draw(t, "n")
			step := rapid.SampledFrom([]uint32{0, 1, 3, 1000}).Draw(t, "step")
			for i := range uint32(n) {
				before = append(before, at+i*step)
			}
		}
		slices.Sort(before)
		b := OfSorted(members.ToArray())
		var want []uint32
		inserted := uint32(0)
		for _, id := range b.IDs() {
			for int(inserted) < len(before) && before[inserted] <= id {
				inserted++
			}
			want = append(want, id+inserted)
		}
		spread := b.Spread(before)
		require.Equal(t, OfSorted(want).Bytes(), spread.Bytes())
		read, err := Read(spread.Bytes())
		require.NoError(t, err)
		require.True(t, slices.Equal(want, read.IDs()))
	})
}

func TestSpreadWithoutInsertions(t *testing.T) {
	t.Parallel()
	for _, b := range []*Bitmap{Of(), Of(0), Of(7, 1<<20, 1<<32-2), Range(5, 200_000)} {
		require.Equal(t, b.Bytes(), b.Spread(nil).Bytes())
	}
	require.Equal(t, []uint32{3, 4, 5}, Of(0, 1, 2).Spread([]uint32{0, 0, 0}).IDs(), "in front")
	require.Equal(t, []uint32{0, 1, 2}, Of(0, 1, 2).Spread([]uint32{3, 3}).IDs(), "behind")
	require.Equal(t, []uint32{65536}, Of(65535).Spread([]uint32{65535}).IDs(), "into the next container")
}

func BenchmarkSpread(b *testing.B) {
	for name, step := range map[string]uint32{"every id": 1, "every second": 2, "one in 27": 27} {
		b.Run(name, func(b *testing.B) {
			ids, before := make([]uint32, 1_000_000), make([]uint32, 1000)
			for i := range ids {
				ids[i] = uint32(i) * step
			}
			for i := range before {
				before[i] = uint32(i) * step * 1000
			}
			users := OfSorted(ids)
			for b.Loop() {
				users.Spread(before)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/id")
		})
	}
}
