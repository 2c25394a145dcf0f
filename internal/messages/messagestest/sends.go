package messagestest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

func unknown(f *fixture) {
	require.Empty(f, f.campaigns(f.key("", 1).Message))
	require.Empty(f, f.campaigns(capping.Message{}))
}

func retry(f *fixture) {
	key, users := f.key("", 1), f.users(3000)
	f.filter(key, 0, users[:1000]...)
	f.filter(key, 0, users[:1000]...)
	f.filter(key, 0, users...)
	f.filter(key, 0, users...)
	require.Equal(f, messages.Sends{Recorded: 3000}, f.campaign(key).Sends)
}

func release(f *fixture) {
	key, users := f.key("", 1), f.users(3000)
	f.filter(key, 0, users...)
	f.release(key.Message, 1, users[:1000]...)
	f.release(key.Message, 1, users[:1000]...)
	f.release(key.Message, 2, users...)
	require.Equal(f, messages.Sends{Recorded: 3000, Released: 1000}, f.campaign(key).Sends)
	f.filter(key, 0, users...) // a user whose send was released may receive another send
	f.release(key.Message, 0, users...)
	require.Equal(f, messages.Sends{Recorded: 4000, Released: 4000}, f.campaign(key).Sends)
}

func denial(f *fixture) {
	first, second, users := f.key("", 1), f.key("", 1), f.users(500)
	f.filter(first, 1, users[:200]...)
	f.filter(second, 1, users...)
	f.filter(second, 1, users...)
	require.Equal(f, messages.Sends{Recorded: 300}, f.campaign(second).Sends)
	all := f.key("", 1)
	f.filter(all, 1, users...)
	require.Equal(f, messages.Sends{}, f.campaign(all).Sends, "nobody was allowed, and it is counted")
}

func identities(f *fixture) {
	users, message := f.users(700), f.key("", 0).Message
	n := 100
	for _, namespace := range []string{"", "growth", "crm"} {
		for _, channel := range []capping.Channel{0, 1, 255} {
			key := messages.Key{Message: capping.Message{Namespace: namespace, ID: message.ID}, Channel: channel}
			f.filter(key, 0, users[:n]...)
			n += 50
		}
	}
	f.agree()
	f.release(capping.Message{Namespace: "growth", ID: message.ID}, 255, users...)
	f.agree()
	f.release(message, 0, users...)
	f.agree()
	require.Len(f, f.campaigns(message), 3)
}

func preview(f *fixture) {
	key, users := f.key("", 1), f.users(200)
	b := f.batch(key, 0, users)
	b.Record = false
	require.NoError(f, f.store.Filter(context.Background(), b, make([]capping.Verdict, len(users))))
	require.Empty(f, f.campaigns(key.Message))
}

func erased(f *fixture) {
	key, users := f.key("", 1), f.users(200)
	f.filter(key, 0, users...)
	for _, user := range users[:10] {
		f.erase(user)
	}
	require.Equal(f, messages.Sends{Recorded: 200}, f.campaign(key).Sends)
	f.filter(key, 0, users...) // an erased user counts as a new user
	require.Equal(f, messages.Sends{Recorded: 210}, f.campaign(key).Sends)
}

// The test "singles" makes 2500 filter calls with a single user each for one message. All recorded sends must be
// counted.
func singles(f *fixture) {
	key, users := f.key("", 1), f.users(2600)
	f.filter(key, 0, users[:100]...)
	for _, user := range users[100:] {
		f.filter(key, 0, user)
	}
	require.Equal(f, messages.Sends{Recorded: 2600}, f.campaign(key).Sends)
}

// The test "brought" checks that the store counts sends merged from another store as sends, but not as decisions.
// Before the first call about a message with merged sends, the store knows only the number of the sends and the time of
// the merge.
func brought(f *fixture) {
	merger, ok := capping.As[capping.Merger](f.store)
	require.True(f, ok)
	begin, key, uncounted, users := f.now(), f.key("growth", 3), f.key("", 1), f.users(300)
	m := &capping.Merge{Users: users, Retention: retention, Messages: []capping.Message{key.Message}, Counted: true}
	for range users {
		log := capping.Log(capping.Log(nil).Record(nil, capping.Entry{At: begin - 2000, Channel: 3,
			Token: key.Message.Token()}, -1))
		m.Logs = append(m.Logs, log.Record(nil, capping.Entry{At: begin - 1000, Channel: 1,
			Token: uncounted.Message.Token()}, -1))
	}
	mine := func(k messages.Key) bool { return k.Message == key.Message || k.Message == uncounted.Message }
	for range 2 { // a repeated merge changes nothing
		require.NoError(f, merger.Merge(context.Background(), m, make([]capping.Merged, len(users))))
		page, err := f.store.ListMessages(context.Background(), messages.Query{Since: begin, Max: 10, Match: mine})
		require.NoError(f, err)
		require.Nil(f, page.Next)
		found := page.Found
		require.Len(f, found, 1)
		require.Equal(f, key, found[0].Key)
		require.Equal(f, messages.Sends{Recorded: 300}, found[0].Sends)
		require.GreaterOrEqual(f, found[0].Last, begin)
		found[0].Last = 0
		require.Equal(f, messages.Answers{}, found[0].Answers)
		f.clock.Advance(time.Minute)
	}
	f.add(messages.Delta{Key: key, Answers: some(f.now(), 20, "v1")})
	answered := f.campaign(key)
	require.Equal(f, int64(1), answered.Calls)
	require.Equal(f, f.now(), answered.First)
	require.Equal(f, f.now(), answered.Last)
}

func releaseOfUncounted(f *fixture) {
	key, users := f.key("", 1), f.users(200)
	f.release(key.Message, 0, users...)
	f.release(key.Message, 1, users...)
	require.Empty(f, f.campaigns(key.Message))
}

// The test "concurrent" checks that the store counts each recorded send once, although several callers make calls at
// the same time.
func concurrent(f *fixture) {
	key, users := f.key("", 1), f.users(20_000)
	var calls sync.WaitGroup
	for caller := range 4 {
		calls.Go(func() {
			for first := 0; first < len(users); first += 5000 {
				part := users[(first+caller*5000)%len(users):][:5000]
				verdicts := make([]capping.Verdict, len(part))
				if f.store.Filter(context.Background(), f.batch(key, 0, part), verdicts) != nil {
					return
				}
			}
		})
	}
	calls.Wait()
	require.Equal(f, messages.Sends{Recorded: 20_000}, f.campaign(key).Sends)
}
