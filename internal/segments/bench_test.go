package segments_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
)

// benchUsers returns 270 million, divided by the environment variable FACTOR.
func benchUsers() uint32 {
	factor, err := strconv.ParseUint(cmp.Or(os.Getenv("FACTOR"), "1"), 10, 32)
	if err != nil || factor == 0 {
		panic("FACTOR must be a positive number")
	}
	return uint32(270_000_000 / factor)
}

var benchNames = []string{"new", "active", "lapsed", "vip"}

// layouts generates users that are spread over ids and segments in different ways.
var layouts = map[string]func(users uint32) []*bitmap.Bitmap{
	// every id is a user, each in one of 4 segments at random
	"random": func(users uint32) []*bitmap.Bitmap {
		sets := newSets(len(benchNames))
		r := rand.New(rand.NewPCG(1, 1))
		for id := range users {
			sets[r.IntN(len(sets))].Add(id)
		}
		return encodeAll(sets)
	},
	// every id is a user, each segment is one range
	"contiguous": func(users uint32) []*bitmap.Bitmap {
		sets := newSets(len(benchNames))
		for id := range users {
			sets[uint64(id)*uint64(len(sets))/uint64(users)].Add(id)
		}
		return encodeAll(sets)
	},
	// one id in 16 is a user, ids over the whole space
	"scattered": func(users uint32) []*bitmap.Bitmap {
		sets := newSets(len(benchNames))
		r := rand.New(rand.NewPCG(1, 1))
		for range users {
			sets[r.IntN(len(sets))].Add(r.Uint32())
		}
		c := &publish.Candidate{Names: benchNames, Bitmaps: encodeAll(sets)}
		c.Resolve()
		return c.Bitmaps
	},
}

func newSets(n int) []*bitmap.Set {
	sets := make([]*bitmap.Set, n)
	for i := range sets {
		sets[i] = new(bitmap.Set)
	}
	return sets
}

func encodeAll(sets []*bitmap.Set) []*bitmap.Bitmap {
	bitmaps := make([]*bitmap.Bitmap, len(sets))
	for i, s := range sets {
		bitmaps[i] = s.Bitmap()
		sets[i] = nil
	}
	return bitmaps
}

// benchGeneration builds each layout once.
var benchGeneration = func() func(b *testing.B, layout string) *segments.Generation {
	var mu sync.Mutex
	made := map[string]*segments.Generation{}
	return func(b *testing.B, layout string) *segments.Generation {
		b.Helper()
		mu.Lock()
		defer mu.Unlock()
		if made[layout] == nil {
			clear(made) // one at a time, to save memory
			made[layout] = segmentstest.Generation(b, benchNames, layouts[layout](benchUsers())...)
		}
		return made[layout]
	}
}()

// audience returns n different users of the layouts' ids.
func audience(n int, users uint32, order string) []uint32 {
	r := rand.New(rand.NewPCG(7, 7))
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = r.Uint32N(users)
	}
	if order == "sorted" {
		slices.Sort(ids)
	}
	return ids
}

func BenchmarkLookup(b *testing.B) {
	for _, layout := range []string{"random", "contiguous", "scattered"} {
		g := benchGeneration(b, layout)
		s := g.Snapshot()
		idSpace := benchUsers()
		if layout == "scattered" {
			idSpace = 1<<32 - 1
		}
		for _, order := range []string{"sorted", "unsorted"} {
			b.Run(layout+"/"+order+" batch of 10000", func(b *testing.B) {
				const batches, size = 64, 10_000
				var users [][]uint32
				all := audience(batches*size, idSpace, "")
				for i := range batches {
					part := all[i*size : (i+1)*size]
					if order == "sorted" {
						slices.Sort(part)
					}
					users = append(users, part)
				}
				codes := make([]uint8, size)
				b.ReportAllocs()
				for i := range b.N {
					s.Lookup(users[i%batches], codes)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/user")
				b.ReportMetric(float64(s.SizeBytes())/1e6, "MB")
			})
		}
	}
}

// BenchmarkContains measures the same question with the roaring library alone, by asking one segment
// after the other.
func BenchmarkContains(b *testing.B) {
	g := benchGeneration(b, "random")
	users := audience(10_000, benchUsers(), "sorted")
	b.ReportAllocs()
	var sets []*roaring.Bitmap
	for _, bitmap := range g.Bitmaps {
		sets = append(sets, bitmap.Roaring())
	}
	codes := make([]uint8, len(users))
	for b.Loop() {
		for i, id := range users {
			for k, set := range sets {
				if set.Contains(id) {
					codes[i] = uint8(k + 1)
					break
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(users)), "ns/user")
}

func BenchmarkSnapshot(b *testing.B) {
	for _, layout := range []string{"random", "contiguous", "scattered"} {
		g := benchGeneration(b, layout)
		b.Run(layout, func(b *testing.B) {
			for b.Loop() {
				_ = g.Snapshot()
			}
		})
	}
}

// BenchmarkStart measures the start of a service, without and with a cache.
func BenchmarkStart(b *testing.B) {
	for _, layout := range []string{"random", "contiguous"} {
		g := benchGeneration(b, layout)
		locations := map[string]string{"directory": b.TempDir(), "s3": "s3://" + s3test.Bucket(b) + "/prod"}
		for _, name := range []string{"directory", "s3"} {
			store, err := objects.Open(b.Context(), locations[name], objects.S3Config{})
			require.NoError(b, err)
			goLive(b, store, nil, benchNames, g.Bitmaps...)
			for _, cached := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/cache=%v", layout, name, cached), func(b *testing.B) {
					dir := ""
					if cached {
						dir = b.TempDir()
						require.NoError(b, segments.NewRefresher(segments.RefresherConfig{Source: store,
							CacheDir: dir}).Load(b.Context()))
					}
					for b.Loop() {
						r := segments.NewRefresher(segments.RefresherConfig{Source: store, CacheDir: dir})
						require.NoError(b, r.Load(b.Context()))
					}
					b.ReportMetric(float64(sizeBytes(g))/1e6, "MB")
				})
			}
		}
	}
}

func sizeBytes(g *segments.Generation) int64 {
	var sum int64
	for _, s := range g.Manifest.Segments {
		sum += s.SizeBytes
	}
	return sum
}

// BenchmarkPublish measures storing all bitmaps and making the generation live.
func BenchmarkPublish(b *testing.B) {
	g := benchGeneration(b, "random")
	locations := map[string]string{"directory": b.TempDir(), "s3": "s3://" + s3test.Bucket(b)}
	for _, name := range []string{"directory", "s3"} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				store, err := objects.Open(b.Context(), fmt.Sprintf("%s/%d-%d", locations[name], b.N, i),
					objects.S3Config{})
				require.NoError(b, err)
				goLive(b, store, nil, benchNames, g.Bitmaps...)
			}
			b.ReportMetric(float64(sizeBytes(g))/1e6, "MB")
		})
	}
}

// BenchmarkGuard measures the comparison of two generations by the guard. A build compares once with
// the last publish and once with the generation of a week ago.
func BenchmarkGuard(b *testing.B) {
	for layout, draw := range layouts {
		b.Run(layout, func(b *testing.B) {
			bitmaps := draw(benchUsers())
			c := &publish.Candidate{Names: benchNames, Bitmaps: bitmaps}
			before := segmentstest.Generation(b, benchNames, bitmaps[1], bitmaps[0], bitmaps[2], bitmap.Of(7))
			for name, compute := range map[string]func(){
				"NoSegment": func() { c.NoSegment(before) },
				"Drift":     func() { c.Drift(before) },
				"Compare":   func() { c.Compare(before) },
			} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						compute()
					}
				})
			}
		})
	}
}
