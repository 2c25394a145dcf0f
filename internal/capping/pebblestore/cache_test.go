package pebblestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestCacheTooSmallForACall checks logs that leave the cache during the call that found them: the store must
// read them again.
func TestCacheTooSmallForACall(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir(), CacheBytes: 1})
	var stripe []capping.UserID // all in one stripe
	for user := capping.UserID(0); len(stripe) < 4000; user++ {
		if s.runs.stripe(user) == 3 {
			stripe = append(stripe, user)
		}
	}
	last := stripe[len(stripe)-200:]
	_, err := filterAll(s, "first", last...)
	require.NoError(t, err)
	_, cached := s.cacheOf(last[0]).Log(last[0])
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
