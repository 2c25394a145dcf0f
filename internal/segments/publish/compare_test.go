package publish

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/segments/segmentstest"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	before := segmentstest.Generation(t, []string{"vip", "active", "lapsed", "old", "none"},
		bitmap.Range(0, 10), bitmap.Range(100, 200), bitmap.Range(1000, 1100), bitmap.Range(5000, 5010), bitmap.Of())
	after := &Candidate{Names: []string{"vip", "active", "lapsed", "young", "none"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 10), bitmap.Range(110, 210), bitmap.Of(), bitmap.Range(1000, 1020),
			bitmap.Of(7000)}}
	changes := after.Compare(before)
	require.Equal(t, []Change{
		{Segment: "vip", State: Same, Before: 10, After: 10},
		{Segment: "active", State: changed, Before: 100, After: 100, Added: 10, Removed: 10, Percent: 20},
		{Segment: "lapsed", State: empties, Before: 100, Removed: 100, Percent: 100},
		{Segment: "young", State: appears, After: 20, Added: 20, MovedFrom: []moved{{"lapsed", 20}}},
		{Segment: "none", State: fills, After: 1, Added: 1},
		{Segment: "old", State: Vanishes, Before: 10, Removed: 10, Percent: 100},
	}, changes)
	require.Equal(t, NoSegment{Before: 220, After: 131, Fall: 100, Rise: 11, Percent: percent(100, 220)},
		after.NoSegment(before))
	require.Equal(t, []Change{changes[0], changes[1], changes[2], changes[4]}, after.Drift(before),
		"without those that appear and vanish")
}

func TestOverlapsAreExactForEveryPair(t *testing.T) {
	t.Parallel()
	c := &Candidate{
		Names: []string{"a", "b", "c", "d"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 100_000), bitmap.Range(99_990, 200_000),
			bitmap.Range(50_000, 150_000), bitmap.Of(1 << 31)},
	}
	require.Equal(t, []Overlap{
		{A: "a", B: "b", Users: 10, Samples: []uint32{99_990, 99_991, 99_992, 99_993, 99_994}},
		{A: "a", B: "c", Users: 50_000, Samples: []uint32{50_000, 50_001, 50_002, 50_003, 50_004}},
		{A: "b", B: "c", Users: 50_010, Samples: []uint32{99_990, 99_991, 99_992, 99_993, 99_994}},
	}, c.Overlaps())
	c.Resolve()
	require.Empty(t, c.Overlaps())
	require.Equal(t, bitmap.Range(0, 100_000).Bytes(), c.Bitmaps[0].Bytes())
	require.Equal(t, bitmap.Range(100_000, 200_000).Bytes(), c.Bitmaps[1].Bytes())
	require.Zero(t, c.Bitmaps[2].Cardinality(), "all of it is in a or b")
	require.EqualValues(t, 1, c.Bitmaps[3].Cardinality())
}
