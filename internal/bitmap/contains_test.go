package bitmap

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// probes returns ids in a set, their neighbours, and random ids.
func probes(r *rand.Rand, set *roaring.Bitmap, n int) []uint32 {
	ids := []uint32{0, 1, 1<<16 - 1, 1 << 16, 1<<32 - 1}
	for range n {
		ids = append(ids, r.Uint32())
		if card := set.GetCardinality(); card > 0 {
			id, _ := set.Select(uint32(r.Uint64N(card)))
			ids = append(ids, id, id+1, id-1, id&^0xffff, id|0xffff, id^1<<15)
		}
	}
	return ids
}

// requireAnswers compares the answers of b with those of the library for every id.
func requireAnswers(t *testing.T, want *roaring.Bitmap, b *Bitmap, ids []uint32) {
	t.Helper()
	marks := make([]uint8, len(ids)+1)
	for i := range ids {
		marks[i] = uint8(i%3) * 100 // some are marked already
	}
	b.Mark(ids, marks, 7)
	for i, id := range ids {
		has := want.Contains(id)
		mark := uint8(i%3) * 100
		if mark == 0 && has {
			mark = 7
		}
		if b.Contains(id) != has || marks[i] != mark {
			require.Equal(t, has, b.Contains(id), "contains %d", id)
			require.Equal(t, mark, marks[i], "mark of %d, which is in it: %v", id, has)
		}
	}
	require.Zero(t, marks[len(ids)])
}

func TestContainsIsThatOfRoaring(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := Of(sample(seed)...)
		if seed == 0 {
			b = Of()
		}
		ids := probes(r, b.Roaring(), 2000)
		requireAnswers(t, b.Roaring(), b, ids)
		slices.Sort(ids)
		requireAnswers(t, b.Roaring(), b, ids)
	}
}

// arrays generates ids whose distribution misleads the position guess of a search.
var arrays = map[string]func(r *rand.Rand, n int) uint32{
	"evenly":                 func(r *rand.Rand, _ int) uint32 { return r.Uint32N(1 << 16) },
	"at the beginning":       func(r *rand.Rand, n int) uint32 { return r.Uint32N(uint32(2*n + 1)) },
	"at the end":             func(r *rand.Rand, n int) uint32 { return 1<<16 - 1 - r.Uint32N(uint32(2*n+1)) },
	"at both ends":           func(r *rand.Rand, n int) uint32 { return r.Uint32N(uint32(n+1)) ^ r.Uint32N(2)*0xffff },
	"ever denser":            func(r *rand.Rand, _ int) uint32 { return r.Uint32N(1<<8) * r.Uint32N(1<<8) },
	"in lumps":               func(r *rand.Rand, _ int) uint32 { return r.Uint32N(9)*7000 + r.Uint32N(200) },
	"one far from all other": func(r *rand.Rand, n int) uint32 { return max(1<<16-1-r.Uint32N(uint32(n+1)), 1) },
}

func TestEveryArrayIsSearched(t *testing.T) {
	t.Parallel()
	for name, draw := range arrays {
		for _, n := range []int{1, 2, 3, 31, 32, 33, 34, 63, 64, 65, 100, 1000, 3277, 4096} {
			r := rand.New(rand.NewPCG(uint64(n), 3))
			set := roaring.New()
			for range n {
				set.Add(draw(r, n))
			}
			raw, err := set.ToBytes() // not optimized: no runs
			require.NoError(t, err)
			b, err := Read(raw)
			require.NoError(t, err)
			ids := make([]uint32, 1<<16)
			for i := range ids {
				ids[i] = uint32(i)
			}
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { requireAnswers(t, set, b, ids) })
		}
	}
}

func TestKeysFarApartAreFound(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]uint32{{0}, {65535}, {7}, {0, 65535}, {100, 101, 102}, {100, 116}, {100, 115},
		{3, 9, 30_000, 30_001, 65_535}} {
		var ids, near []uint32
		for _, key := range keys {
			ids = append(ids, key<<16|5)
			near = append(near, (key-1)<<16|5, key<<16|5, (key+1)<<16|5, key<<16|6)
		}
		b := Of(ids...)
		requireAnswers(t, b.Roaring(), b, near)
	}
	var all Set
	for key := range uint32(1 << 16) {
		all.Add(key<<16 | key)
	}
	b := all.Bitmap()
	requireAnswers(t, b.Roaring(), b, probes(rand.New(rand.NewPCG(1, 4)), b.Roaring(), 3000))
}

// FuzzContains checks that every bitmap that Read accepts gives the same answers as the library.
func FuzzContains(f *testing.F) {
	f.Add(Of(sample(1)...).Bytes(), uint64(1))
	f.Add(Of(1, 2, 3, 70_000).Bytes(), uint64(2))
	f.Add(Range(5, 4105).Bytes(), uint64(3))
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		b, err := Read(raw)
		if err != nil {
			return
		}
		requireAnswers(t, b.Roaring(), b, probes(rand.New(rand.NewPCG(seed, 5)), b.Roaring(), 300))
	})
}

// BenchmarkContains looks up batches of 10,000 users in sets that hold different shares of 270 million
// users; FACTOR=10 uses a tenth of the users.
func BenchmarkContains(b *testing.B) {
	factor, err := strconv.ParseUint(cmp.Or(os.Getenv("FACTOR"), "1"), 10, 32)
	require.NoError(b, err)
	users := uint32(270_000_000 / factor)
	for _, percent := range []uint32{1, 5, 20} {
		set := share(users, percent)
		library := set.Roaring()
		for _, order := range []string{"sorted", "unsorted"} {
			batches := drawBatches(users, order == "sorted")
			b.Run(fmt.Sprintf("%d%%/%s/Contains", percent, order), func(b *testing.B) {
				each(b, batches, func(ids []uint32, marks []uint8) {
					for i, id := range ids {
						if set.Contains(id) {
							marks[i] = 1
						}
					}
				})
			})
			b.Run(fmt.Sprintf("%d%%/%s/Mark", percent, order), func(b *testing.B) {
				each(b, batches, func(ids []uint32, marks []uint8) { set.Mark(ids, marks, 1) })
			})
			b.Run(fmt.Sprintf("%d%%/%s/roaring", percent, order), func(b *testing.B) {
				each(b, batches, func(ids []uint32, marks []uint8) {
					for i, id := range ids {
						if library.Contains(id) {
							marks[i] = 1
						}
					}
				})
			})
		}
	}
}

// share returns a random bitmap with this percentage of the users.
func share(users, percent uint32) *Bitmap {
	r := rand.New(rand.NewPCG(9, 9))
	var ids []uint32
	for id := range users {
		if r.Uint32N(100) < percent {
			ids = append(ids, id)
		}
	}
	return Of(ids...)
}

func drawBatches(users uint32, sorted bool) [64][]uint32 {
	r := rand.New(rand.NewPCG(7, 7))
	var batches [64][]uint32
	for i := range batches {
		batches[i] = make([]uint32, 10_000)
		for k := range batches[i] {
			batches[i][k] = r.Uint32N(users)
		}
		if sorted {
			slices.Sort(batches[i])
		}
	}
	return batches
}

// each reports the mean, the median and the minimum time of the calls, because other programs on the
// machine slow down some calls.
func each(b *testing.B, batches [64][]uint32, ask func(ids []uint32, marks []uint8)) {
	marks := make([]uint8, len(batches[0]))
	took := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	for i := range b.N {
		clear(marks)
		begin := time.Now()
		ask(batches[i%len(batches)], marks)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	perUser := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(len(marks)) }
	b.ReportMetric(perUser(b.Elapsed())/float64(b.N), "ns/user")
	b.ReportMetric(perUser(took[len(took)/2]), "median-ns/user")
	b.ReportMetric(perUser(took[0]), "least-ns/user")
}

func TestSizesAreThoseOfMemory(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, containerSize, unsafe.Sizeof(container{}))
	require.EqualValues(t, placeSize, unsafe.Sizeof(place{}))
	require.EqualValues(t, blockSize, unsafe.Sizeof(block{}))
	b := Of(1, 70_000)
	require.EqualValues(t, len(b.Bytes())+2*(containerSize+placeSize), b.SizeBytes())
}
