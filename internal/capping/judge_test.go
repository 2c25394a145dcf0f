package capping_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

// plainStore is a minimal store: a map of logs under one lock. With plainStore the store suite and its
// simple model test only Judge and Log.
type plainStore struct {
	mu     sync.Mutex
	clock  func() time.Time
	memory *capping.MessageMemory
	logs   map[capping.UserID]capping.Log
	ids    map[capping.Token]capping.Message
}

var (
	_ capping.Store  = (*plainStore)(nil)
	_ capping.Merger = (*plainStore)(nil)
)

func TestJudgeByTheStoreSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(_ *testing.T, clock func() time.Time) capping.Store {
		return &plainStore{
			clock: clock, memory: capping.NewMessageMemory(clock),
			logs: make(map[capping.UserID]capping.Log), ids: make(map[capping.Token]capping.Message),
		}
	})
}

func (s *plainStore) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	if err := b.Check(verdicts); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), capping.CheckCaller(ctx)); err != nil {
		return err
	}
	now := capping.InstantOf(s.clock())
	if b.At != 0 {
		now = b.At
	}
	if s.memory.Keep(b) {
		s.ids[b.Token] = b.Message
	}
	horizon := b.Horizon(now)
	for i, user := range b.Users {
		verdicts[i] = capping.Judge(s.logs[user], b.Channel, b.Token, b.Rules[b.Groups[i]], now, horizon)
		if b.Record && verdicts[i].Outcome == capping.Allowed {
			entry := capping.Entry{At: now, Channel: b.Channel, Token: b.Token}
			s.logs[user] = s.logs[user].Record(nil, entry, horizon)
		}
	}
	return nil
}

func (s *plainStore) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	if err := capping.CheckRelease(token, users, released); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), capping.CheckCaller(ctx)); err != nil {
		return err
	}
	for i, user := range users {
		log, found := s.logs[user].Release(nil, channel, token, capping.Period{})
		s.logs[user], released[i] = log, capping.ReleaseAbsent
		if found {
			released[i] = capping.ReleaseDone
		}
	}
	return nil
}

func (s *plainStore) Erase(ctx context.Context, user capping.UserID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), capping.CheckCaller(ctx)); err != nil {
		return err
	}
	delete(s.logs, user)
	return nil
}

func (s *plainStore) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[user], ctx.Err()
}

func (s *plainStore) Messages(_ context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error) {
	found := make(map[capping.Token]capping.Message)
	for _, token := range tokens {
		if message, ok := s.ids[token]; ok {
			found[token] = message
		}
	}
	return found, nil
}

func (s *plainStore) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	if err := m.Check(merged); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	horizon := capping.InstantOf(s.clock()) - capping.Instant(m.Retention.Milliseconds())
	for i, user := range m.Users {
		log, added := s.logs[user].Union(nil, m.Logs[i], horizon)
		s.logs[user], merged[i] = log, capping.MergedOf(added)
	}
	for _, message := range m.Messages {
		s.ids[message.Token()] = message
	}
	return nil
}

func (s *plainStore) Health(context.Context) capping.Health {
	return capping.Health{Kind: "embedded", State: "ok"}
}

func (s *plainStore) ClockTolerance() time.Duration { return 0 }

func (s *plainStore) Close() error { return nil }

// logOf returns a log with the sends a, b, c … on channel 1 at the given instants.
func logOf(instants ...capping.Instant) (log capping.Log) {
	for i, at := range instants {
		log = log.Record(nil, capping.Entry{At: at, Channel: 1, Token: letter(i)}, -1)
	}
	return log
}

func letter(i int) capping.Token { return capping.Message{ID: string(rune('a' + i))}.Token() }

func TestJudge(t *testing.T) {
	t.Parallel()
	const horizon = 100
	allowed, replayed := capping.Verdict{Outcome: capping.Allowed}, capping.Verdict{Outcome: capping.Replayed}
	denied := func(rule uint8, at capping.Instant) capping.Verdict {
		return capping.Verdict{Outcome: capping.Denied, Rule: rule, FreesAt: at}
	}
	hold := func(most int, length int64, channels ...capping.Channel) capping.Rule {
		return capping.Rule{Max: most, Hold: length, Channels: capping.ChannelSetOf(channels...)}
	}
	period := func(most int, start, until capping.Instant) capping.Rule {
		return capping.Rule{Max: most, Start: start, Until: until}
	}
	for _, c := range []struct {
		name  string
		log   capping.Log
		token capping.Token // on channel 1, like the sends of the log
		rules []capping.Rule
		now   capping.Instant
		want  capping.Verdict
	}{
		{"no log, no rule", nil, letter(9), nil, 1000, allowed},
		{"no log", nil, letter(9), []capping.Rule{hold(1, 50)}, 1000, allowed},
		{"a millisecond before the window ends", logOf(951), letter(9), []capping.Rule{hold(1, 50)}, 1000,
			denied(0, 1001)},
		{"when the window ends", logOf(950), letter(9), []capping.Rule{hold(1, 50)}, 1000, allowed},
		{"a send of this very millisecond", logOf(1000), letter(9), []capping.Rule{hold(1, 50)}, 1000, denied(0, 1050)},
		{"a send stamped later than now, by a clock set back", logOf(1200), letter(9), []capping.Rule{hold(1, 50)},
			1000, denied(0, 1250)},
		{"below max", logOf(980, 990), letter(9), []capping.Rule{hold(3, 50)}, 1000, allowed},
		{"at max: the oldest frees it", logOf(980, 985, 990), letter(9), []capping.Rule{hold(3, 50)}, 1000,
			denied(0, 1030)},
		{"above max: the max-th newest frees it", logOf(970, 980, 985, 990), letter(9), []capping.Rule{hold(2, 50)},
			1000, denied(0, 1035)},
		{"max 0", nil, letter(9), []capping.Rule{hold(0, 50)}, 1000, denied(0, capping.Never)},
		{"max 0 and a longer denial", logOf(999), letter(9), []capping.Rule{hold(1, 500), hold(0, 5)}, 1000,
			denied(1, capping.Never)},
		{"the retried send", logOf(980, 990), letter(0), []capping.Rule{hold(1, 50)}, 1000, replayed},
		{"the retried send, max 0", logOf(980), letter(0), []capping.Rule{hold(0, 50)}, 1000, replayed},
		{"no message is no retry", logOf(980), capping.Token{}, []capping.Rule{hold(1, 50)}, 1000, denied(0, 1030)},
		{"no message is no retry of no message", capping.Log(nil).Record(nil, capping.Entry{At: 980}, 0),
			capping.Token{}, []capping.Rule{hold(1, 50)}, 1000, denied(0, 1030)},
		{"at the horizon: forgotten", logOf(100), letter(0), []capping.Rule{hold(1, 5000)}, 1000, allowed},
		{"after the horizon: remembered", logOf(101), letter(0), []capping.Rule{hold(1, 5000)}, 1000, replayed},
		{"after the horizon: counted", logOf(100, 101), letter(9), []capping.Rule{hold(2, 5000)}, 1000, allowed},
		{"another channel does not count", logOf(990), letter(9), []capping.Rule{hold(1, 50, 2, 3)}, 1000, allowed},
		{"one channel of the limit's", logOf(990), letter(9), []capping.Rule{hold(1, 50, 1, 255)}, 1000,
			denied(0, 1040)},
		{"before the period", logOf(899), letter(9), []capping.Rule{period(1, 900, 1100)}, 1000, allowed},
		{"the period's first millisecond", logOf(900), letter(9), []capping.Rule{period(1, 900, 1100)}, 1000,
			denied(0, 1100)},
		{"the later of two", logOf(990), letter(9), []capping.Rule{hold(1, 50), period(1, 900, 1100)}, 1000,
			denied(1, 1100)},
		{"the first of equals", logOf(990), letter(9), []capping.Rule{hold(1, 50), hold(1, 50)}, 1000, denied(0, 1040)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := string(c.log)
			require.Equal(t, c.want, capping.Judge(c.log, 1, c.token, c.rules, c.now, horizon))
			require.Equal(t, before, string(c.log), "it changes nothing")
		})
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	log := logOf(100, 200, 200, 300)
	for name, c := range map[string]struct {
		rule capping.Rule
		want int
	}{
		"all":          {capping.Rule{Hold: 300}, 4},
		"half-open":    {capping.Rule{Hold: 200}, 3},
		"one":          {capping.Rule{Hold: 1}, 1},
		"channel":      {capping.Rule{Hold: 300, Channels: capping.ChannelSetOf(2)}, 0},
		"period":       {capping.Rule{Start: 200, Until: 900}, 3},
		"empty period": {capping.Rule{Start: 301, Until: 900}, 0},
	} {
		require.Equal(t, c.want, c.rule.Count(log, 300), name)
	}
}

var benchVerdict capping.Verdict

// TestJudgeByChannel checks that the same message on another channel, or without a channel, is a different
// send.
func TestJudgeByChannel(t *testing.T) {
	t.Parallel()
	log := logOf(980, 985, 990)
	rules := []capping.Rule{{Max: 3, Hold: 50}}
	denied := capping.Verdict{Outcome: capping.Denied, FreesAt: 1030}
	for channel, want := range map[capping.Channel]capping.Verdict{0: denied, 1: {Outcome: capping.Replayed}, 2: denied,
		255: denied} {
		require.Equal(t, want, capping.Judge(log, channel, letter(1), rules, 1000, 0), "channel %d", channel)
	}
	both := log.Record(nil, capping.Entry{At: 995, Channel: 2, Token: letter(1)}, 0)
	for channel, left := range map[capping.Channel]int{0: 2, 1: 3, 2: 3, 3: 4} {
		rest, released := capping.Log(both).Release(nil, channel, letter(1), capping.Period{})
		require.Equal(t, left, capping.Log(rest).Len(), "channel %d", channel)
		require.Equal(t, left < 4, released)
	}
}

// BenchmarkJudge judges logs of several lengths with a daily and a weekly limit, for a new and for a retried
// message.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{0, 1, 5, 20, 1000} {
		var log capping.Log
		for i := range n {
			log = log.Record(nil, capping.Entry{At: capping.Instant(1000 + i),
				Token: capping.Message{ID: fmt.Sprint(i)}.Token()},
				0)
		}
		rules := []capping.Rule{{Max: 1000, Hold: 86_400_000}, {Max: 1000, Hold: 7 * 86_400_000}}
		for name, token := range map[string]capping.Token{"new": capping.Message{ID: "new"}.Token(),
			"retried": capping.Message{ID: fmt.Sprint(n - 1)}.Token()} {
			b.Run(fmt.Sprintf("%d entries/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					benchVerdict = capping.Judge(log, 0, token, rules, 5000, 0)
				}
			})
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	log := logOf(100, 200, 300, 400, 500)
	entry := capping.Entry{At: 600, Channel: 1, Token: letter(9)}
	buffer := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buffer = log.Record(buffer[:0], entry, 150)
	}
}

func BenchmarkDistinct(b *testing.B) {
	users, scratch := make([]capping.UserID, 100_000), make([]capping.UserID, 100_000)
	for i := range users {
		users[i] = capping.UserID(i*2654435761) % 4_000_000
	}
	b.ReportAllocs()
	for b.Loop() {
		copy(scratch, users)
		capping.Distinct(scratch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
}

func TestDecidingDoesNotAllocate(t *testing.T) {
	log, buffer := logOf(100, 200, 300), make([]byte, 0, 256)
	rules := []capping.Rule{{Max: 5, Hold: 1000}, {Max: 5, Start: 50, Until: 900, Channels: capping.ChannelSetOf(1, 2)}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		benchVerdict = capping.Judge(log, 0, letter(9), rules, 400, 0)
		buffer = log.Record(buffer[:0], capping.Entry{At: 400, Token: letter(9)}, 0)
		buffer, _ = log.Release(buffer[:0], 0, letter(1), capping.Period{})
	}))
}
