package bitmap

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// few returns ids in a few containers, some with more and some with fewer ids than a list can hold.
func few(r *rand.Rand) []uint32 {
	var ids []uint32
	for range 1 + r.IntN(6) {
		key := r.Uint32N(4) << 16
		for range r.IntN(2 * listMax) {
			ids = append(ids, key|r.Uint32N(1<<(1+r.UintN(16))))
		}
	}
	return ids
}

func requireSame(t *testing.T, want *roaring.Bitmap, got *Set, what string) {
	t.Helper()
	want.RunOptimize()
	raw, err := want.ToBytes()
	require.NoError(t, err)
	require.Equal(t, want.IsEmpty(), got.Empty(), what)
	require.True(t, bytes.Equal(raw, got.Bitmap().Bytes()), what)
}

func TestSetAgreesWithRoaring(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		ids, other := few(r), few(r)
		set, want := SetOf(ids...), roaring.BitmapOf(ids...)
		requireSame(t, want, set, "add")
		b, operand := Of(other...), roaring.BitmapOf(other...)
		switch r.IntN(4) {
		case 0:
			set.AddBitmap(b)
			want.Or(operand)
			requireSame(t, want, set, "add a bitmap")
		case 1:
			set.Union(SetOf(other...))
			want.Or(operand)
			requireSame(t, want, set, "union")
		case 2:
			set.Intersect(b)
			want.And(operand)
			requireSame(t, want, set, "intersect")
		case 3:
			set.Subtract(b)
			want.AndNot(operand)
			requireSame(t, want, set, "subtract")
		}
		for _, id := range other {
			set.Add(id)
			want.Add(id)
		}
		requireSame(t, want, set, "add afterwards")
	}
}

func TestWritersFillOneSetTogether(t *testing.T) {
	t.Parallel()
	var set Set
	var wg sync.WaitGroup
	want := roaring.New()
	for i := range uint64(4) {
		r := rand.New(rand.NewPCG(i, 0))
		var ids []uint32
		for range 20_000 {
			ids = append(ids, r.Uint32N(1<<22))
		}
		want.AddMany(ids)
		wg.Go(func() {
			w := set.NewWriter()
			w.Add(ids[:5000])
			w.Add(ids[5000:])
			w.Flush()
		})
	}
	wg.Go(func() { set.AddBitmap(Of(1, 2, 3)) })
	want.AddMany([]uint32{1, 2, 3})
	wg.Wait()
	requireSame(t, want, &set, "writers")
}
