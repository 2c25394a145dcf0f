package ingest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// count feeds ids to a counter in blocks of this many rows.
func count(ids []uint32, block int) (int64, bool) {
	var c counter[uint32]
	var scratch []uint32
	for part := range slices.Chunk(ids, block) {
		scratch = c.Add(part, scratch)
	}
	return c.Count()
}

func TestShortFilesAreCountedExactly(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, users := range []uint32{1, 2, 1000, 1 << 16, 1<<32 - 1} {
		for _, rows := range []int{0, 1, 3, 1024, exactRows} {
			ids := make([]uint32, rows)
			want := map[uint32]bool{}
			for i := range ids {
				ids[i] = random.Uint32N(users)
				want[ids[i]] = true
			}
			n, exact := count(ids, 777)
			require.True(t, exact)
			require.EqualValues(t, len(want), n, "%d rows of %d users", rows, users)
		}
	}
}

// TestLongFilesAreEstimated checks that the estimate is accurate and does not depend on the pattern of
// the ids, their order and the blocks.
func TestLongFilesAreEstimated(t *testing.T) {
	t.Parallel()
	const users = 400_000
	for name, id := range map[string]func(i uint32) uint32{
		"from 0":          func(i uint32) uint32 { return i },
		"at the end":      func(i uint32) uint32 { return ^i },
		"tens":            func(i uint32) uint32 { return 10 * i },
		"a power of two":  func(i uint32) uint32 { return i << 13 },
		"a Fibonacci":     func(i uint32) uint32 { return 10946 * i },
		"neighbours":      func(i uint32) uint32 { return i/64<<13 + i%64 },
		"reversed bytes":  func(i uint32) uint32 { return i<<24 | i<<8&0xff0000 | i>>8&0xff00 | i>>24 },
		"pseudo-random":   func(i uint32) uint32 { return i * 2654435761 },
		"few, many times": func(i uint32) uint32 { return i % 900 * 7 },
		"one":             func(uint32) uint32 { return 7 },
		"one, and that 0": func(uint32) uint32 { return 0 },
	} {
		ids := make([]uint32, users)
		distinct := map[uint32]bool{}
		for i := range ids {
			ids[i] = id(uint32(i))
			distinct[ids[i]] = true
		}
		n, exact := count(ids, 1000)
		require.False(t, exact, name)
		require.InEpsilon(t, len(distinct), n, 0.03, name)
		if len(distinct) <= maxSample {
			require.EqualValues(t, len(distinct), n, name)
		}
		slices.Reverse(ids)
		again, _ := count(ids, 90_000)
		require.Equal(t, n, again, name)
	}
}

func TestSeveralCountAtOnce(t *testing.T) {
	t.Parallel()
	ids := make([]uint32, 600_000)
	for i := range ids {
		ids[i] = uint32(i) * 3
	}
	want, _ := count(ids, len(ids))
	var c counter[uint32]
	var wg sync.WaitGroup
	for part := range slices.Chunk(ids, 100_000) {
		wg.Go(func() {
			var scratch []uint32
			for block := range slices.Chunk(part, 3000) {
				scratch = c.Add(block, scratch)
			}
		})
	}
	wg.Wait()
	got, _ := c.Count()
	require.Equal(t, want, got)
}

// BenchmarkAdd measures the time that counting adds to each row of a long file.
func BenchmarkAdd(b *testing.B) {
	ids := make([]uint32, 1<<17)
	random := rand.New(rand.NewPCG(1, 2))
	var c counter[uint32]
	var scratch []uint32
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range ids {
			ids[i] = random.Uint32()
		}
		b.StartTimer()
		scratch = c.Add(ids, scratch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/row")
}
