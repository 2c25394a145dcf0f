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

// Key returns a key of ids that depends on n.
func Key(n byte) (key ids.Key) {
	key[0], key[15] = n, 1
	return key
}

// Numbered returns a dictionary of all ids in the lists, and for each list the bitmap of the ids' numbers.
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

// Images returns the images of ids.
func Images(t testing.TB, scheme *ids.Scheme, list ...string) (images []uint64) {
	t.Helper()
	for _, id := range list {
		image, err := scheme.Parse([]byte(id))
		require.NoError(t, err)
		images = append(images, image)
	}
	return images
}
