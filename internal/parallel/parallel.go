// Package parallel runs numbered pieces of work side by side.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// OnAllCores calls do(0) … do(n-1) from as many goroutines as there are cores,
// in no order, and returns when all have returned: for work of the processor.
func OnAllCores(n int, do func(i int)) { AtMost(runtime.GOMAXPROCS(0), n, do) }

// AtMost is OnAllCores with up to limit calls at once: for work that waits.
func AtMost(limit, n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(limit, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
