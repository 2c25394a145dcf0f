package pebblestore

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
		cache := newLogCache(rapid.IntRange(1, 3).Draw(t, "segments"))
		last := make(map[capping.UserID]capping.Log)
		for range rapid.IntRange(1, 3000).Draw(t, "puts") {
			user := rapid.Uint32Range(0, 400).Draw(t, "user")
			n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 59, 60, 61}).Draw(t, "entries")
			log := make(capping.Log, n*capping.EntrySize)
			for i := range log {
				log[i] = byte(len(last) + i + n)
			}
			if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
				cache.drop(user)
				delete(last, user)
				continue
			}
			cache.put(user, log)
			last[user] = log
			got, ok := cache.log(user)
			require.Equal(t, n > 0 && n <= 60, ok)
			if ok {
				require.Equal(t, log, got)
			}
		}
		cached := 0
		for user := range capping.UserID(401) {
			if got, ok := cache.log(user); ok {
				require.Equal(t, last[user], got)
				cached++
			}
		}
		require.Equal(t, cached, cache.users)
	})
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	cache := newLogCache(2)
	log := make(capping.Log, 2*capping.EntrySize)
	for user := range capping.UserID(100_000) {
		cache.put(user, log)
	}
	require.Len(t, cache.segments, 2)
	require.LessOrEqual(t, cache.users, 2*segmentSize/(recordHeader+len(log)))
	require.LessOrEqual(t, len(cache.slots), 1<<13)
	_, ok := cache.log(99_999)
	require.True(t, ok, "the newest log")
	_, ok = cache.log(0)
	require.False(t, ok, "the oldest log")
}

// TestCacheTooSmallForACall has logs leave the cache in the very call that
// found them there: they are read again, not taken for none.
func TestCacheTooSmallForACall(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir(), CacheBytes: 1})
	var stripe []capping.UserID // all in one
	for user := capping.UserID(0); len(stripe) < 4000; user++ {
		if stripeOf(user) == 3 {
			stripe = append(stripe, user)
		}
	}
	last := stripe[len(stripe)-200:]
	_, err := filterAll(s, "first", last...)
	require.NoError(t, err)
	_, cached := s.cacheOf(last[0]).log(last[0])
	require.True(t, cached)
	verdicts, err := filterAll(s, "first", stripe...)
	require.NoError(t, err)
	for i, v := range verdicts {
		want := capping.Allowed
		if i >= len(stripe)-200 {
			want = capping.Replayed
		}
		require.Equal(t, want, v.Outcome, "user %d", stripe[i])
	}
	require.NoError(t, s.Close())
}

func TestCacheReadsDoNotAllocate(t *testing.T) {
	cache := newLogCache(4)
	log := make(capping.Log, 3*capping.EntrySize)
	cache.put(7, log)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		cache.put(7, log)
		cache.log(7)
		cache.log(8)
	}))
}
