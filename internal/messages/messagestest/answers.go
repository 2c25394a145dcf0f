package messagestest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

// some returns example answers of one call.
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

// dense returns the answers without map entries that are zero.
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

// withheld checks a message of which every user was withheld: no filter call of the store names it.
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
	found, _, err := f.store.ListMessages(context.Background(), 0, 10, func(k messages.Key) bool { return k == key })
	require.NoError(f, err)
	require.Len(f, found, 1)
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
		campaigns, more, err := f.store.ListMessages(context.Background(), since, most, match)
		require.NoError(f, err)
		for _, c := range campaigns {
			require.Equal(f, int64(100), c.Asked)
			found = append(found, c.Key)
		}
		return found, more
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
	campaigns, _, err := f.store.ListMessages(context.Background(), begin, 1, mine)
	require.NoError(f, err)
	require.Equal(f, keys[0], campaigns[0].Key, "called last")
	require.Equal(f, int64(2), campaigns[0].Calls)
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
