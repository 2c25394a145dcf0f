package publish

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// withSets returns a candidate of one segment and these sets.
func withSets(sets ...Set) *Candidate {
	return &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2)}, Sets: sets}
}

func onlyGrows(name string, maxLoss float64, b *bitmap.Bitmap) Set {
	return Set{Name: name, Bitmap: b, Growth: Growth{Said: true, OnlyGrows: true, MaxLoss: maxLoss}}
}

func TestPublishSets(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		out, twin := bitmap.Of(2, 9), Set{Name: "country/sg", Bitmap: bitmap.Of(1, 2)}
		first := publishAll(t, store, clock, withSets(onlyGrows("opted-out", 0.5, out), twin))
		require.Equal(t, segments.SetsFormatVersion, first.FormatVersion)
		require.Equal(t, first.Segments[0].Key, first.Sets[1].Key, "the same users are one object")
		g := live(t, store)
		require.Equal(t, out.Bytes(), g.Sets[0].Bytes())
		require.Equal(t, withSets(onlyGrows("opted-out", 0.5, out), Set{Name: twin.Name, Bitmap: g.Sets[1],
			Growth: Growth{Said: true}}).DescribeSets(),
			CandidateOf(g).DescribeSets())

		// The same again, and what only grows not said again, is what is live.
		require.Equal(t, first, publishAll(t, store, clock, withSets(Set{Name: "opted-out", Bitmap: out}, twin)))
		second := publishAll(t, store, clock, withSets(Set{Name: "opted-out", Bitmap: bitmap.Of(2, 9, 10)}, twin))
		require.NotEqual(t, first.Generation, second.Generation)
		require.True(t, second.Sets[0].OnlyGrows)
		require.InDelta(t, 0.5, second.Sets[0].MaxLoss, 0)

		// Another order, name or direction of sets is another generation.
		for _, sets := range [][]Set{
			{twin, {Name: "opted-out", Bitmap: bitmap.Of(2, 9, 10)}},
			{{Name: "country/my", Bitmap: twin.Bitmap}, {Name: "opted-out", Bitmap: bitmap.Of(2, 9, 10)}},
			{{Name: "country/my", Bitmap: twin.Bitmap}, onlyGrows("opted-out", 0, bitmap.Of(2, 9, 10))},
		} {
			before := live(t, store).Manifest.Generation
			require.NotEqual(t, before, publishAll(t, store, clock, withSets(sets...)).Generation)
		}
		require.Equal(t, segments.FormatVersion, publishAll(t, store, clock, withSets()).FormatVersion,
			"readers of before read what has no sets")
	})
}

func TestWhatSetsWereRolledBackFromIsRefused(t *testing.T) {
	t.Parallel()
	store := objects.NewDirectory(t.TempDir())
	clock := segmentstest.Stepping()
	same := Set{Name: "country/sg", Bitmap: bitmap.Of(1)}
	good := publishAll(t, store, clock, withSets(Set{Name: "opted-out", Bitmap: bitmap.Of(2, 9)}, same))
	bad := Set{Name: "opted-out", Bitmap: bitmap.Of(7)}
	publishAll(t, store, clock, withSets(bad, same))
	rollBack(t, store, good.Generation)
	try := func(reason string, sets ...Set) error {
		base, err := ReadLiveState(t.Context(), store)
		require.NoError(t, err)
		p := Publisher{Location: store, ToolVersion: "test", Clock: clock}
		_, err = p.Publish(t.Context(), withSets(sets...), base, reason)
		return err
	}
	require.ErrorContains(t, try("", bad, same), "the content equals that of ")
	require.ErrorContains(t, try("", bad), `set "opted-out" has the same users as in `)
	require.Equal(t, good, live(t, store).Manifest)
	require.NoError(t, try("", Set{Name: "opted-out", Bitmap: bitmap.Of(2, 9, 10)}, same))
	require.NoError(t, try("it is right", bad, same))
	require.NoError(t, try("", Set{Name: "opted-out", Bitmap: bitmap.Of(1)}, same))
	require.NoError(t, try("", bad, same), "it is no longer withdrawn")
}

func TestCompareSets(t *testing.T) {
	t.Parallel()
	old := func(names []string, bitmaps ...*bitmap.Bitmap) *segments.Generation {
		c := withSets()
		for i, name := range names {
			c.Sets = append(c.Sets, Set{Name: name, Bitmap: bitmaps[i]})
		}
		m, err := segments.NewManifest(segmentstest.Epoch, "test", "", c.Describe(), c.DescribeSets()...)
		require.NoError(t, err)
		return c.generation(m)
	}
	before := old([]string{"same", "shrinks", "empties", "fills", "gone"}, bitmap.Of(1), bitmap.Range(0, 10),
		bitmap.Of(5), bitmap.Of(), bitmap.Range(70_000, 70_009))
	after := withSets(Set{Name: "fills", Bitmap: bitmap.Of(3)}, Set{Name: "shrinks", Bitmap: bitmap.Of(0, 2, 11)},
		Set{Name: "same", Bitmap: bitmap.Of(1)},
		Set{Name: "empties", Bitmap: bitmap.Of()}, Set{Name: "young", Bitmap: bitmap.Of(1, 2)})
	require.Equal(t, []Change{
		{Set: "fills", State: fills, After: 1, Added: 1},
		{Set: "shrinks", State: changed, Before: 10, After: 3, Added: 1, Removed: 8, Percent: 90,
			Left: []uint32{1, 3, 4, 5, 6}},
		{Set: "same", State: Same, Before: 1, After: 1},
		{Set: "empties", State: empties, Before: 1, Removed: 1, Percent: 100, Left: []uint32{5}},
		{Set: "young", State: appears, After: 2, Added: 2},
		{Set: "gone", State: Vanishes, Before: 9, Removed: 9, Percent: 100, Left: []uint32{70_000, 70_001, 70_002,
			70_003, 70_004}},
	}, after.CompareSets(before))
	require.Len(t, after.DriftSets(before), 4, "what comes and goes was judged when it did")
}

// TestCollectSets checks that objects of sets are kept and collected like those of segments, and that
// a generation of an unknown format stops a collection.
func TestCollectSets(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		publishAll(t, store, clock, withSets(Set{Name: "opted-out", Bitmap: bitmap.Of(100)},
			Set{Name: "kept", Bitmap: bitmap.Of(200)}))
		publishAll(t, store, clock, withSets(Set{Name: "opted-out", Bitmap: bitmap.Of(100, 101)},
			Set{Name: "kept", Bitmap: bitmap.Of(200)}))
		removed, err := greedy(store).Remove(t.Context())
		require.NoError(t, err)
		require.Len(t, removed.Objects, 2, "a manifest, and the bitmap that only it used")
		require.Equal(t, segments.BitmapKey(bitmap.Of(100).SHA256()), removed.Objects[1].Key)
		require.Len(t, live(t, store).Sets, 2)

		require.NoError(t, store.Overwrite(t.Context(), segments.ManifestKey("20991120T101500.000Z-0a1b2c3d"),
			[]byte(`{"format_version": 9}`)))
		_, err = greedy(store).Remove(t.Context())
		require.ErrorContains(t, err, "cannot read the list of its files")
		require.Len(t, live(t, store).Sets, 2)
	})
}
