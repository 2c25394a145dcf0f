package lookup_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects/objectstest"
	"capper/internal/parallel"
	"capper/lookup"
)

// BenchmarkLookup looks up random and sorted users among 270 million, divided by the environment
// variable FACTOR. The generation has 4 segments and sets of 2, 5 and 20 %, all random.
func BenchmarkLookup(b *testing.B) {
	factor, err := strconv.ParseUint(cmp.Or(os.Getenv("FACTOR"), "1"), 10, 32)
	require.NoError(b, err)
	users := uint32(270_000_000 / factor)
	g := benchGeneration(b, users)
	var ids [1 << 16]uint32
	r := rand.New(rand.NewPCG(7, 7))
	for i := range ids {
		ids[i] = r.Uint32N(users)
	}
	sorted := slices.Sorted(slices.Values(ids[:]))
	twenty, err := g.Set("percent/20")
	require.NoError(b, err)
	codes, in := make([]uint8, 10_000), make([]bool, 10_000)
	for _, c := range []struct {
		name  string
		users int // of one look-up
		do    func(i int)
	}{
		{"Segment", 1, func(i int) { _ = g.Segment(ids[i&0xffff]) }},
		{"Segment, sorted users", 1, func(i int) { _ = g.Segment(sorted[i&0xffff]) }},
		{"Contains by name", 1, func(i int) { _, _ = g.Contains("percent/20", ids[i&0xffff]) }},
		{"Contains by name, of 2 %", 1, func(i int) { _, _ = g.Contains("percent/2", ids[i&0xffff]) }},
		{"Set.Contains", 1, func(i int) { _ = twenty.Contains(ids[i&0xffff]) }},
		{"Set.Contains, sorted users", 1, func(i int) { _ = twenty.Contains(sorted[i&0xffff]) }},
		{"SegmentCodes", 10_000, func(int) { g.SegmentCodes(ids[:10_000], codes) }},
		{"Set.Mark", 10_000, func(int) { twenty.Mark(ids[:10_000], in) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			i, before := 0, cpu()
			for b.Loop() {
				c.do(i)
				i++
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/float64(c.users), "cpu-ns/user")
		})
	}
}

// cpu returns the CPU time that the process has used so far; other processes do not affect it.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchGeneration(b *testing.B, users uint32) *lookup.Generation {
	b.Helper()
	all := make([]bitmap.Set, 7)
	parallel.OnAllCores(int(users>>16)+1, func(key int) {
		r := rand.New(rand.NewPCG(1, uint64(key)))
		for id := uint64(key) << 16; id < min(uint64(users), uint64(key+1)<<16); id++ {
			x := r.Uint64()
			all[x&3].Add(uint32(id))
			for i, percent := range []uint64{2, 5, 20} {
				if x>>(8+16*i)&0xffff < percent*65_536/100 {
					all[4+i].Add(uint32(id))
				}
			}
		}
	})
	groups := make([]group, len(all))
	for i, name := range []string{"new", "active", "lapsed", "vip", "percent/2", "percent/5", "percent/20"} {
		groups[i] = group{name, all[i].Bitmap()}
	}
	dir := b.TempDir()
	publish(b, objectstest.Open(b, dir), day(0), groups[:4], groups[4:])
	return follow(b, lookup.Config{Source: dir, Interval: time.Hour}).Current()
}
