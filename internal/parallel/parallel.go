// Package parallel runs numbered pieces of work in parallel.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// OnAllCores calls do(0) … do(n-1) from as many goroutines as the process has cores, in any order. OnAllCores returns
// when all calls have returned. It suits work that needs the processor.
func OnAllCores(n int, do func(i int)) { AtMost(runtime.GOMAXPROCS(0), n, do) }

// AtMost calls do(0) … do(n-1) with at most limit calls at the same time. It suits work that waits.
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
