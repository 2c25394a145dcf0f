package messagestest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/testkit"
)

// retention is how long the entries of all calls are kept.
const retention = 7 * 24 * time.Hour

// fixture is one case's store, and the model of it.
type fixture struct {
	*testing.T
	store Store
	clock *testkit.Clock
	model *model
}

func newFixture(t *testing.T, open Open) *fixture {
	clock := testkit.NewClock()
	return &fixture{t, open(t, clock.Now), clock, newModel()}
}

// Users and messages are never handed out twice by one process, and hardly ever by two.
var (
	process   = rand.Uint64()
	nextUser  = func() *atomic.Uint32 { n := new(atomic.Uint32); n.Store(1 + rand.Uint32N(1<<31)); return n }()
	nextNames atomic.Uint64
)

// users is n neighbouring users that no other case has.
func (f *fixture) users(n int) []capping.UserID {
	first := nextUser.Add(uint32(n)) - uint32(n)
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = first + uint32(i)
	}
	return users
}

// key is a campaign that no other case has.
func (f *fixture) key(namespace string, channel capping.Channel) messages.Key {
	id := fmt.Sprintf("campaign-%x-%d", process, nextNames.Add(1))
	return messages.Key{Message: capping.Message{Namespace: namespace, ID: id}, Channel: channel}
}

func (f *fixture) now() capping.Instant { return capping.InstantOf(f.clock.Now()) }

// filter asks for the campaign of the users, each of whom may have so many sends of any
// kind (0: any number), and demands that the verdicts are those of the model.
func (f *fixture) filter(key messages.Key, most int, users ...capping.UserID) {
	f.Helper()
	verdicts := make([]capping.Verdict, len(users))
	require.NoError(f, f.store.Filter(context.Background(), f.batch(key, most, users), verdicts))
	for i, want := range f.model.filter(key, most, users) {
		require.Equal(f, want, verdicts[i].Outcome, "user %d", users[i])
	}
}

func (f *fixture) batch(key messages.Key, most int, users []capping.UserID) *capping.Batch {
	var rules []capping.Rule
	if most > 0 {
		rules = []capping.Rule{{Max: most, Hold: (6 * 24 * time.Hour).Milliseconds()}}
	}
	return &capping.Batch{
		Message: key.Message, Token: key.Message.Token(), Channel: key.Channel,
		Users: users, Groups: make([]uint8, len(users)), Rules: [][]capping.Rule{rules},
		Record: true, Retention: retention,
	}
}

// release gives back the message's sends on the channel, 0: on all.
func (f *fixture) release(message capping.Message, channel capping.Channel, users ...capping.UserID) {
	f.Helper()
	released := make([]capping.Released, len(users))
	require.NoError(f, f.store.Release(context.Background(), message.Token(), channel, users, released))
	for i, want := range f.model.release(message, channel, users) {
		require.Equal(f, want, released[i], "user %d", users[i])
	}
}

func (f *fixture) erase(user capping.UserID) {
	f.Helper()
	require.NoError(f, f.store.Erase(context.Background(), user))
	f.model.erase(user)
}

func (f *fixture) add(deltas ...messages.Delta) {
	f.Helper()
	require.NoError(f, f.store.AddAnswers(context.Background(), deltas))
}

// campaigns are those of the message, by channel.
func (f *fixture) campaigns(message capping.Message) map[capping.Channel]messages.Counts {
	f.Helper()
	found, err := f.store.MessageCounts(context.Background(), message)
	require.NoError(f, err)
	by := map[capping.Channel]messages.Counts{}
	last := -1
	for _, c := range found {
		require.Equal(f, message, c.Message)
		require.Greater(f, int(c.Channel), last, "by number")
		by[c.Channel], last = c, int(c.Channel)
	}
	return by
}

// campaign is the one of the key, which must be counted.
func (f *fixture) campaign(key messages.Key) messages.Counts {
	f.Helper()
	found, ok := f.campaigns(key.Message)[key.Channel]
	require.True(f, ok, "%q on channel %d is counted", key.Message, key.Channel)
	return found
}

// agree demands that the sends of each campaign of the model are those of the store.
func (f *fixture) agree() {
	f.Helper()
	for key, want := range f.model.sends {
		require.Equal(f, *want, f.campaign(key).Sends, "%q on channel %d", key.Message, key.Channel)
	}
}
