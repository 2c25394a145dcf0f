package parallel

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryPieceIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 1000} {
		done := make([]atomic.Int64, n)
		OnAllCores(n, func(i int) { done[i].Add(1) })
		AtMost(3, n, func(i int) { done[i].Add(1) })
		for i := range done {
			require.EqualValues(t, 2, done[i].Load())
		}
	}
}

func TestAtMostKeepsItsLimit(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	both := make(chan struct{}, 2) // two pieces meet here
	AtMost(2, 50, func(int) {
		n := now.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		both <- struct{}{}
		<-both
		now.Add(-1)
	})
	require.LessOrEqual(t, most.Load(), int64(2))
}
