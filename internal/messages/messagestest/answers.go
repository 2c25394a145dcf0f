package messagestest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

// The function "some" returns example counts of the decisions of one call.
func some(at capping.Instant, asked int64, config string) messages.Answers {
	return messages.Answers{
		Calls: 1, Asked: asked, Allowed: asked / 2, Replayed: asked / 10, Unavailable: 1,
		Denied: map[string]int64{"daily": asked / 4, "suppressed": 3}, Suppressed: map[string]int64{"optout": 3},
		Shadow:   map[string]int64{"hourly": 2},
		Segments: map[string]messages.SegmentAnswers{"new": {Asked: asked, Allowed: asked / 2, Denied: asked/4 + 3}},
		First:    at, Last: at, Configs: []string{config},
	}
}

func answers(f *fixture) {
	key, other := f.key("growth", 1), f.key("", 0)
	f.filter(key, 0, f.users(100)...)
	at := f.now()
	f.add(messages.Delta{Key: key, Answers: some(at, 200, "v1")},
		messages.Delta{Key: other, Answers: some(at, 100, "v1")})
	f.clock.Advance(time.Minute)
	more := some(f.now(), 40, "v2")
	more.Denied = map[string]int64{"weekly per cent % and ü": 7}
	more.Segments = map[string]messages.SegmentAnswers{"none": {Asked: 40}, "new": {Allowed: 1}}
	f.add(messages.Delta{Key: key, Answers: more})
	f.add(messages.Delta{Key: key, Answers: some(f.now(), 0, "v1")})

	found := f.campaign(key)
	require.Equal(f, messages.Sends{Recorded: 100}, found.Sends, "answers are no sends")
	want := some(at, 200, "v1")
	want.Add(&more)
	last := some(f.now(), 0, "v1")
	want.Add(&last)
	require.LessOrEqual(f, found.First, want.First)
	require.GreaterOrEqual(f, found.Last, want.Last)
	found.First, found.Last = want.First, want.Last
	require.Equal(f, dense(want), dense(found.Answers))
	require.Equal(f, int64(100), f.campaign(other).Asked)
}

// The test "activity" checks that a store counts all decisions of an hour by channel, even if a call has only one user.
func activity(f *fixture) {
	at := f.now()
	one, two := some(at, 1, "v1"), some(at, 2, "v1")
	hour := messages.Activity(at.Time())
	for i, call := range []*messages.Answers{&one, &two, &one} {
		sum := messages.Answers{}
		sum.AddActivity(call, at.Time())
		f.add(messages.Delta{Key: messages.Key{Message: hour, Channel: capping.Channel(i % 2)}, Answers: sum})
	}
	found, err := f.store.MessageCounts(context.Background(), hour)
	require.NoError(f, err)
	require.Len(f, found, 2)
	all := messages.Answers{}
	for i := range found {
		all.Add(&found[i].Answers)
		require.Zero(f, found[i].Recorded)
	}
	require.Equal(f, int64(4), all.Asked)
	require.Equal(f, int64(3), all.Calls)
	require.Equal(f, int64(4), all.Segments[messages.ActivityPart(at.Time())].Asked)
}

// The function "dense" removes the map entries with count zero from a message's counts, and returns the counts.
func dense(a messages.Answers) messages.Answers {
	for _, counts := range []map[string]int64{a.Denied, a.Suppressed, a.Shadow} {
		for name, n := range counts {
			if n == 0 {
				delete(counts, name)
			}
		}
	}
	return a
}

func fewAnswers(f *fixture) {
	few, many := f.key("", 1), f.key("", 1)
	f.add(messages.Delta{Key: few, Answers: some(f.now(), capping.BulkUsers-1, "v1")},
		messages.Delta{Key: many, Answers: some(f.now(), capping.BulkUsers, "v1")})
	require.Empty(f, f.campaigns(few.Message))
	require.Equal(f, int64(capping.BulkUsers), f.campaign(many).Asked)
}

// The test "withheld" checks the counts of messages whose users are all denied without the store, for example by
// suppression.
func withheld(f *fixture) {
	key, mixed := f.key("growth", 1), f.key("growth", 1)
	answer := messages.Answers{Calls: 1, Asked: 3, First: f.now(), Last: f.now(), Configs: []string{"v1"},
		Denied: map[string]int64{"suppressed": 1, "holdout": 1, "quiet": 1}}
	other := answer
	other.Denied = map[string]int64{"suppressed": 2, "daily": 1}
	f.add(messages.Delta{Key: key, Answers: answer}, messages.Delta{Key: mixed, Answers: other})
	require.Equal(f, int64(3), f.campaign(key).Asked)
	require.Empty(f, f.campaigns(mixed.Message), "a filter call decides whether the store counts it")
	f.add(messages.Delta{Key: key, Answers: other})
	require.Equal(f, map[string]int64{"suppressed": 3, "holdout": 1, "quiet": 1, "daily": 1}, f.campaign(key).Denied)
	f.filter(key, 0, f.users(1)...)
	require.Equal(f, messages.Sends{Recorded: 1}, f.campaign(key).Sends, "later sends are counted")
	page, err := f.store.ListMessages(context.Background(), messages.Query{Max: 10,
		Match: func(k messages.Key) bool { return k == key }})
	require.NoError(f, err)
	require.Len(f, page.Found, 1)
}

func listed(f *fixture) {
	var keys []messages.Key
	begin := f.now()
	for i := range 12 {
		keys = append(keys, f.key([]string{"", "growth"}[i%2], capping.Channel(i%3)))
		f.clock.Advance(3 * time.Hour)
		f.add(messages.Delta{Key: keys[i], Answers: some(f.now(), 100, "v1")})
	}
	mine := func(key messages.Key) bool { return slices.Contains(keys, key) }
	list := func(since capping.Instant, most int, match func(messages.Key) bool) (found []messages.Key, more bool) {
		page, err := f.store.ListMessages(context.Background(), messages.Query{Since: since, Max: most, Match: match})
		require.NoError(f, err)
		for _, c := range page.Found {
			require.Equal(f, int64(100), c.Asked)
			found = append(found, c.Key)
		}
		return found, page.Next != nil
	}
	want := slices.Clone(keys)
	slices.Reverse(want)
	found, more := list(begin, 12, mine)
	require.Equal(f, want, found)
	require.False(f, more)
	found, more = list(begin, 5, mine)
	require.Equal(f, want[:5], found)
	require.True(f, more)
	found, _ = list(f.now()-capping.Instant((6*time.Hour).Milliseconds()), 100, mine)
	require.Equal(f, want[:3], found)
	found, more = list(begin, 3, func(key messages.Key) bool {
		return mine(key) && key.Message.Namespace == "growth" &&
			key.Channel == 1
	})
	require.Equal(f, []messages.Key{keys[7], keys[1]}, found)
	require.False(f, more)
	found, more = list(f.now()+1, 10, mine)
	require.Empty(f, found)
	require.False(f, more)
	f.add(messages.Delta{Key: keys[0], Answers: messages.Answers{Calls: 1, First: f.now(), Last: f.now() + 1}})
	page, err := f.store.ListMessages(context.Background(), messages.Query{Since: begin, Max: 1, Match: mine})
	require.NoError(f, err)
	require.Equal(f, keys[0], page.Found[0].Key, "called last")
	require.Equal(f, int64(2), page.Found[0].Calls)
}

// The test "paged" compares the pages of message lists with the sorted list of all messages, for queries of every kind.
func paged(f *fixture) {
	r := rand.New(rand.NewPCG(nextNames.Load(), 3))
	var all []messages.Candidate
	for i := range 90 {
		one := messages.Candidate{Key: f.key([]string{"", "growth"}[r.IntN(2)], capping.Channel(r.IntN(3))),
			Asked: []int64{100, 250, 1000 * (1 + r.Int64N(3))}[r.IntN(3)]}
		if i%10 > 0 {
			f.clock.Advance(time.Duration(r.IntN(40)) * time.Minute)
		}
		one.Last = f.now()
		f.add(messages.Delta{Key: one.Key, Answers: messages.Answers{Calls: 1, Asked: one.Asked, First: one.Last,
			Last: one.Last}})
		all = append(all, one)
	}
	for _, one := range all[:5] { // these messages are called again, much later
		f.clock.Advance(20 * time.Hour)
		f.add(messages.Delta{Key: one.Key, Answers: messages.Answers{Calls: 1, Asked: 7, First: f.now(),
			Last: f.now()}})
	}
	for i := range all[:5] {
		counted := f.campaign(all[i].Key)
		all[i].Last, all[i].Asked = counted.Last, counted.Asked
	}
	mine := map[messages.Key]bool{}
	for _, one := range all {
		mine[one.Key] = true
	}
	for range 60 {
		channel, least := capping.Channel(r.IntN(6)), []int64{0, 0, 250, 2000}[r.IntN(4)]
		q := messages.Query{Order: messages.Order(r.IntN(2)), Max: 1 + r.IntN(30), AtLeast: least,
			Match: func(k messages.Key) bool { return mine[k] && (channel > 2 || k.Channel == channel) }}
		if r.IntN(2) == 0 {
			q.Since = all[r.IntN(len(all))].Last
		}
		if r.IntN(2) == 0 {
			q.Until = all[r.IntN(len(all))].Last
		}
		var want, got []messages.Key
		for _, one := range q.Order.First(slices.Clone(all), len(all)) {
			if q.Match(one.Key) && q.Within(one.Last, one.Asked) {
				want = append(want, one.Key)
			}
		}
		for pages := 0; ; pages++ {
			page, err := f.store.ListMessages(context.Background(), q)
			require.NoError(f, err)
			require.LessOrEqual(f, len(page.Found), q.Max)
			for _, one := range page.Found {
				got = append(got, one.Key)
			}
			if q.After = page.Next; q.After == nil {
				break
			}
			require.Less(f, pages, len(all)+1)
		}
		require.Equal(f, want, got, "%+v", q)
	}
}

func hostile(f *fixture) {
	for _, id := range []string{"a/b", "../x", "%2F", "{x}", "a:b", "\x00", "a\nb", "🎉", "ü", "<script>",
		strings.Repeat("é", 64)} {
		key := f.key("", 1)
		key.Message.ID = (id + key.Message.ID)[:min(len(id+key.Message.ID), capping.MaxMessageID)]
		f.filter(key, 0, f.users(100)...)
		before := f.campaign(key).Calls
		f.add(messages.Delta{Key: key, Answers: some(f.now(), 100, "v1")})
		require.Equal(f, before+1, f.campaign(key).Calls, "%q", key.Message.ID)
	}
}
