package segments_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/parallel"
	"capper/internal/segments"
	"capper/internal/segments/publish"
)

var benchZones = []string{"Asia/Singapore", "Asia/Jakarta", "Asia/Manila", "Asia/Bangkok", "Asia/Tokyo", "Asia/Seoul",
	"Asia/Kolkata", "Asia/Dubai",
	"Asia/Karachi", "Asia/Dhaka", "Asia/Yangon", "Asia/Kathmandu", "Asia/Colombo", "Asia/Tashkent", "Asia/Almaty",
	"Asia/Tehran", "Asia/Kabul",
	"Asia/Jerusalem", "Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Moscow", "Africa/Cairo",
	"Africa/Lagos", "Africa/Nairobi",
	"America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo",
	"America/Bogota", "America/Santiago",
	"America/Mexico_City", "Australia/Sydney", "Australia/Adelaide", "Australia/Perth", "Pacific/Auckland",
	"Pacific/Honolulu"}

// besides lists the sets beside the zones and countries, with their shares of the users in per cent.
var besides = []struct {
	name    string
	percent uint32
}{{"opted-out", 20}, {"bounced", 5}, {"holdout", 5}, {"sms-stop", 1}, {"app", 60}, {"night-owls", 10}, {"paying", 3},
	{"staff", 0}, {"beta", 1}, {"reviewers", 2}, {"drivers", 1}, {"merchants", 1}}

// benchCandidate draws for every user one of 4 segments, one of 38 zones (a third of
// them in the first, the others alike), one of 10 countries, and 12 sets beside these.
func benchCandidate(seed uint64) *publish.Candidate {
	users := uint64(benchUsers())
	drawn := make([]bitmap.Set, 4+len(benchZones)+10+len(besides))
	parallel.OnAllCores(int((users+1<<16-1)>>16), func(key int) {
		r := rand.New(rand.NewPCG(seed, uint64(key)))
		for id := uint64(key) << 16; id < min(users, uint64(key+1)<<16); id++ {
			drawn[r.Uint32N(4)].Add(uint32(id))
			zone := 0
			if r.Uint32N(3) > 0 {
				zone = 1 + r.IntN(len(benchZones)-1)
			}
			drawn[4+zone].Add(uint32(id))
			drawn[4+len(benchZones)+r.IntN(10)].Add(uint32(id))
			for i, set := range besides {
				if r.Uint32N(100) < set.percent {
					drawn[14+len(benchZones)+i].Add(uint32(id))
				}
			}
		}
	})
	bitmaps := make([]*bitmap.Bitmap, len(drawn))
	for i := range drawn {
		bitmaps[i] = drawn[i].Bitmap()
		drawn[i] = bitmap.Set{}
	}
	c := &publish.Candidate{Names: benchNames, Bitmaps: bitmaps[:4]}
	for i, b := range bitmaps[4:] {
		name := ""
		switch {
		case i < len(benchZones):
			name = segments.ZonePrefix + benchZones[i]
		case i < len(benchZones)+10:
			name = fmt.Sprintf("country/%d", i-len(benchZones))
		default:
			name = besides[i-len(benchZones)-10].name
		}
		c.Sets = append(c.Sets, publish.Set{Name: name, Bitmap: b})
	}
	return c
}

func publishCandidate(b *testing.B, store objects.Location, c *publish.Candidate) {
	b.Helper()
	base, err := publish.ReadLiveState(b.Context(), store)
	require.NoError(b, err)
	_, err = (&publish.Publisher{Location: store, ToolVersion: "test"}).Publish(b.Context(), c, base, "")
	require.NoError(b, err)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// askAll sends the queries of one filter call for 10,000 users to a generation: segments, zones and
// three sets.
func askAll(s *segments.Snapshot, users []uint32, codes []uint8, zones []uint16, marks []uint8) {
	s.Lookup(users, codes)
	s.LookupZones(users, zones)
	clear(marks)
	for i, name := range []string{"opted-out", "bounced", "holdout"} {
		s.Set(name).Mark(users, marks, uint8(i+1))
	}
}

// BenchmarkSets is a generation of 4 segments and 60 sets: start-up from S3, memory,
// what a call asks of it, and how long calls take while another is swapped in.
func BenchmarkSets(b *testing.B) {
	store, err := objects.Open(b.Context(), "s3://"+s3test.Bucket(b)+"/prod", objects.S3Config{})
	require.NoError(b, err)
	publishCandidate(b, store, benchCandidate(1))
	runtime.GC()
	var r *segments.Refresher
	b.Run("Start", func(b *testing.B) {
		before := processorTime()
		for b.Loop() {
			r = segments.NewRefresher(segments.RefresherConfig{Source: store})
			require.NoError(b, r.Load(b.Context()))
		}
		b.ReportMetric((processorTime()-before).Seconds()/float64(b.N), "cpu-s/op")
		reportMemory(b, r.Current())
	})
	const size = 10_000
	batches := make([][]uint32, 64)
	for i, all := 0, audience(len(batches)*size, benchUsers(), ""); i < len(batches); i++ {
		batches[i] = all[i*size : (i+1)*size]
		slices.Sort(batches[i])
	}
	codes, zones, marks := make([]uint8, size), make([]uint16, size), make([]uint8, size)
	for name, ask := range map[string]func(s *segments.Snapshot, users []uint32){
		"Lookup":      func(s *segments.Snapshot, users []uint32) { s.Lookup(users, codes) },
		"LookupZones": func(s *segments.Snapshot, users []uint32) { s.LookupZones(users, zones) },
		"Mark/20%":    func(s *segments.Snapshot, users []uint32) { s.Set("opted-out").Mark(users, marks, 1) },
		"Mark/5%":     func(s *segments.Snapshot, users []uint32) { s.Set("bounced").Mark(users, marks, 1) },
		"Call":        func(s *segments.Snapshot, users []uint32) { askAll(s, users, codes, zones, marks) },
	} {
		b.Run(name, func(b *testing.B) {
			took := timed(b, func(i int) { clear(marks); ask(r.Current(), batches[i%len(batches)]) })
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/size, "median-ns/user")
			b.ReportMetric(float64(took[0].Nanoseconds())/size, "least-ns/user")
		})
	}
	seed := uint64(1) // another generation each time
	b.Run("Swap", func(b *testing.B) {
		call := func(i int) { askAll(r.Current(), batches[i%len(batches)], codes, zones, marks) }
		for range b.N {
			seed++
			publishCandidate(b, store, benchCandidate(seed))
			runtime.GC()
			before := during(20*time.Second, nil, call)
			swapped := make(chan struct{})
			var err error
			go func() { defer close(swapped); err = r.Refresh(b.Context()) }()
			swap := during(time.Hour, swapped, call)
			require.NoError(b, err)
			for name, list := range map[string][]time.Duration{"before": before, "swap": swap} {
				b.ReportMetric(float64(list[len(list)*99/100].Microseconds()), name+"-p99-µs")
				b.ReportMetric(float64(list[len(list)-1].Microseconds()), name+"-longest-µs")
			}
			b.ReportMetric(float64(len(swap)), "calls-in-swap")
		}
	})
}

// timed calls do b.N times and returns the durations in ascending order.
func timed(b *testing.B, do func(i int)) []time.Duration {
	took := make([]time.Duration, 0, b.N)
	for i := range b.N {
		begin := time.Now()
		do(i)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// during makes a call every 5 ms until the time limit ends or stop is closed.
func during(limit time.Duration, stop <-chan struct{}, call func(i int)) (took []time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end, i := time.Now().Add(limit), 0; time.Now().Before(end); i++ {
		select {
		case <-stop:
			slices.Sort(took)
			return took
		case due := <-tick.C:
			call(i)
			took = append(took, time.Since(due)) // with the wait for a core
		}
	}
	slices.Sort(took)
	return took
}

// reportMemory reports which parts of the generation take the memory.
func reportMemory(b *testing.B, s *segments.Snapshot) {
	b.Helper()
	b.ReportMetric(float64(s.SizeBytes())/1e6, "MB")
	b.ReportMetric(float64(s.Codes().SizeBytes())/1e6, "MB-segments")
	var sets int64
	for _, set := range s.Sets() {
		sets += s.Set(set.Name).SizeBytes()
	}
	b.ReportMetric(float64(sets)/1e6, "MB-sets")
	b.ReportMetric(float64(s.SizeBytes()-s.Codes().SizeBytes()-sets)/1e6, "MB-zone-map")
}
