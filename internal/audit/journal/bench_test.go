package journal_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit/journal"
	"capper/internal/capping"
)

// BenchmarkJournal is what the journal does for one call, from the decisions to the disk.
func BenchmarkJournal(b *testing.B) {
	for name, users := range map[string][]capping.UserID{
		"neighbours-1M": ids(1_000_000, func(i int) uint32 { return uint32(i) }), "each 27th-1M": ids(1_000_000,
			func(i int) uint32 { return uint32(i) * 27 }),
		"scattered-10k": ids(10_000, func(i int) uint32 { return uint32(i) * 2654435769 >> 5 }), "one": {42},
	} {
		for _, mixed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/mixed=%t", name, mixed), func(b *testing.B) {
				b.ReportAllocs()
				j := open(b, journal.Config{To: b.TempDir()})
				r, d := call("m", users...)
				for i := range d.Verdicts {
					if mixed && i%3 == 0 {
						d.Verdicts[i].Outcome = capping.Unavailable
					}
				}
				b.ResetTimer()
				for range b.N {
					again := *r
					j.Filter(&again, d)
					if len(users) > 1 {
						require.NoError(b, j.Flush(b.Context()))
					}
				}
				require.NoError(b, j.Flush(b.Context()))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
				require.Zero(b, j.Status().Lost)
			})
		}
	}
}

func ids(n int, id func(i int) uint32) []capping.UserID {
	return slices.Collect(func(yield func(capping.UserID) bool) {
		for i := range n {
			if !yield(capping.UserID(id(i))) {
				return
			}
		}
	})
}
