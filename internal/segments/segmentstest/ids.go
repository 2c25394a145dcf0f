package segmentstest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/segments"
)

// The function Key returns a hash key for ids. Different values of n yield different hash keys.
func Key(n byte) (key ids.Key) {
	key[0], key[15] = n, 1
	return key
}

// The function Numbered returns a dictionary of all ids in the given lists. For each list, Numbered also returns a
// bitmap with the user numbers of the ids in the list.
func Numbered(t testing.TB, scheme *ids.Scheme, lists ...[]string) (*segments.Dictionary, []*bitmap.Bitmap) {
	t.Helper()
	var images []uint64
	for _, list := range lists {
		images = append(images, Images(t, scheme, list...)...)
	}
	slices.Sort(images)
	images = slices.Compact(images)
	var file bytes.Buffer
	w, err := dictionary.NewWriter(&file, uint32(len(images)))
	require.NoError(t, err)
	require.NoError(t, w.Add(images...))
	require.NoError(t, w.Close())
	d, err := segments.NewDictionary(file.Bytes())
	require.NoError(t, err)
	var bitmaps []*bitmap.Bitmap
	for _, list := range lists {
		numbers := make([]uint32, len(list))
		d.Numbers(Images(t, scheme, list...), numbers)
		bitmaps = append(bitmaps, bitmap.Of(numbers...))
	}
	return d, bitmaps
}

// Images returns the images (64-bit numbers that stand for ids) of the given ids.
func Images(t testing.TB, scheme *ids.Scheme, list ...string) (images []uint64) {
	t.Helper()
	for _, id := range list {
		image, err := scheme.Parse([]byte(id))
		require.NoError(t, err)
		images = append(images, image)
	}
	return images
}

// The function Back returns the segments.Back that converts the user numbers of a dictionary to the ids in the lists.
// For ids of the kind uint64, the result is nil, because these ids need no segments.Back.
func Back(t testing.TB, scheme *ids.Scheme, d *segments.Dictionary, lists ...[]string) *segments.Back {
	t.Helper()
	if scheme.Kind() == ids.Uint64 {
		return nil
	}
	names, rests := make([]string, d.Len()), make([]uint64, d.Len())
	for _, id := range slices.Concat(lists...) {
		image, rest, err := scheme.ParseRest([]byte(id))
		require.NoError(t, err)
		number, ok := d.Number(image)
		require.True(t, ok)
		names[number], rests[number] = id, rest
	}
	var file bytes.Buffer
	if scheme.Kind() == ids.Text {
		w, err := dictionary.NewTextWriter(&file, d.Len())
		require.NoError(t, err)
		for _, name := range names {
			require.NoError(t, w.Add([]byte(name)))
		}
		require.NoError(t, w.Close())
	} else {
		w, err := dictionary.NewRestWriter(&file, d.Len())
		require.NoError(t, err)
		for _, rest := range rests {
			require.NoError(t, w.Add(rest))
		}
		require.NoError(t, w.Close())
	}
	back, err := segments.NewBack(scheme.Kind(), file.Bytes())
	require.NoError(t, err)
	return back
}

// The function Snapshot returns a snapshot with the segment "vip" and the given ids in this segment. The snapshot can
// convert user numbers to ids.
func Snapshot(t testing.TB, scheme *ids.Scheme, vip []string) *segments.Snapshot {
	t.Helper()
	d, bitmaps := Numbered(t, scheme, vip)
	back := Back(t, scheme, d, vip)
	m, err := segments.NewManifest(Epoch, "test", "", []segments.Segment{segments.Describe("vip", bitmaps[0])})
	require.NoError(t, err)
	m, err = m.WithIDs(scheme, d, back)
	require.NoError(t, err)
	return (&segments.Generation{Manifest: m, Bitmaps: bitmaps, Scheme: scheme, Dictionary: d, Back: back}).Snapshot()
}
