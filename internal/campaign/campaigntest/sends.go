package campaigntest

import (
	"context"
	"sync"

	"github.com/stretchr/testify/require"

	"capper/internal/campaign"
	"capper/internal/capping"
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
	require.Equal(f, campaign.Sends{Recorded: 3000}, f.campaign(key).Sends)
}

func release(f *fixture) {
	key, users := f.key("", 1), f.users(3000)
	f.filter(key, 0, users...)
	f.release(key.Message, 1, users[:1000]...)
	f.release(key.Message, 1, users[:1000]...)
	f.release(key.Message, 2, users...)
	require.Equal(f, campaign.Sends{Recorded: 3000, Released: 1000}, f.campaign(key).Sends)
	f.filter(key, 0, users...) // those who gave theirs back may have another one
	f.release(key.Message, 0, users...)
	require.Equal(f, campaign.Sends{Recorded: 4000, Released: 4000}, f.campaign(key).Sends)
}

func denial(f *fixture) {
	first, second, users := f.key("", 1), f.key("", 1), f.users(500)
	f.filter(first, 1, users[:200]...)
	f.filter(second, 1, users...)
	f.filter(second, 1, users...)
	require.Equal(f, campaign.Sends{Recorded: 300}, f.campaign(second).Sends)
	all := f.key("", 1)
	f.filter(all, 1, users...)
	require.Equal(f, campaign.Sends{}, f.campaign(all).Sends, "nobody was allowed, and it is counted")
}

func identities(f *fixture) {
	users, message := f.users(700), f.key("", 0).Message
	n := 100
	for _, namespace := range []string{"", "growth", "crm"} {
		for _, channel := range []capping.Channel{0, 1, 255} {
			key := campaign.Key{Message: capping.Message{Namespace: namespace, ID: message.ID}, Channel: channel}
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
	require.Equal(f, campaign.Sends{Recorded: 200}, f.campaign(key).Sends)
	f.filter(key, 0, users...) // who was erased is somebody new
	require.Equal(f, campaign.Sends{Recorded: 210}, f.campaign(key).Sends)
}

// As many single calls as no memory keeps the messages of.
func singles(f *fixture) {
	key, users := f.key("", 1), f.users(2600)
	f.filter(key, 0, users[:100]...)
	for _, user := range users[100:] {
		f.filter(key, 0, user)
	}
	require.Equal(f, campaign.Sends{Recorded: 2600}, f.campaign(key).Sends)
}

func releaseOfUncounted(f *fixture) {
	key, users := f.key("", 1), f.users(200)
	f.release(key.Message, 0, users...)
	f.release(key.Message, 1, users...)
	require.Empty(f, f.campaigns(key.Message))
}

// What comes from several callers at once is counted as often as it was recorded.
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
	require.Equal(f, campaign.Sends{Recorded: 20_000}, f.campaign(key).Sends)
}
