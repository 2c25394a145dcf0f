package bitmap

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// audience returns random ids that are sparse, dense or consecutive.
func audience(t *rapid.T) *roaring.Bitmap {
	b := roaring.New()
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		start := uint64(rapid.Uint32().Draw(t, "start"))
		n := rapid.Uint64Range(1, 200_000).Draw(t, "n")
		step := rapid.SampledFrom([]uint64{1, 2, 7, 1000, 70_000}).Draw(t, "step")
		if step == 1 {
			b.AddRange(start, min(start+n, 1<<32))
			continue
		}
		for user := start; user < min(start+n*step, 1<<32) && user < start+20_000*step; user += step {
			b.Add(uint32(user))
		}
	}
	return b
}

// TestAppendSortedMatchesTheLibrary checks that AppendSorted writes the bytes of the roaring library's
// optimized bitmap.
func TestAppendSortedMatchesTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := audience(t)
		b.RunOptimize()
		want, err := b.ToBytes()
		require.NoError(t, err)
		got := AppendSorted([]byte("before"), b.ToArray())
		require.Equal(t, "before", string(got[:6]))
		require.Equal(t, want, got[6:])
		read, err := Read(got[6:])
		require.NoError(t, err)
		require.Equal(t, b.GetCardinality(), read.Cardinality())
	})
}

func BenchmarkAppendSorted(b *testing.B) {
	for name, step := range map[string]uint32{"every id": 1, "every second": 2, "one in 27": 27} {
		b.Run(name, func(b *testing.B) {
			ids := make([]uint32, 1_000_000)
			for i := range ids {
				ids[i] = uint32(i) * step
			}
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				out = AppendSorted(out[:0], ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/id")
		})
	}
}
