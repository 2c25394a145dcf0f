package messagestest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

func (f *fixture) setTitle(message capping.Message, title string) {
	f.Helper()
	require.NoError(f, f.store.SetTitle(context.Background(), message, title))
	found, err := f.store.Title(context.Background(), message)
	require.NoError(f, err)
	require.Equal(f, title, found)
}

// The test "titles" checks that a message has its title on every channel, and that no other message has this title.
func titles(f *fixture) {
	key := f.key("growth", 1)
	other, same := key, f.key("growth", 1)
	other.Channel, same.Message = 2, capping.Message{Namespace: "crm", ID: key.Message.ID}
	f.filter(key, 0, f.users(100)...)
	f.filter(same, 0, f.users(100)...)
	f.add(messages.Delta{Key: key, Answers: some(f.now(), 100, "v1")},
		messages.Delta{Key: other, Answers: some(f.now(), 100, "v1")},
		messages.Delta{Key: same, Answers: some(f.now(), 100, "v1")})
	require.Empty(f, f.campaign(key).Title)
	for _, title := range []string{"Spring 🎉 für alle", "Autumn", "", "t", `"<b>&` + "'"} {
		before := f.campaign(key)
		f.setTitle(key.Message, title)
		for _, one := range []messages.Key{key, other} {
			require.Equal(f, title, f.campaign(one).Title)
		}
		require.Empty(f, f.campaign(same).Title)
		before.Title = title
		require.Equal(f, before, f.campaign(key), "counts stay")
		page := f.page(messages.Query{Match: func(k messages.Key) bool { return k.Message.ID == key.Message.ID }})
		require.Len(f, page, 3)
		for _, one := range page {
			require.Equal(f, map[bool]string{true: title}[one.Message == key.Message], one.Title)
		}
	}
	f.add(messages.Delta{Key: key, Answers: some(f.now(), 100, "v1")})
	require.NotEmpty(f, f.campaign(key).Title, "answers leave the title")
}

// earlyTitle checks that a message can get a title before the first call about it.
func earlyTitle(f *fixture) {
	key, none := f.key("", 1), f.key("", 1)
	f.setTitle(none.Message, "")
	require.Empty(f, f.campaigns(none.Message))
	f.setTitle(key.Message, "Early")
	require.Empty(f, f.campaigns(key.Message), "there is nothing to count")
	require.Empty(f, f.page(messages.Query{Match: func(k messages.Key) bool { return k == key }}))
	f.filter(key, 0, f.users(1)...)
	f.add(messages.Delta{Key: key, Answers: some(f.now(), 1, "v1")})
	found := f.campaign(key)
	require.Equal(f, messages.Sends{Recorded: 1}, found.Sends)
	require.Equal(f, int64(1), found.Asked)
	require.Equal(f, "Early", found.Title)
}

// tooManyTitles checks that the store accepts titles for messages without calls only as long as it can remember these
// messages.
func tooManyTitles(f *fixture) {
	counted := f.key("", 1)
	f.add(messages.Delta{Key: counted, Answers: some(f.now(), capping.BulkUsers, "v1")})
	var small []messages.Delta
	for range 1000 {
		small = append(small, messages.Delta{Key: f.key("", 1), Answers: messages.Answers{Calls: 1, Asked: 1,
			First: f.now(), Last: f.now(), Denied: map[string]int64{"quiet": 1}}})
	}
	f.add(small...)
	late := f.key("", 1).Message
	require.ErrorIs(f, f.store.SetTitle(context.Background(), late, "late"), messages.ErrNotRemembered)
	title, err := f.store.Title(context.Background(), late)
	require.NoError(f, err)
	require.Empty(f, title)
	f.setTitle(late, "")
	f.setTitle(counted.Message, "counted")
	f.setTitle(small[0].Message, "known")
	f.clock.Advance(time.Second)
	f.setTitle(late, "a second later")
}

// foundByTitle checks that a list can select the messages whose id or title contains a text.
func foundByTitle(f *fixture) {
	var keys []messages.Key
	for i := range 40 {
		key := f.key([]string{"", "growth"}[i%2], capping.Channel(i%3))
		keys = append(keys, key)
		f.clock.Advance(time.Minute)
		f.add(messages.Delta{Key: key, Answers: some(f.now(), int64(1000+i%7), "v1")})
		if i%4 == 0 {
			f.setTitle(key.Message, fmt.Sprint("Été number ", i))
		}
	}
	mine := func(k messages.Key) bool { return slices.Contains(keys, k) }
	for part, want := range map[string]int{"": 40, "été": 10, "NUMBER 3": 2, "number 32": 1, "nothing": 0,
		keys[7].Message.ID: 1, "Campaign-": 40} {
		for _, order := range []messages.Order{messages.ByLast, messages.ByAsked} {
			for _, least := range []int64{0, 1000} {
				q := messages.Query{Match: mine, Part: part, Order: order, AtLeast: least, Max: 3}
				found := f.pages(q)
				require.Len(f, found, want, "%q", part)
				q.Max = 100
				require.Equal(f, f.pages(q), found)
			}
		}
	}
	all := f.pages(messages.Query{Match: mine, Part: "Été", Max: 100})
	require.Equal(f, keys[36], all[0].Key)
	require.Equal(f, "Été number 36", all[0].Title)
}

// The method "page" returns the first page of a list of messages, with at most 100 messages.
func (f *fixture) page(q messages.Query) []messages.Counts {
	f.Helper()
	q.Max = 100
	page, err := f.store.ListMessages(context.Background(), q)
	require.NoError(f, err)
	return page.Found
}

// The method "pages" returns the messages of all pages of a list.
func (f *fixture) pages(q messages.Query) (found []messages.Counts) {
	f.Helper()
	for {
		page, err := f.store.ListMessages(context.Background(), q)
		require.NoError(f, err)
		found = append(found, page.Found...)
		if q.After = page.Next; q.After == nil {
			return found
		}
	}
}
