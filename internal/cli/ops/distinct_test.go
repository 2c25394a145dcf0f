package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDistinctImagesAreCounted counts more images than are sorted together, many of them several times.
func TestDistinctImagesAreCounted(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	var d distinct
	require.Zero(t, d.count())
	known := map[uint64]bool{}
	for i := range 3 * leastRecent {
		image := rng.Uint64N(leastRecent * 2)
		known[image] = true
		d.add(image)
		if i%(leastRecent/3) == 0 {
			require.Equal(t, uint64(len(known)), d.count())
		}
	}
	require.Equal(t, uint64(len(known)), d.count())
}
