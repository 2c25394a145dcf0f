package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testkit"
)

func TestFilterDecidesRecordsAndReplays(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openShared(t, func(config *Config) { config.Clock = c.now })
	users := make([]capping.UserID, 5000)
	for i := range users {
		users[i] = capping.UserID(i * 27)
	}
	users[0], users[1] = 4294967295, 0
	daily := rolling(1, 24*time.Hour)

	first := filter(t, s, batchOf("a", users, daily))
	require.Equal(t, len(users), count(first, capping.Allowed))
	at := c.instant()
	require.Equal(t, len(users), count(filter(t, s, batchOf("a", users, daily)), capping.Replayed))

	c.advance(time.Hour)
	for _, v := range filter(t, s, batchOf("b", users, daily)) {
		require.Equal(t, capping.Verdict{Outcome: capping.Denied, FreesAt: at + 24*3600*1000}, v)
	}
	c.set(at + 24*3600*1000 - 1)
	require.Equal(t, len(users), count(filter(t, s, batchOf("b", users, daily)), capping.Denied))
	c.set(at + 24*3600*1000)
	require.Equal(t, len(users), count(filter(t, s, batchOf("b", users, daily)), capping.Allowed))

	for _, user := range []capping.UserID{0, 4294967295, users[77]} {
		log, err := s.Log(t.Context(), user)
		require.NoError(t, err)
		require.Equal(t, []capping.Entry{
			{At: at, Token: capping.Message{ID: "a"}.Token()},
			{At: at + 24*3600*1000, Token: capping.Message{ID: "b"}.Token()},
		}, log.Entries())
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) { // no call waits for them for long
		names, err := s.Messages(t.Context(), []capping.Token{capping.Message{ID: "a"}.Token(),
			capping.Message{ID: "b"}.Token(),
			capping.Message{ID: "c"}.Token()})
		require.NoError(c, err)
		require.Equal(c, map[capping.Token]capping.Message{capping.Message{ID: "a"}.Token(): {ID: "a"},
			capping.Message{ID: "b"}.Token(): {ID: "b"}}, names)
	}, testkit.Patience, 10*time.Millisecond)
	storetest.IsOK(t, s)
}

func TestReleaseAndErase(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	users := []capping.UserID{1, 2, 3, 300, 70000}
	filter(t, s, batchOf("a", users))
	filter(t, s, batchOf("b", users[:2]))
	released := make([]capping.Released, 6)
	require.NoError(t, s.Release(t.Context(), capping.Message{ID: "a"}.Token(), 0, append(users, 9), released))
	D, A := capping.ReleaseDone, capping.ReleaseAbsent
	require.Equal(t, []capping.Released{D, D, D, D, D, A}, released)
	clear(released)
	require.NoError(t, s.Release(t.Context(), capping.Message{ID: "a"}.Token(), 0, append(users, 9), released))
	require.Equal(t, []capping.Released{A, A, A, A, A, A}, released)

	log, err := s.Log(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, log.Entries(), 1)
	require.NoError(t, s.Erase(t.Context(), 1))
	require.NoError(t, s.Erase(t.Context(), 1))
	log, err = s.Log(t.Context(), 1)
	require.NoError(t, err)
	require.Empty(t, log)
	for user, want := range map[capping.UserID]int64{2: 1, 300: 0, 70000: 0} {
		_, key, _ := s.key(user)
		exists, err := owner(t, s, user).Exists(t.Context(), key).Result()
		require.NoError(t, err)
		require.Equal(t, want, exists, "an emptied bucket is no key any more: user %d", user)
	}
}
