package bitmap

import (
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

func TestCommonAgreesWithRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		a, b := Of(sample(seed)...), Of(append(sample(seed+100), sample(seed)[:50]...)...)
		users, samples := Common(a, b, 5)
		require.Equal(t, a.Roaring().AndCardinality(b.Roaring()), users)
		require.Len(t, samples, min(int(users), 5))
		var s Set
		s.AddBitmap(a)
		s.Subtract(b)
		require.Equal(t, a.card-users, s.Bitmap().Cardinality())
		s.AddBitmap(b)
		require.Equal(t, a.card+b.card-users, s.Bitmap().Cardinality())
	}
}

func TestUnionsAgreeWithRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		old := []*Bitmap{Of(sample(seed)...), Of(sample(seed + 1)...), Of()}
		now := []*Bitmap{Of(sample(seed + 1)[:20]...), Of(sample(seed + 2)...)}
		before, after := roaring.New(), roaring.New()
		for _, b := range old {
			before.Or(b.Roaring())
		}
		for _, b := range now {
			after.Or(b.Roaring())
		}
		inOld, inNow, inBoth := Unions(old, now)
		require.Equal(t, before.GetCardinality(), inOld)
		require.Equal(t, after.GetCardinality(), inNow)
		require.Equal(t, before.AndCardinality(after), inBoth)
	}
	inOld, inNow, inBoth := Unions([]*Bitmap{Of()}, []*Bitmap{Of(0, 1<<32-1)})
	require.Equal(t, []uint64{0, 2, 0}, []uint64{inOld, inNow, inBoth})
}

// TestSharedOfManyBitmaps tests the case with many bitmaps, in which Shared reads every id once
// instead of comparing every pair.
func TestSharedOfManyBitmaps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) (bitmaps []*Bitmap) {
		lists := make([][]uint32, n)
		for id := range uint32(300_000) { // arrays, bitmaps and runs; some in no bitmap
			switch at := r.IntN(n + 2); {
			case id > 200_000:
				of := int(id/1_000) % n
				lists[of] = append(lists[of], id)
			case at < n:
				of := at * at / n
				lists[of] = append(lists[of], id)
			}
		}
		for _, list := range lists {
			bitmaps = append(bitmaps, OfSorted(list))
		}
		return bitmaps
	}
	for _, n := range []int{9, 40, maxCodes} {
		old, now := draw(n), draw(n)
		require.True(t, Disjoint(now))
		shared := Shared(now, old)
		require.Len(t, shared, n*n)
		for k := 0; k < len(shared); k += 1 + len(shared)/2_000 {
			want, _ := Common(now[k/n], old[k%n], 0)
			require.Equal(t, want, shared[k], "%d", k)
		}
		if n < maxCodes { // where ids overlap, every pair counts
			shared = Shared(now, append(old, old[0]))
			first, _ := Common(now[0], old[0], 0)
			require.Equal(t, first, shared[0])
			require.Equal(t, first, shared[n])
		}
	}
}

func TestOutsideAgreesWithRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		old := []*Bitmap{Of(sample(seed)...), Of(sample(seed + 1)...), Of(), Range(5, 200_000)}
		now := []*Bitmap{Of(sample(seed + 1)[:20]...), Of(sample(seed + 2)...), Range(70_000, 1<<17)}
		after := roaring.New()
		for _, b := range now {
			after.Or(b.Roaring())
		}
		var want, alone []uint64
		for _, b := range old {
			want = append(want, b.Cardinality()-b.Roaring().AndCardinality(after))
			alone = append(alone, b.Cardinality())
		}
		require.Equal(t, want, Outside(old, now, 3))
		require.Equal(t, alone, Outside(old, nil, 1), "nobody is in no bitmap")
		require.Equal(t, make([]uint64, len(old)), Outside(old, append(now, old...), 2))
	}
	require.Equal(t, []uint64{1}, Outside([]*Bitmap{Of(0, 1<<32-1)}, []*Bitmap{Of(0)}, 1))
	require.Empty(t, Outside(nil, []*Bitmap{Of(1)}, 1))
}
