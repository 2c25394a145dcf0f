package journal_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/audittest"
	"capper/internal/audit/journal"
	"capper/internal/capping"
)

// BenchmarkJournal is what the journal does for one call, from the decisions to the disk: CPU time and bytes a user.
func BenchmarkJournal(b *testing.B) {
	for _, demand := range []struct {
		name  string
		ids   audit.IDs
		users []capping.UserID
	}{
		{"neighbours-1M", audit.IDs{}, ids(1_000_000, func(i int) uint32 { return uint32(i) })},
		{"each 27th-1M", audit.IDs{}, ids(1_000_000, func(i int) uint32 { return uint32(i) * 27 })},
		{"scattered-10k", audit.IDs{}, ids(10_000, func(i int) uint32 { return uint32(i) * 2654435769 >> 5 })},
		{"one", audit.IDs{}, []capping.UserID{42}},
		{"images-1M", audittest.IDs(), slices.Sorted(slices.Values(images(1_000_000)))},
		{"scattered-images-1M", audittest.IDs(), images(1_000_000)},
		{"scattered-images-10k", audittest.IDs(), images(10_000)},
		{"one-image", audittest.IDs(), images(1)},
	} {
		for _, mixed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/mixed=%t", demand.name, mixed), func(b *testing.B) {
				b.ReportAllocs()
				dir, users := b.TempDir(), float64(len(demand.users))
				j := open(b, journal.Config{To: dir, IDs: demand.ids})
				r, d := call("m", demand.users...)
				for i := range d.Verdicts {
					if mixed && i%3 == 0 {
						d.Verdicts[i].Outcome = capping.Unavailable
					}
				}
				began := cpuTime(b)
				b.ResetTimer()
				for range b.N {
					again := *r
					j.Filter(&again, d)
					if users > 1 {
						require.NoError(b, j.Flush(b.Context()))
					}
				}
				require.NoError(b, j.Flush(b.Context()))
				b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N)/users, "cpu-ns/user")
				require.Zero(b, j.Status().Lost)
				b.ReportMetric(float64(size(b, dir))/float64(b.N)/users, "B/user")
			})
		}
	}
}

// cpuTime is what the process has taken of the cores, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

// size is the size of all files in a directory.
func size(b *testing.B, dir string) (bytes int64) {
	require.NoError(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	}))
	return bytes
}

// images is n random images.
func images(n int) (list []capping.UserID) {
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		list = append(list, capping.UserID(random.Uint64()))
	}
	return list
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
