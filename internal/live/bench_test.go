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
		users[i] = capping.UserID(r.Uint32N(benchUsers))
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// BenchmarkMark compares a lookup in a set without changes, with 1 % of the users changed, and with changes of the last
// second that are not merged yet.
func BenchmarkMark(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	base := bitmap.OfSorted(capping.AppendDense(nil, randomUsers(r, benchUsers/10)))
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
			marks, numbers := make([]uint8, len(users)), capping.AppendDense(nil, users)
			b.Run(fmt.Sprintf("recent=%d/sorted=%t", recent, sorted), func(b *testing.B) {
				for b.Loop() {
					clear(marks)
					view.Mark(users, numbers, marks, 1)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
			})
		}
	}
}

// BenchmarkMarkImages compares lookups in a set of images without changes, with changes of 1 % of the users, and with
// changes of each.
func BenchmarkMarkImages(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	base := bitmap.OfSorted(capping.AppendDense(nil, randomUsers(r, benchUsers/10)))
	for _, changes := range []int{0, benchUsers / 100, benchUsers / 3} {
		lists := NewOfImages(0)
		users := make([]capping.UserID, changes+10_000)
		for i := range users {
			users[i] = capping.UserID(r.Uint64())
		}
		slices.Sort(users)
		if changes > 0 {
			lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: users}, 1000))
		}
		view := lists.View("opted-out", base, 0, nil)
		for _, sorted := range []bool{true, false} {
			some := make([]capping.UserID, 10_000)
			for i := range some {
				some[i] = users[r.IntN(len(users))]
			}
			if sorted {
				slices.Sort(some)
			}
			marks := make([]uint8, len(some))
			numbers := capping.AppendDense(nil, randomUsers(r, 2*len(some))[:len(some)])
			b.Run(fmt.Sprintf("changes=%d/sorted=%t", changes, sorted), func(b *testing.B) {
				for b.Loop() {
					clear(marks)
					view.Mark(some, numbers, marks, 1)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(some)), "ns/user")
			})
		}
		b.Run(fmt.Sprintf("changes=%d/one more", changes), func(b *testing.B) {
			for b.Loop() {
				lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: users[:1]}, 2000))
				view = lists.View("opted-out", base, 0, view)
			}
		})
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
	base := bitmap.OfSorted(capping.AppendDense(nil, randomUsers(r, benchUsers/10)))
	lists := New(0)
	lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: randomUsers(r, benchUsers/100)}, 1000))
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			lists.View("opted-out", base, 0, nil)
		}
	})
	view := lists.View("opted-out", base, 0, nil)
	lists.Apply(RecordOf(&Batch{Set: "opted-out", Add: []capping.UserID{77}}, 2000))
	recent := lists.View("opted-out", base, 0, view)
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			lists.Merge("opted-out", recent)
		}
	})
}
