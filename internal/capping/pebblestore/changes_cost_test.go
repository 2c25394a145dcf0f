//go:build storms

package pebblestore

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// scaled returns n times CAPPER_BENCH_FACTOR. Without the variable it returns small, and measured is false.
func scaled(t *testing.T, n, small int) (scaled int, measured bool) {
	text := os.Getenv("CAPPER_BENCH_FACTOR")
	if text == "" {
		return small, false
	}
	factor, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return int(float64(n) * factor), true
}

// TestCostOfChanges measures changes by calls for one user and by calls for many users. At full size memory and disk
// take at most 40 bytes a change.
func TestCostOfChanges(t *testing.T) {
	users, measured := scaled(t, 1_000_000, 20_000)
	for _, c := range []struct {
		name    string
		perCall int
		callers int
	}{{"one by one", 1, 64}, {"in bulk", users / 10, 1}} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{Path: t.TempDir(), SweepInterval: time.Hour}
			s := reopen(t, config)
			before := heap()
			order := rand.New(rand.NewPCG(1, 1)).Perm(users)
			var longest []time.Duration
			var mu sync.Mutex
			var all sync.WaitGroup
			began := time.Now()
			for w := range c.callers {
				all.Go(func() {
					var took []time.Duration
					for first := w * c.perCall; first < users; first += c.callers * c.perCall {
						add := make([]capping.UserID, c.perCall)
						for i := range add {
							add[i] = capping.UserID(order[first+i]) * 270
						}
						slices.Sort(add)
						at := time.Now()
						if _, err := s.Change(context.Background(), adding(add...)); err != nil {
							t.Error(err)
							return
						}
						took = append(took, time.Since(at))
					}
					mu.Lock()
					defer mu.Unlock()
					longest = append(longest, took...)
				})
			}
			all.Wait()
			slices.Sort(longest)
			t.Logf("%v for all; a call: p50 %v, p99 %v, longest %v", time.Since(began), longest[len(longest)/2],
				longest[len(longest)*99/100], longest[len(longest)-1])
			began = time.Now()
			packAll(t, s)
			t.Logf("packed in %v, %d records remain small", time.Since(began), s.changes.fresh)
			memory := float64(heap()-before) / float64(users)
			require.NoError(t, s.db.Flush())
			prefix := []byte{database.KeyMeta, 0xFF}
			require.NoError(t, s.db.Compact(t.Context(), prefix, database.After(packedPrefix), true))
			disk, err := s.db.EstimateDiskUsage(freedKey, database.After(packedPrefix))
			require.NoError(t, err)
			require.NoError(t, s.Close())
			began = time.Now()
			s = reopen(t, config)
			t.Logf("%.1f bytes a change on disk, %.1f in memory; opened in %v", float64(disk)/float64(users), memory,
				time.Since(began))
			require.Equal(t, users, s.Lists().Len("opted-out"))
			if measured {
				require.Less(t, float64(disk)/float64(users), 40.)
				require.Less(t, memory, 40.)
			}
			began = time.Now()
			upTo := map[string]capping.Instant{"opted-out": capping.InstantOf(time.Now())}
			require.NoError(t, s.Free(t.Context(), upTo))
			packAll(t, s)
			t.Logf("freed in %v", time.Since(began))
			require.Zero(t, s.changes.entries)
			require.NoError(t, s.Close())
		})
	}
}

// TestChangesBesideBigCalls measures calls for one user beside calls for 100,000 users and packing.
func TestChangesBesideBigCalls(t *testing.T) {
	many, _ := scaled(t, 100_000, 2000)
	calls, _ := scaled(t, 2000, 200)
	s := reopen(t, Config{Path: t.TempDir(), SweepInterval: 10 * time.Millisecond})
	stop := make(chan struct{})
	var big sync.WaitGroup
	var bulks []time.Duration
	big.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := capping.UserID(0); ; n++ {
			users := make([]capping.UserID, many)
			for i := range users {
				users[i] = capping.UserID(i)*2700 + n
			}
			began := time.Now()
			if _, err := s.Change(context.Background(), adding(users...)); err != nil {
				t.Error(err)
				return
			}
			bulks = append(bulks, time.Since(began))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	var took []time.Duration
	for n := range capping.UserID(calls) {
		began := time.Now()
		changeSet(t, s, adding(n*1_000_003))
		took = append(took, time.Since(began))
	}
	close(stop)
	big.Wait()
	slices.Sort(took)
	slices.Sort(bulks)
	t.Logf("one user: p50 %v, p99 %v, longest %v; %d users: p50 %v, longest %v", took[len(took)/2],
		took[len(took)*99/100], took[len(took)-1], many, bulks[len(bulks)/2], bulks[len(bulks)-1])
	require.NoError(t, s.Close())
}
