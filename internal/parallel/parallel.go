// Package parallel runs numbered tasks in parallel.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// OnAllCores calls do(0) … do(n-1) in any order, with one goroutine for each core. OnAllCores returns when all n
// function calls have returned. OnAllCores is for tasks that compute.
func OnAllCores(n int, do func(i int)) { AtMost(runtime.GOMAXPROCS(0), n, do) }

// AtMost calls do(0) … do(n-1). At most "limit" of these calls run at the same time. AtMost returns when all n function
// calls have returned. AtMost is for tasks that mostly wait, such as network requests.
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
