package redisstore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// The union in Go and the script implement the same rule. TestScriptAgreesWithUnionForLong has more rounds.
func TestScriptAgreesWithUnion(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(t *testing.T, l layout) { scriptAgreesWithUnion(t, l, 1) })
}

// scriptAgreesWithUnion compares union and script in rounds of 100 random cases.
func scriptAgreesWithUnion(t *testing.T, l layout, rounds int) {
	c := newClock()
	s := openShared(t, l.with(func(config *Config) { config.Clock = c.now }))
	s.fleet.close() // the retention in force is the test's own
	next := 0
	full := fullLog()
	check := func(r *rapid.T) {
		const now = capping.Instant(100_000_000_000)
		c.set(now)
		retention := near(r, 1, 50, "retention")
		s.fleet.longest.Store(retention + near(r, 0, 20, "longer in force"))
		kinds := rapid.SliceOfN(logGen(now), 1, 8).Draw(r, "kinds")
		if rapid.IntRange(0, 9).Draw(r, "full") == 0 {
			kinds = append(kinds, full.Live(now-capping.Instant(rapid.IntRange(0, 1200).Draw(r, "of the full one"))))
		}
		draw := func(name string) capping.Log { return rapid.SampledFrom(kinds).Draw(r, name) }
		m := &capping.Merge{Retention: time.Duration(retention) * time.Millisecond, Counted: rapid.Bool().Draw(r,
			"counted")}
		var logs []capping.Log
		m.Users = l.neighbours(next, rapid.IntRange(1, 40).Draw(r, "users"))
		for range m.Users {
			m.Logs = append(m.Logs, draw("other"))
			logs = append(logs, draw("log"))
		}
		putAll(t, s, m.Users, logs)
		next++
		merged := make([]capping.Merged, len(m.Users))
		require.NoError(r, s.Merge(t.Context(), m, merged))
		forgotten := now - capping.Instant(max(s.fleet.longest.Load(), retention))
		for i, log := range logs {
			want, added := log.Union(nil, m.Logs[i], forgotten)
			if added == 0 {
				want = log
			}
			stored, err := s.Log(t.Context(), m.Users[i])
			require.NoError(r, err)
			require.Equal(r, append(capping.Log{}, want...), append(capping.Log{}, stored...), "log %v and %v",
				log.Entries(), m.Logs[i].Entries())
			require.Equal(r, capping.MergedOf(added), merged[i])
		}
	}
	for range rounds {
		rapid.Check(t, check)
	}
}

// fullLog returns a log with the maximum number of entries of one channel, one per millisecond up to the check's now.
func fullLog() (log capping.Log) {
	for i := range capping.LogBound {
		at := capping.Instant(100_000_000_000 - capping.LogBound + i)
		log = log.Record(nil, capping.Entry{At: at, Channel: 9, Token: capping.Token{8, byte(i >> 8), byte(i)}}, 0)
	}
	return log
}

// A merged key lives as long as its newest entry is kept, and no longer than a recording call allows.
func TestMergedKeysExpire(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	const keep = 7 * 24 * time.Hour
	b := batchOf("now", []capping.UserID{5})
	b.Retention = keep
	h := script.Header{Forget: max(keep, s.Retention()), Skew: s.config.ClockSkew}
	life := time.Duration(h.Life()) * time.Millisecond
	now := capping.InstantOf(time.Now())
	bring := func(user capping.UserID, age time.Duration, token byte) {
		t.Helper()
		m := &capping.Merge{Users: []capping.UserID{user}, Retention: keep, Logs: []capping.Log{
			capping.Log(nil).Record(nil, capping.Entry{At: now - capping.Instant(age.Milliseconds()), Channel: 1,
				Token: capping.Token{token}}, 0),
		}}
		require.NoError(t, s.Merge(t.Context(), m, make([]capping.Merged, 1)))
	}
	ttl := func() time.Duration {
		t.Helper()
		partition, key, _ := s.key(5)
		left, err := admin(t, s.top.Route(partition).Addr()).PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		return left
	}
	bring(5, 6*24*time.Hour, 1)
	require.InDelta(t, life-6*24*time.Hour, ttl(), float64(time.Minute))
	bring(6, 6*24*time.Hour-time.Minute, 1) // within the slack: as it is
	require.InDelta(t, life-6*24*time.Hour, ttl(), float64(time.Minute))
	bring(6, 24*time.Hour, 2)
	require.InDelta(t, life-24*time.Hour, ttl(), float64(time.Minute))
	filter(t, s, b)
	require.InDelta(t, life, ttl(), float64(time.Minute))
	bring(7, 3*24*time.Hour, 1)
	require.InDelta(t, life, ttl(), float64(time.Minute))

	// What has no note of its TTL is not shortened.
	partition, key, _ := s.key(5)
	require.NoError(t, s.top.Route(partition).Client().HDel(t.Context(), key, "").Err())
	bring(8, 3*24*time.Hour, 1)
	require.InDelta(t, life, ttl(), float64(time.Minute))
}

// Merged sends are counted once, for the named messages.
func TestMergedSendsAreCounted(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	now := capping.InstantOf(time.Now())
	named, plain := capping.Message{Namespace: "growth", ID: "a"}, capping.Message{ID: "b"}
	m := &capping.Merge{Retention: time.Hour, Messages: []capping.Message{named, plain}, Counted: true}
	want := map[messages.Key]int64{}
	for user := range capping.UserID(3000) {
		var log capping.Log
		for i, message := range []capping.Message{named, plain, {ID: "not counted"}} {
			if channel := capping.Channel(rng.IntN(3)); channel > 0 {
				log = log.Record(nil, capping.Entry{At: now - 1000 + capping.Instant(i), Channel: channel,
					Token: message.Token()}, 0)
				want[messages.Key{Message: message, Channel: channel}]++
			}
		}
		m.Users, m.Logs = append(m.Users, 7*user), append(m.Logs, log)
	}
	for range 3 {
		require.NoError(t, s.Merge(t.Context(), m, make([]capping.Merged, len(m.Users))))
		for _, message := range m.Messages {
			found, err := s.MessageCounts(t.Context(), message)
			require.NoError(t, err)
			require.Len(t, found, 2)
			for _, one := range found {
				require.Equal(t, messages.Sends{Recorded: want[one.Key]}, one.Sends)
			}
		}
		m.Messages[0], m.Messages[1] = m.Messages[1], m.Messages[0]
	}
	found, err := s.MessageCounts(t.Context(), capping.Message{ID: "not counted"})
	require.NoError(t, err)
	require.Empty(t, found)
}
