package pebblestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

const (
	benchUsers   = 5_000_000
	benchEntries = 3 // in each user's log
	benchCall    = 10_000
)

// filled returns a store with benchEntries sends for each of the users first, first+stride, and so on. All
// logs are on the disk and compacted, and none is cached. diskBytes is the disk space of a user.
func filled(b *testing.B, users, stride int, ids IDs) (s *Store, diskBytes float64) {
	b.Helper()
	var err error
	s, err = Open(context.Background(), Config{Path: b.TempDir(), CacheBytes: 512 << 20, IDs: ids})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	now := capping.InstantOf(time.Now())
	var log []byte
	for first := 0; first < users; first += 100_000 {
		batch := s.db.NewBatch()
		for i := first; i < min(first+100_000, users); i++ {
			log = log[:0]
			for k := range benchEntries {
				token := binary.BigEndian.AppendUint64(nil, rand.Uint64())
				log = capping.Log(log).Record(nil, capping.Entry{At: now - capping.Instant(1000*(9-k)),
					Token: capping.Token(token)}, 0)
			}
			s.db.Put(batch, person(s, capping.UserID(i*stride)), append(beginLog(nil), log...))
		}
		require.NoError(b, batch.Commit(pebble.NoSync))
		require.NoError(b, batch.Close())
	}
	require.NoError(b, s.db.Flush())
	require.NoError(b, s.db.Compact(context.Background(), []byte{database.KeyLog}, []byte{database.KeyEnd}, true))
	size, err := s.db.EstimateDiskUsage([]byte{database.KeyLog}, []byte{database.KeyEnd})
	require.NoError(b, err)
	return s, float64(size) / float64(users)
}

// benchBatch returns a batch whose send is allowed for every user, so that each decision writes.
func benchBatch(message string, users []capping.UserID) *capping.Batch {
	day, week := capping.Limit{Max: 1000, Window: 24 * time.Hour}, capping.Limit{Max: 1000, Window: 7 * 24 * time.Hour}
	return &capping.Batch{
		Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(), Users: users,
		Groups: make([]uint8, len(users)),
		Rules:  [][]capping.Rule{{day.Rule(0, 0), week.Rule(0, 0)}}, Record: true, Retention: 7 * 24 * time.Hour,
	}
}

func benchFilter(b *testing.B, s *Store, batch *capping.Batch, verdicts []capping.Verdict) {
	clear(verdicts)
	if err := s.Filter(context.Background(), batch, verdicts); err != nil {
		b.Fatal(err)
	}
	if verdicts[0].Outcome != capping.Allowed {
		b.Fatal(verdicts[0])
	}
}

// cpu returns the processor time of this process. On a busy machine it is more reliable than the wall clock.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// report sets the benchmark figures for n decided users since began.
func report(b *testing.B, n int, began time.Duration) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "users/s")
	b.ReportMetric(float64(cpu(b)-began)/float64(n), "cpu-ns/user")
}

// randomCall returns benchCall distinct random users in random order.
func randomCall(s *Store, users []capping.UserID) []capping.UserID {
	for {
		users = users[:benchCall]
		for i := range users {
			users[i] = person(s, capping.UserID(rand.Uint32N(benchUsers)))
		}
		if users, _ = capping.Distinct(users); len(users) > benchCall*9/10 {
			return users
		}
	}
}

// BenchmarkFilterRandom decides 10,000 random users of 5 million per call: cold without cached logs, and
// warm with most logs cached.
func BenchmarkFilterRandom(b *testing.B) { benchRandom(b, IDs{}) }

// BenchmarkFilterRandomImages is BenchmarkFilterRandom with a store for images.
func BenchmarkFilterRandomImages(b *testing.B) { benchRandom(b, uuids) }

func benchRandom(b *testing.B, ids IDs) {
	s, diskBytes := filled(b, benchUsers, 1, ids)
	users, verdicts := make([]capping.UserID, benchCall), make([]capping.Verdict, benchCall)
	var calls int
	for _, name := range []string{"cold", "warm"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n, began := 0, cpu(b)
			for b.Loop() {
				users = randomCall(s, users)
				n += len(users)
				calls++
				benchFilter(b, s, benchBatch(fmt.Sprintf("random-%d", calls), users), verdicts[:len(users)])
			}
			report(b, n, began)
			b.ReportMetric(diskBytes, "disk-B/user")
		})
		if name == "cold" { // read every log once, like hours of operation
			warm(b, s)
		}
	}
}

func warm(b *testing.B, s *Store) {
	b.Helper()
	users, verdicts := make([]capping.UserID, 100_000), make([]capping.Verdict, 100_000)
	for first := 0; first < benchUsers; first += len(users) {
		for i := range users {
			users[i] = person(s, capping.UserID(first+i))
		}
		batch := benchBatch("", users)
		batch.Record = false
		benchFilter(b, s, batch, verdicts)
	}
}

// BenchmarkFilterBlast decides a sorted audience of one user in 27, in calls of 65,536 users.
func BenchmarkFilterBlast(b *testing.B) { benchBlast(b, IDs{}) }

// BenchmarkFilterBlastImages is BenchmarkFilterBlast with a store for images.
func BenchmarkFilterBlastImages(b *testing.B) { benchBlast(b, uuids) }

func benchBlast(b *testing.B, ids IDs) {
	const call, stride, calls = 65_536, 27, 40
	s, diskBytes := filled(b, call*calls*stride/9, 9, ids)
	audience := make([]capping.UserID, call*calls)
	for i := range audience {
		audience[i] = capping.UserID(i * stride)
	}
	audience = persons(s, audience)
	users, verdicts := make([]capping.UserID, call), make([]capping.Verdict, call)
	b.ReportAllocs()
	n, began := 0, cpu(b)
	for b.Loop() {
		copy(users, audience[n%calls*call:])
		benchFilter(b, s, benchBatch(fmt.Sprintf("blast-%d", n), users), verdicts)
		n++
	}
	report(b, n*call, began)
	b.ReportMetric(diskBytes, "disk-B/user")
}

// BenchmarkFilterOne decides one user per call: alone, and with parallel callers that share disk writes.
func BenchmarkFilterOne(b *testing.B) { benchOne(b, IDs{}) }

// BenchmarkFilterOneImages is BenchmarkFilterOne with a store for images.
func BenchmarkFilterOneImages(b *testing.B) { benchOne(b, uuids) }

func benchOne(b *testing.B, ids IDs) {
	s, _ := filled(b, 1_000_000, 1, ids)
	var calls atomic.Int64
	one := func(b *testing.B, verdicts []capping.Verdict) {
		user := []capping.UserID{person(s, capping.UserID(rand.Uint32N(1_000_000)))}
		benchFilter(b, s, benchBatch(fmt.Sprintf("one-%d", calls.Add(1)), user), verdicts)
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		verdicts := make([]capping.Verdict, 1)
		for b.Loop() {
			one(b, verdicts)
		}
	})
	b.Run("64 at once", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			verdicts := make([]capping.Verdict, 1)
			for pb.Next() {
				one(b, verdicts)
			}
		})
	})
}
