package dictionary

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	sortBits    = 11
	sortBuckets = 1 << sortBits
	sortLeast   = 1 << 16 // for fewer images, Sort calls slices.Sort once
)

// Sort returns the images (64-bit numbers that stand for ids) of all chunks in ascending order. Sort uses two CPU
// cores. After copying the images of a chunk, Sort sets the chunk to nil, so that a garbage collection during the sort
// can free the chunk's memory.
func Sort(chunks [][]uint64) []uint64 {
	n := 0
	for _, chunk := range chunks {
		n += len(chunk)
	}
	sorted := make([]uint64, n)
	if n < sortLeast {
		sorted = sorted[:0]
		for i, chunk := range chunks {
			sorted, chunks[i] = append(sorted, chunk...), nil
		}
		slices.Sort(sorted)
		return sorted
	}
	starts := scatter(chunks, sorted)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < sortBuckets; i = next.Add(1) - 1 {
				slices.Sort(sorted[starts[i]:starts[i+1]])
			}
		})
	}
	workers.Wait()
	return sorted
}

// The function "scatter" copies the images (64-bit numbers that stand for ids) from the chunks to buckets in the slice
// "to". The upper bits of an image choose the bucket. The result contains the start index of each bucket in the slice
// "to".
func scatter(chunks [][]uint64, to []uint64) (starts [sortBuckets + 1]int) {
	for _, chunk := range chunks {
		for _, image := range chunk {
			starts[image>>(64-sortBits)+1]++
		}
	}
	for i := range sortBuckets {
		starts[i+1] += starts[i]
	}
	at := starts
	for i, chunk := range chunks {
		for _, image := range chunk {
			bucket := image >> (64 - sortBits)
			to[at[bucket]] = image
			at[bucket]++
		}
		chunks[i] = nil
	}
	return starts
}
