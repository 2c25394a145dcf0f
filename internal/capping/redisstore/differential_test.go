package redisstore

import (
	"cmp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// unit keeps the windows of the random tests longer than the tests run, because keys expire by the server's clock and
// not by the tests' clock. near returns some units, or a time a millisecond beside them.
const unit = 60_000

func near(r *rapid.T, low, high int64, name string) int64 {
	return rapid.Int64Range(low, high).Draw(r, name)*unit + rapid.Int64Range(-1, 1).Draw(r, name+" beside")
}

// The judge in Go and the script implement the same rule. TestScriptAgreesWithJudgeForLong has more rounds.
func TestScriptAgreesWithJudge(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(t *testing.T, l layout) { scriptAgreesWithJudge(t, l, 1) })
}

// scriptAgreesWithJudge compares judge and script in rounds of 100 random cases.
func scriptAgreesWithJudge(t *testing.T, l layout, rounds int) {
	c := newClock()
	s := openShared(t, l.with(func(config *Config) { config.Clock = c.now }))
	s.fleet.close() // the retention in force is the test's own
	next := 0
	check := func(r *rapid.T) {
		const now = capping.Instant(100_000_000_000)
		c.set(now)
		retention := near(r, 1, 50, "retention")
		// Calls of one token on many channels, with and without a namespace: logs hold all of them.
		message := messageGen().Draw(r, "message")
		inForce := retention + near(r, 0, 20, "longer in force")
		s.fleet.longest.Store(inForce)
		groups := rapid.SliceOfN(rapid.SliceOfN(ruleGen(now), 0, 4), 1, 3).Draw(r, "groups")
		// Few different logs, so that neighbours often have the same one.
		logs := rapid.SliceOfN(rapid.SampledFrom(rapid.SliceOfN(logGen(now), 1, 12).Draw(r, "kinds")), 1, 40).Draw(r,
			"logs")
		users := l.neighbours(next, len(logs))
		next++ // no sweep of what another check left
		b := batchOf(message.ID, nil)
		b.Message, b.Token = message, message.Token()
		b.Rules = groups
		b.Channel = channelGen().Draw(r, "channel")
		b.Retention = time.Duration(retention) * time.Millisecond
		b.Record = rapid.Bool().Draw(r, "record")
		for i := range logs {
			b.Users = append(b.Users, users[i])
			b.Groups = append(b.Groups, uint8(rapid.IntRange(0, len(groups)-1).Draw(r, "group")))
		}
		putAll(t, s, b.Users, logs)
		verdicts := filter(t, s, b)
		forgotten := now - capping.Instant(max(inForce, retention))
		for i, log := range logs {
			want := capping.Judge(log, b.Channel, b.Token, groups[b.Groups[i]], now, b.Horizon(now))
			require.Equal(r, want, verdicts[i], "log %v", log.Entries())
			after := log
			if b.Record && want.Outcome == capping.Allowed {
				after = log.Record(nil, capping.Entry{At: now, Channel: b.Channel, Token: b.Token}, forgotten)
			}
			stored, err := s.Log(t.Context(), b.Users[i])
			require.NoError(r, err)
			if len(stored) == 0 && len(after.Live(forgotten)) == 0 {
				continue // a stamp ahead of the clock made a sweep due, which drops logs that hold nothing live
			}
			require.Equal(r, after.Entries(), stored.Entries())
		}
	}
	for range rounds {
		rapid.Check(t, check)
	}
}

func put(t *testing.T, s *Store, user capping.UserID, log capping.Log) {
	putAll(t, s, []capping.UserID{user}, []capping.Log{log})
}

// putAll stores the logs of users of one partition, in one round trip.
func putAll(t *testing.T, s *Store, users []capping.UserID, logs []capping.Log) {
	first, _, _ := s.key(users[0])
	_, err := s.top.Route(first).Client().Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, user := range users {
			if len(logs[i]) == 0 {
				continue
			}
			partition, key, field := s.key(user)
			require.Equal(t, first, partition)
			p.HSet(t.Context(), key, field, []byte(logs[i]))
			p.PExpire(t.Context(), key, time.Hour)
		}
		return nil
	})
	require.NoError(t, err)
}

// channelGen generates few channels, from both ends of a byte of bits and of the whole range.
func channelGen() *rapid.Generator[capping.Channel] {
	return rapid.SampledFrom([]capping.Channel{0, 9, 63, 255})
}

// messageGen generates few messages, some of them with the same id.
func messageGen() *rapid.Generator[capping.Message] {
	return rapid.Custom(func(r *rapid.T) capping.Message {
		return capping.Message{
			Namespace: rapid.SampledFrom([]string{"", "", "growth"}).Draw(r, "namespace"),
			ID:        "m" + strconv.Itoa(rapid.IntRange(1, 4).Draw(r, "id")),
		}
	})
}

func logGen(now capping.Instant) *rapid.Generator[capping.Log] {
	entry := rapid.Custom(func(r *rapid.T) capping.Entry {
		return capping.Entry{
			At:      now + capping.Instant(near(r, -60, 3, "age")),
			Channel: channelGen().Draw(r, "channel"),
			Token:   messageGen().Draw(r, "message").Token(),
		}
	})
	return rapid.Custom(func(r *rapid.T) (log capping.Log) {
		entries := rapid.SliceOfN(entry, 0, 9).Draw(r, "entries")
		slices.SortStableFunc(entries, func(a, b capping.Entry) int { return cmp.Compare(a.At, b.At) })
		for _, e := range entries {
			log = log.Record(nil, e, 0)
		}
		return log
	})
}

func ruleGen(now capping.Instant) *rapid.Generator[capping.Rule] {
	return rapid.Custom(func(r *rapid.T) capping.Rule {
		rule := capping.Rule{Max: rapid.IntRange(0, 5).Draw(r, "max")}
		if rapid.Bool().Draw(r, "rolling") {
			rule.Hold = near(r, 1, 70, "hold")
		} else {
			rule.Start = now - capping.Instant(near(r, 1, 60, "start"))
			rule.Until = now + capping.Instant(near(r, 1, 60, "until"))
		}
		if rapid.IntRange(0, 3).Draw(r, "limited") == 0 {
			rule.Channels = capping.ChannelSetOf(rapid.SliceOfN(channelGen(), 1, 3).Draw(r, "channels")...)
		}
		rule.Shadow = rapid.IntRange(0, 3).Draw(r, "shadow") == 0
		return rule
	})
}
