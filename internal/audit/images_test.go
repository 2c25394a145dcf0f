package audit

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// FuzzImages reads bytes as a set of images. Every set that is read has exactly one stored form.
func FuzzImages(f *testing.F) {
	f.Add(appendImages(nil, []capping.UserID{0, 1, 1<<64 - 1}))
	f.Add(appendImages(nil, []capping.UserID{1 << 63}))
	f.Add(append(appendImages(nil, []capping.UserID{7, 8, 9, 10, 1 << 40}), 0xff, 0))
	f.Add(binary.AppendUvarint(nil, 1<<62))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := &cursor{rest: raw}
		images := c.images()
		if c.err != nil {
			require.Nil(t, images)
			return
		}
		require.NotEmpty(t, images)
		for i := 1; i < len(images); i++ {
			require.Less(t, images[i-1], images[i])
		}
		stored := raw[:len(raw)-len(c.rest)]
		require.Equal(t, stored, appendImages(nil, slices.Clone(images)))
		require.LessOrEqual(t, len(stored), imagesBound(len(images)))
	})
}
