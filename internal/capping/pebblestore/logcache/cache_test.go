package logcache

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// What the cache answers is what was put last, or nothing.
func TestCacheNeverAnswersAnOldLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cache := newCache(rapid.IntRange(1, 3).Draw(t, "slabs"))
		last := make(map[capping.UserID]capping.Log)
		for range rapid.IntRange(1, 3000).Draw(t, "puts") {
			user := rapid.Uint32Range(0, 400).Draw(t, "user")
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
		for user := range capping.UserID(401) {
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
	cache := newCache(2)
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
	cache := newCache(4)
	log := make(capping.Log, 3*capping.EntrySize)
	cache.Put(7, log)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		cache.Put(7, log)
		cache.Log(7)
		cache.Log(8)
	}))
}
