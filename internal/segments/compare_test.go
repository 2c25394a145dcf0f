package segments

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

func generationOf(names []string, bitmaps ...*Bitmap) *Generation {
	c := &Candidate{Names: names, Bitmaps: bitmaps}
	return &Generation{Manifest: newManifest(epoch, "test", "", c.Describe()), Bitmaps: bitmaps}
}

func span(from, to uint32) *Bitmap {
	var s Set
	for id := from; id < to; id++ {
		s.Add(id)
	}
	return s.Bitmap()
}

func TestCompare(t *testing.T) {
	t.Parallel()
	before := generationOf([]string{"vip", "active", "lapsed", "old", "none"},
		span(0, 10), span(100, 200), span(1000, 1100), span(5000, 5010), bitmapOf())
	after := &Candidate{Names: []string{"vip", "active", "lapsed", "young", "none"},
		Bitmaps: []*Bitmap{span(0, 10), span(110, 210), bitmapOf(), span(1000, 1020), bitmapOf(7000)}}
	changes := after.Compare(before)
	require.Equal(t, []Change{
		{Segment: "vip", State: Same, Before: 10, After: 10},
		{Segment: "active", State: Changed, Before: 100, After: 100, Added: 10, Removed: 10, Percent: 20},
		{Segment: "lapsed", State: Empties, Before: 100, Removed: 100, Percent: 100},
		{Segment: "young", State: Appears, After: 20, Added: 20, MovedFrom: []Moved{{"lapsed", 20}}},
		{Segment: "none", State: Fills, After: 1, Added: 1},
		{Segment: "old", State: Vanishes, Before: 10, Removed: 10, Percent: 100},
	}, changes)
	require.Equal(t, NoSegment{Before: 220, After: 131, Fall: 100, Rise: 11, Percent: percent(100, 220)}, after.NoSegment(before))
	require.Equal(t, []Change{changes[0], changes[1], changes[2], changes[4]}, after.Drift(before), "without those that appear and vanish")
}

func TestOverlapsAreExactForEveryPair(t *testing.T) {
	t.Parallel()
	c := &Candidate{
		Names:   []string{"a", "b", "c", "d"},
		Bitmaps: []*Bitmap{span(0, 100_000), span(99_990, 200_000), span(50_000, 150_000), bitmapOf(1 << 31)},
	}
	require.Equal(t, []Overlap{
		{A: "a", B: "b", Users: 10, Samples: []uint32{99_990, 99_991, 99_992, 99_993, 99_994}},
		{A: "a", B: "c", Users: 50_000, Samples: []uint32{50_000, 50_001, 50_002, 50_003, 50_004}},
		{A: "b", B: "c", Users: 50_010, Samples: []uint32{99_990, 99_991, 99_992, 99_993, 99_994}},
	}, c.Overlaps())
	c.Resolve()
	require.Empty(t, c.Overlaps())
	require.Equal(t, span(0, 100_000).Bytes(), c.Bitmaps[0].Bytes())
	require.Equal(t, span(100_000, 200_000).Bytes(), c.Bitmaps[1].Bytes())
	require.Zero(t, c.Bitmaps[2].Cardinality(), "all of it is in a or b")
	require.EqualValues(t, 1, c.Bitmaps[3].Cardinality())
}

func TestOverlapsAgreeWithRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		a, b := bitmapOf(sample(seed)...), bitmapOf(append(sample(seed+100), sample(seed)[:50]...)...)
		users, samples := common(a, b)
		require.Equal(t, a.Roaring().AndCardinality(b.Roaring()), users)
		require.Len(t, samples, min(int(users), overlapSamples))
		var s Set
		s.AddBitmap(a)
		s.Subtract(b)
		require.Equal(t, a.card-users, s.Bitmap().Cardinality())
		s.AddBitmap(b)
		require.Equal(t, a.card+b.card-users, s.Bitmap().Cardinality())
	}
}

func TestNoSegmentAgreesWithRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		old := []*Bitmap{bitmapOf(sample(seed)...), bitmapOf(sample(seed + 1)...), bitmapOf()}
		now := []*Bitmap{bitmapOf(sample(seed + 1)[:20]...), bitmapOf(sample(seed + 2)...)}
		before, after := roaring.New(), roaring.New()
		for _, b := range old {
			before.Or(b.Roaring())
		}
		for _, b := range now {
			after.Or(b.Roaring())
		}
		c := &Candidate{Names: []string{"a", "b"}, Bitmaps: now}
		got := c.NoSegment(generationOf([]string{"a", "x", "y"}, old...))
		require.Equal(t, before.GetCardinality(), got.Before)
		require.Equal(t, after.GetCardinality(), got.After)
		require.Equal(t, roaring.AndNot(before, after).GetCardinality(), got.Fall)
		require.Equal(t, roaring.AndNot(after, before).GetCardinality(), got.Rise)
	}
	empty := &Candidate{Names: []string{"a"}, Bitmaps: []*Bitmap{bitmapOf()}}
	require.Equal(t, NoSegment{}, empty.NoSegment(generationOf([]string{"a"}, bitmapOf())))
	whole := &Candidate{Names: []string{"a"}, Bitmaps: []*Bitmap{bitmapOf(0, 1<<32-1)}}
	require.Equal(t, NoSegment{After: 2, Rise: 2}, whole.NoSegment(generationOf([]string{"a"}, bitmapOf())))
}

// With many segments every user is looked at once, not every pair of segments.
func TestCompareWithManySegments(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(segments int) (names []string, bitmaps []*Bitmap) {
		sets := newSets(segments)
		for id := range uint32(300_000) { // arrays, bitmaps and runs; some in no segment
			switch at := r.IntN(segments + 2); {
			case id > 200_000:
				sets[int(id/1_000)%segments].Add(id)
			case at < segments:
				sets[at*at/segments].Add(id)
			}
		}
		for i, set := range sets {
			names, bitmaps = append(names, fmt.Sprintf("s%d", i)), append(bitmaps, set.Bitmap())
		}
		return names, bitmaps
	}
	for _, segments := range []int{9, 40, MaxSegments} {
		names, old := draw(segments)
		_, now := draw(segments)
		c := &Candidate{Names: names, Bitmaps: now}
		require.Empty(t, c.Overlaps())
		shared := c.shared(generationOf(names, old...))
		require.Len(t, shared, segments*segments)
		for k := 0; k < len(shared); k += 1 + len(shared)/2_000 {
			got := shared[k]
			want, _ := common(now[k/segments], old[k%segments])
			require.Equal(t, want, got, "%d", k)
		}
		if segments < MaxSegments { // where users overlapped before, every pair counts
			overlapping := generationOf(append(names, "twice"), append(old, old[0])...)
			shared = c.shared(overlapping)
			first, _ := common(now[0], old[0])
			require.Equal(t, first, shared[0])
			require.Equal(t, first, shared[segments])
		}
	}
}
