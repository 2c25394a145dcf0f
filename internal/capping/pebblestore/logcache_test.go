package pebblestore

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// TestCacheNeverAnswersAnOldLog checks that the cache returns the latest log or none.
func TestCacheNeverAnswersAnOldLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cache := newLogCacheOf(rapid.IntRange(1, 3).Draw(t, "slabs"), rapid.Bool().Draw(t, "images"))
		factor := rapid.SampledFrom([]capping.UserID{1, factor}).Draw(t, "factor")
		if !cache.wide {
			factor = 1
		}
		last := make(map[capping.UserID]capping.Log)
		for range rapid.IntRange(1, 3000).Draw(t, "puts") {
			user := capping.UserID(rapid.Uint32Range(0, 400).Draw(t, "user")) * factor
			n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 59, 60, 61}).Draw(t, "entries")
			log := make(capping.Log, n*capping.EntrySize)
			for i := range log {
				log[i] = byte(len(last) + i + n)
			}
			if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
				cache.Drop(user)
				delete(last, user)
				continue
			}
			cache.Put(user, log)
			last[user] = log
			got, ok := cache.Log(user)
			require.Equal(t, n > 0 && n <= 60, ok)
			if ok {
				require.Equal(t, log, got)
			}
		}
		cached := 0
		for n := range capping.UserID(401) {
			user := n * factor
			if got, ok := cache.Log(user); ok {
				require.Equal(t, last[user], got)
				cached++
			}
		}
		require.Equal(t, cached, cache.users)
	})
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	cache := newLogCacheOf(2, false)
	log := make(capping.Log, 2*capping.EntrySize)
	for user := range capping.UserID(100_000) {
		cache.Put(user, log)
	}
	require.Len(t, cache.slabs, 2)
	require.LessOrEqual(t, cache.users, 2*slabSize/(itemHeader+len(log)))
	require.LessOrEqual(t, len(cache.slots), 1<<13)
	_, ok := cache.Log(99_999)
	require.True(t, ok, "the newest log")
	_, ok = cache.Log(0)
	require.False(t, ok, "the oldest log")
}

func TestCacheReadsDoNotAllocate(t *testing.T) {
	cache := newLogCacheOf(4, false)
	log := make(capping.Log, 3*capping.EntrySize)
	cache.Put(7, log)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		cache.Put(7, log)
		cache.Log(7)
		cache.Log(8)
	}))
}

// BenchmarkCache reads logs of random users. In "sends" it also writes each log with one more entry, and
// drops the oldest entry from 5 entries on.
func BenchmarkCache(b *testing.B) {
	const users, stripes = 500_000, 256
	for _, sends := range []bool{false, true} {
		b.Run(map[bool]string{false: "reads", true: "sends"}[sends], func(b *testing.B) {
			var caches [stripes]logCache
			for i := range caches {
				caches[i] = newLogCache(192<<20/stripes, false)
			}
			log, next := make(capping.Log, 3*capping.EntrySize), make(capping.Log, 0, 6*capping.EntrySize)
			for user := range capping.UserID(users) {
				caches[user%stripes].Put(user, log)
			}
			b.ReportAllocs()
			for b.Loop() {
				user := capping.UserID(rand.Uint32N(users))
				cache := &caches[user%stripes]
				found, ok := cache.Log(user)
				if !ok {
					b.Fatal(user)
				}
				if !sends {
					continue
				}
				if found.Len() >= 5 {
					found = found[3*capping.EntrySize:]
				}
				next = append(append(next[:0], found...), log[:capping.EntrySize]...)
				cache.Put(user, next)
			}
		})
	}
}
