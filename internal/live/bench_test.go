package live

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

const benchUsers = 27_000_000

func randomUsers(r *rand.Rand, n int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = r.Uint32N(benchUsers)
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// BenchmarkMark compares a lookup in a set without changes, with 1 % of the users changed, and with changes of the last
// second that are not merged yet.
func BenchmarkMark(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	base := bitmap.OfSorted(randomUsers(r, benchUsers/10))
	changed := RecordOf(&Batch{Set: "opted-out", Add: randomUsers(r, benchUsers/100)}, 1000)
	for _, recent := range []int{-1, 0, 1, 1000} {
		lists := New(0)
		view := lists.View("opted-out", base, 0, nil)
		if recent >= 0 {
			lists.Apply(changed)
			view = lists.View("opted-out", base, 0, nil)
		}
		if recent > 0 {
			lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: randomUsers(r, recent), Remove: nil}, 2000))
			view = lists.View("opted-out", base, 0, view)
		}
		for _, sorted := range []bool{true, false} {
			users := randomUsers(r, 10_000)
			if !sorted {
				r.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
			}
			marks := make([]uint8, len(users))
			b.Run(fmt.Sprintf("recent=%d/sorted=%t", recent, sorted), func(b *testing.B) {
				for b.Loop() {
					clear(marks)
					view.Mark(users, marks, 1)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
			})
		}
	}
}

// BenchmarkChange measures the memory of a change and the time of changes of one user and of 100,000 users.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(2, 2))
			lists := New(0)
			before := heap()
			changes := 0
			for at := capping.Instant(1); b.Loop(); at++ {
				record := RecordOf(&Batch{Set: "opted-out", Add: randomUsers(r, n)}, at)
				lists.Apply(record)
				changes += n
			}
			held := lists.Len("opted-out")
			b.ReportMetric(float64(heap()-before)/float64(held), "B/change")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(changes), "ns/change")
			runtime.KeepAlive(lists)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkMerge measures how long it takes to put one change, and 1 % of the users, into the bitmap.
func BenchmarkMerge(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	base := bitmap.OfSorted(randomUsers(r, benchUsers/10))
	lists := New(0)
	lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: randomUsers(r, benchUsers/100)}, 1000))
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			lists.View("opted-out", base, 0, nil)
		}
	})
	view := lists.View("opted-out", base, 0, nil)
	lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: []uint32{77}}, 2000))
	recent := lists.View("opted-out", base, 0, view)
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			lists.Merge("opted-out", recent)
		}
	})
}
