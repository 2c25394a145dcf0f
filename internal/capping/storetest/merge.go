package storetest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

func logOf(entries ...capping.Entry) (log capping.Log) {
	for _, e := range entries {
		log = log.Record(nil, e, -1)
	}
	return log
}

// The method "merge" imports logs through the store's Merge method, and checks that the store has merged the log of
// every user.
func (f *fixture) merge(m *capping.Merge) []capping.Merged {
	f.Helper()
	merger, ok := capping.As[capping.Merger](f.store)
	require.True(f, ok)
	merged := make([]capping.Merged, len(m.Users))
	require.NoError(f, merger.Merge(context.Background(), m, merged))
	for i, one := range merged {
		require.True(f, one.Done, "user %d", m.Users[i])
	}
	return merged
}

// mergeOf returns a request to the store's Merge method (import of recorded sends). The request has the same log for
// each of the users.
func mergeOf(users []capping.UserID, log capping.Log) *capping.Merge {
	m := &capping.Merge{Users: users, Retention: week, Logs: make([]capping.Log, len(users))}
	for i := range m.Logs {
		m.Logs[i] = log
	}
	return m
}

// The method "bring" imports the given entries into the user's log through the store's Merge method, and returns the
// number of added entries.
func (f *fixture) bring(user capping.UserID, entries ...capping.Entry) int {
	f.Helper()
	return int(f.merge(mergeOf([]capping.UserID{user}, logOf(entries...)))[0].Added)
}

// mergedCount checks that an imported (merged) send counts for limits from its own time, like a send that the store
// recorded itself.
func mergedCount(f *fixture) {
	user := f.user()
	now, token := f.clock.Instant(), capping.Message{ID: f.message()}.Token()
	require.Equal(f, 1, f.bring(user, capping.Entry{At: after(now, -day+time.Second), Channel: 3, Token: token}))
	f.denied(f.send(user, daily(1)), 0, after(now, time.Second))
	require.Zero(f, f.bring(user, capping.Entry{At: now, Channel: 3, Token: token})) // a known send keeps its time
	f.clock.Advance(time.Second - time.Millisecond)
	f.denied(f.send(user, daily(1)), 0, after(now, time.Second))
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, daily(1)))
	require.Equal(f, 1, f.bring(user, capping.Entry{At: after(now, -2*day), Channel: 4, Token: token}))
	require.Equal(f, capping.Denied, f.send(user, weekly(3)).Outcome)
	f.allowed(f.send(user, weekly(4)))
}

// mergedReplays checks that a filter call returns Replayed for a message whose send was imported (merged) before.
func mergedReplays(f *fixture) {
	users, message := f.users(300), f.message()
	before := capping.Entry{At: after(f.clock.Instant(), -time.Hour), Channel: 2,
		Token: capping.Message{ID: message}.Token()}
	for i, one := range f.merge(mergeOf(users[:200], logOf(before))) {
		require.EqualValues(f, 1, one.Added, i)
	}
	verdicts := f.filter(on(f.batch(message, users, daily(1)), 2))
	f.all(verdicts[:200], capping.Replayed)
	f.all(verdicts[200:], capping.Allowed)
	for i, one := range f.merge(mergeOf(users, logOf(before))) {
		require.Zero(f, one.Added, i)
	}
	for _, released := range f.release(message, users...) {
		require.Equal(f, capping.ReleaseDone, released)
	}
	require.Zero(f, f.live(users[0]))
	f.all(f.filter(on(f.batch(message, users, daily(1)), 1)), capping.Allowed)
	require.NoError(f, f.store.Erase(context.Background(), users[0]))
	require.Equal(f, 1, f.bring(users[0], before))
}

// mergedBounds checks that a merge adds no sends older than the retention (time for which the store keeps sends), and
// no sends beyond the log's maximum.
func mergedBounds(f *fixture) {
	user, now := f.user(), f.clock.Instant()
	entry := func(n int, age time.Duration) capping.Entry {
		return capping.Entry{At: after(now, -age), Channel: 1, Token: capping.Token{1, byte(n >> 8), byte(n)}}
	}
	require.Zero(f, f.bring(user, entry(0, week)))
	require.Zero(f, f.log(user).Len())
	require.Equal(f, 1, f.bring(user, entry(1, week), entry(2, week-time.Millisecond)))
	var full []capping.Entry
	for i := range capping.LogBound {
		full = append(full, entry(10+i, time.Duration(capping.LogBound-i)*time.Minute))
	}
	for _, want := range []int{capping.LogBound, 0} {
		require.Equal(f, want, f.bring(user, full...))
		require.Equal(f, logOf(full...), f.log(user))
		require.Zero(f, f.bring(user, entry(2, week-time.Millisecond),
			entry(9, time.Duration(capping.LogBound)*time.Minute)))
	}
	require.Equal(f, 2, f.bring(user, entry(7, time.Minute), capping.Entry{At: now, Channel: 2,
		Token: capping.Token{7}}, full[999]))
	require.Equal(f, capping.LogBound+1, f.log(user).Len())
}

// mergedLong imports (merges) long logs that have many channels and entries without tokens, and checks the result.
func mergedLong(f *fixture) {
	users, now := f.users(40), f.clock.Instant()
	var entries []capping.Entry
	for i := range 700 {
		entries = append(entries, capping.Entry{At: after(now, time.Duration(i-800)*time.Second),
			Channel: capping.Channel(i % 256)})
	}
	for _, part := range []int{100, 600, 100, 700} {
		from := map[int]int{100: 300}[part]
		f.merge(mergeOf(users, logOf(entries[from:min(from+part, 700)]...)))
	}
	for _, user := range users {
		require.Equal(f, entries, f.log(user).Entries())
	}
	require.Equal(f, 1, f.bring(users[0], capping.Entry{At: entries[0].At, Channel: 1}))
}

func mergedMessages(f *fixture) {
	plain, named := capping.Message{ID: f.message()}, capping.Message{Namespace: "growth", ID: f.message()}
	m := mergeOf(f.users(2), logOf(capping.Entry{At: f.clock.Instant(), Channel: 1, Token: plain.Token()}))
	m.Messages = []capping.Message{plain, named}
	f.merge(m)
	found, err := f.store.Messages(context.Background(), []capping.Token{plain.Token(), named.Token()})
	require.NoError(f, err)
	require.Equal(f, map[capping.Token]capping.Message{plain.Token(): plain, named.Token(): named}, found)
	require.Empty(f, f.merge(&capping.Merge{Retention: week, Messages: m.Messages}))
}

func malformedMerge(f *fixture) {
	merger, ok := capping.As[capping.Merger](f.store)
	require.True(f, ok)
	user := f.user()
	now := capping.Entry{At: f.clock.Instant(), Channel: 1, Token: capping.Token{1}}
	for name, spoil := range map[string]func(m *capping.Merge){
		"too few logs":    func(m *capping.Merge) { m.Logs = nil },
		"half an entry":   func(m *capping.Merge) { m.Logs[0] = m.Logs[0][:18] },
		"not in order":    func(m *capping.Merge) { m.Logs[0] = append(m.Logs[0][12:], m.Logs[0][:12]...) },
		"after all time":  func(m *capping.Merge) { m.Logs[0] = logOf(capping.Entry{At: capping.Never}) },
		"no retention":    func(m *capping.Merge) { m.Retention = 0 },
		"a nameless text": func(m *capping.Merge) { m.Messages = []capping.Message{{Namespace: "growth"}} },
	} {
		m := mergeOf([]capping.UserID{user}, logOf(capping.Entry{At: now.At - 1}, now))
		spoil(m)
		merged := make([]capping.Merged, 1)
		require.Error(f, merger.Merge(context.Background(), m, merged), name)
		require.False(f, merged[0].Done, name)
		require.Zero(f, f.log(user).Len(), name)
	}
	f.allowed(f.send(user, daily(1)))
}

// mergesBesideCalls runs merges and filter calls for the same users concurrently. The function mergesBesideCalls checks
// that no send is stored twice, that filter calls exceed no limit, and that no merged send is lost.
func mergesBesideCalls(f *fixture) {
	users, at := f.users(600), f.clock.Instant()
	message := f.message()
	var allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 5 {
				entry := capping.Entry{At: after(at, -time.Hour-time.Duration(n)*time.Minute), Channel: 2,
					Token: capping.Token{byte(n), 1}}
				f.merge(mergeOf(users, logOf(entry)))
			}
		})
		all.Go(func() {
			b := on(f.batch(message, users, rolling("push", 1, day, 1)), 1)
			if i%2 == 1 {
				b = on(f.batch(f.message(), users, rolling("push", 1, day, 1)), 1)
			}
			verdicts := f.filter(b)
			for _, v := range verdicts {
				if v.Outcome == capping.Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(f, len(users), allowed.Load())
	for _, user := range users {
		log := f.log(user)
		require.Equal(f, 6, log.Len())
		for n := range 5 {
			require.Equal(f, capping.Token{byte(4 - n), 1}, log.Entry(n).Token)
		}
	}
}

// mergeStep is one kind of step in a random history of calls: the import of random sends into the store.
func (h *history) mergeStep() {
	m := &capping.Merge{Retention: week}
	for _, user := range h.users {
		var entries []capping.Entry
		var sends []send
		for range rapid.IntRange(0, 3).Draw(h.rt, "merged") {
			at := h.clock.Now().Add(-rapid.SampledFrom(pauses).Draw(h.rt, "ago"))
			s := send{at, rapid.SampledFrom([]capping.Channel{0, 1, 2}).Draw(h.rt, "merged channel"),
				rapid.SampledFrom(h.messages).Draw(h.rt, "merged message")}
			same := func(o send) bool { return o.channel == s.channel && o.message == s.message }
			if !slices.ContainsFunc(sends, same) {
				sends = append(sends, s)
			}
		}
		slices.SortStableFunc(sends, func(a, b send) int { return a.at.Compare(b.at) })
		for _, s := range sends {
			entries = append(entries, capping.Entry{At: capping.InstantOf(s.at), Channel: s.channel,
				Token: s.message.Token()})
		}
		m.Users, m.Logs = append(m.Users, user), append(m.Logs, logOf(entries...))
		h.model.unite(user, sends, h.clock.Now())
	}
	h.fixture.merge(m)
}

// The method "unite" adds imported sends to the naive model, each at its own time. The method "unite" leaves out sends
// that the model already has, and sends older than the retention (time for which the store keeps sends).
func (m *model) unite(user capping.UserID, sends []send, at time.Time) {
	kept := m.remembered(user, at)
	for _, s := range sends {
		if at.Sub(s.at) < m.retention && !slices.ContainsFunc(kept, func(o send) bool {
			return o.channel == s.channel &&
				o.message == s.message
		}) {
			m.sends[user] = append(m.sends[user], s)
		}
	}
	slices.SortStableFunc(m.sends[user], func(a, b send) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
}
