package dictionary

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	sortBits    = 11
	sortBuckets = 1 << sortBits
	sortLeast   = 1 << 16 // fewer images are sorted at once
)

// Sort sorts images, which look random, with two goroutines. spare is memory for as many images; Sort changes it. Sort
// returns the sorted images, which are in images or in spare.
func Sort(images, spare []uint64) []uint64 {
	if len(images) < sortLeast {
		slices.Sort(images)
		return images
	}
	spare = spare[:len(images)]
	starts := scatter(images, spare)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < sortBuckets; i = next.Add(1) - 1 {
				slices.Sort(spare[starts[i]:starts[i+1]])
			}
		})
	}
	workers.Wait()
	return spare
}

// scatter copies the images into buckets of equal upper bits, and returns where each bucket starts. A bucket fits into
// a core's cache.
func scatter(images, to []uint64) (starts [sortBuckets + 1]int) {
	for _, image := range images {
		starts[image>>(64-sortBits)+1]++
	}
	for i := range sortBuckets {
		starts[i+1] += starts[i]
	}
	at := starts
	for _, image := range images {
		bucket := image >> (64 - sortBits)
		to[at[bucket]] = image
		at[bucket]++
	}
	return starts
}
