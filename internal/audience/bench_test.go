package audience_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/share"
)

// benchSnapshot builds a generation of 270 million users, divided by the environment variable FACTOR,
// with 4 segments and 60 random sets: 38 time zones, 10 countries, two suppression lists of 5 % and 20
// %, and ten others of 1 to 50 %.
var benchSnapshot = sync.OnceValue(func() *segments.Snapshot {
	factor, err := strconv.ParseUint(cmp.Or(os.Getenv("FACTOR"), "1"), 10, 32)
	if err != nil || factor == 0 {
		panic("FACTOR must be a positive number")
	}
	users := uint32(270_000_000 / factor)
	segmentSets, sets := make([]bitmap.Set, 4), make([]bitmap.Set, 60)
	parallel.OnAllCores(int(users>>16)+1, func(key int) {
		r := rand.New(rand.NewPCG(1, uint64(key)))
		for id := uint64(key) << 16; id < min(uint64(users), uint64(key+1)<<16); id++ {
			x := r.Uint64()
			segmentSets[x&3].Add(uint32(id))
			sets[min(x>>2&63, 37)].Add(uint32(id)) // the last zone has 42 %
			sets[38+x>>8%10].Add(uint32(id))
			for i, percent := range []uint64{5, 20, 5, 50, 30, 10, 1, 1, 2, 3, 4, 5} {
				if (x>>(16+i*4)*0x9e3779b97f4a7c15)>>32%100 < percent {
					sets[48+i].Add(uint32(id))
				}
			}
		}
	})
	g := &segments.Generation{}
	var list []segments.Segment
	var described []segments.Set
	for i := range segmentSets {
		g.Bitmaps = append(g.Bitmaps, segmentSets[i].Bitmap())
		list = append(list, segments.Describe([]string{"new", "active", "lapsed", "vip"}[i], g.Bitmaps[i]))
	}
	for i := range sets {
		g.Sets = append(g.Sets, sets[i].Bitmap())
		sets[i] = bitmap.Set{}
		described = append(described, segments.Set{Segment: segments.Describe(fmt.Sprintf("set/%d", i), g.Sets[i])})
	}
	if g.Manifest, err = segments.NewManifest(segmentstest.Epoch, "test", "", list, described...); err != nil {
		panic(err)
	}
	return g.Snapshot()
})

// cpu returns the CPU time that the process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func measure(b *testing.B, do func()) {
	b.Helper()
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64((cpu()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

func BenchmarkCount(b *testing.B) {
	s := benchSnapshot()
	for _, text := range []string{"active", "set/50", "active - vip - set/48", "active - set/49 & set/40",
		"set/40 | set/3 | set/50", "all", "all - set/48"} {
		b.Run(text, func(b *testing.B) {
			measure(b, func() {
				_, err := bind(b, audience.NewEngine(0), text, s).Count(b.Context(), audience.Query{})
				require.NoError(b, err)
			})
		})
	}
}

func BenchmarkBreakdown(b *testing.B) {
	s := benchSnapshot()
	for _, text := range []string{"all", "active - set/48", "set/3"} {
		b.Run(text, func(b *testing.B) {
			measure(b, func() {
				_, err := bind(b, audience.NewEngine(0), text, s).Breakdown(b.Context(), audience.Query{})
				require.NoError(b, err)
			})
		})
	}
}

// BenchmarkTake measures taking the users of one call from an audience of 64 million.
func BenchmarkTake(b *testing.B) {
	s, g := benchSnapshot(), audience.NewEngine(0)
	a := bind(b, g, "active - set/48", s)
	sample, err := share.New(share.Sample, 10, "a")
	require.NoError(b, err)
	for name, take := range map[string]func() error{
		"page of 100,000": func() error { _, err := a.Page(b.Context(), audience.Query{}, 100_000); return err },
		"page of 100,000 of a 10 % sample": func() error {
			_, err := a.Page(b.Context(), audience.Query{Sample: &sample}, 100_000)
			return err
		},
		"part of 64": func() error {
			_, err := a.Page(b.Context(), audience.Query{Part: audience.Part{Of: 64, Index: 32}}, 2_000_000)
			return err
		},
		"bitmap": func() error { _, err := a.Bitmap(b.Context(), audience.Query{}); return err },
		"count of a 10 % sample": func() error {
			_, err := a.Count(b.Context(),
				audience.Query{Sample: &sample})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			measure(b, func() { require.NoError(b, take()) })
		})
	}
}

func BenchmarkUnsegmented(b *testing.B) {
	s := benchSnapshot()
	before := cpu()
	s.Unsegmented()
	b.ReportMetric(float64((cpu() - before).Milliseconds()), "cpu-ms/once")
}
