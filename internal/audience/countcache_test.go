package audience

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsAreKeptUpToABound(t *testing.T) {
	t.Parallel()
	const blocks = 100
	size := (&counted{key: countKey{"g", "e0"}, counts: make([]uint32, blocks)}).sizeBytes()
	c := newCountCache(3 * size)
	counted := map[string]int{}
	get := func(name string, blocks int) {
		counts, err := c.get(t.Context(), countKey{"g", name}, func() ([]uint32, error) {
			counted[name]++
			return make([]uint32, blocks), nil
		})
		require.NoError(t, err)
		require.Len(t, counts, blocks)
	}
	for _, name := range []string{"e0", "e1", "e2", "e0", "e3", "e0", "e2", "e1"} {
		get(name, blocks)
	}
	require.Equal(t, map[string]int{"e0": 1, "e1": 2, "e2": 1, "e3": 1}, counted, "e1 was the one not used for longest")
	get("hu", 10*blocks) // larger than all there is room for
	get("hu", 10*blocks)
	require.Equal(t, 2, counted["hu"])
	require.Empty(t, c.entries)
	require.Equal(t, 3*size, c.left)
}

func TestWhatIsBeingCountedIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCountCache(1 << 20)
	key := countKey{"g", "e"}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var counts atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		_, err := c.get(t.Context(), key, func() ([]uint32, error) {
			close(begun)
			<-goOn
			return nil, context.Canceled // its caller has gone
		})
		require.ErrorIs(t, err, context.Canceled)
	})
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.get(gone, key, nil)
	require.ErrorIs(t, err, context.Canceled, "who has gone does not wait")
	for range 4 {
		all.Go(func() {
			got, err := c.get(t.Context(), key, func() ([]uint32, error) {
				counts.Add(1)
				return []uint32{1}, nil
			})
			require.NoError(t, err)
			require.Equal(t, []uint32{1}, got)
		})
	}
	close(goOn)
	all.Wait()
	require.EqualValues(t, 1, counts.Load(), "one of those who waited counts for all")
	_, err = c.get(t.Context(), countKey{"g", "other"}, func() ([]uint32, error) { return nil, errors.New("broken") })
	require.EqualError(t, err, "broken")
	require.Empty(t, c.running)
}

func TestManyExpressionsAtOnce(t *testing.T) {
	t.Parallel()
	c := newCountCache(2_000)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 200 {
				n := uint32((i + worker) % 7)
				got, err := c.get(t.Context(), countKey{"g", fmt.Sprint(n)},
					func() ([]uint32, error) { return []uint32{n}, nil })
				require.NoError(t, err)
				require.Equal(t, []uint32{n}, got)
			}
		})
	}
	all.Wait()
}
