package pebblestore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

// BenchmarkPermits takes permits of a fast pacer from 8 goroutines that share disk writes.
func BenchmarkPermits(b *testing.B) {
	for _, permits := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d a call", permits), func(b *testing.B) {
			s, err := Open(context.Background(), Config{Path: b.TempDir()})
			require.NoError(b, err)
			ask := &pacing.Ask{
				Targets: []pacing.Target{{Pacer: "fcm",
					Limits: []pacing.Limit{{Max: pacing.MaxMax, Window: 100 * time.Millisecond}}}},
				Permits: permits,
			}
			b.ReportAllocs()
			began := cpu(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						grant, err := s.TakePermits(context.Background(), ask)
						if err != nil || grant.Granted != permits {
							b.Error(grant, err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N*permits)/b.Elapsed().Seconds(), "permits/s")
			b.ReportMetric(float64(cpu(b)-began)/float64(b.N)/1000, "cpu-µs/call")
			b.StopTimer()
			require.NoError(b, s.Close())
		})
	}
}
