package ids

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfImages(t *testing.T) {
	t.Parallel()
	for _, image := range []uint64{0, 1, 0x5f1c0b7e22a94d31, math.MaxUint64} {
		got, ok := ParseImageName(ImageName(image))
		require.True(t, ok)
		require.Equal(t, image, got)
	}
	require.Equal(t, "image:5f1c0b7e22a94d31", ImageName(0x5f1c0b7e22a94d31))
	for _, name := range []string{"", "image:", "5f1c0b7e22a94d31", "image:5F1C0B7E22A94D31", "image:+f1c0b7e22a94d31",
		"image:5f1c0b7e22a94d3", "image:05f1c0b7e22a94d31", " image:5f1c0b7e22a94d31"} {
		_, ok := ParseImageName(name)
		require.False(t, ok, name)
	}
}
