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

// The constant "retention" is the time for which the store under test keeps recorded sends.
const retention = 7 * 24 * time.Hour

// A fixture holds the store of one test case and the model of that store.
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

// process, nextUser and nextNames make sure that each test case gets its own users and messages. One test process
// never repeats a user or a message, and two processes hardly ever use the same users or messages.
var (
	process   = rand.Uint64()
	nextUser  = func() *atomic.Uint32 { n := new(atomic.Uint32); n.Store(1 + rand.Uint32N(1<<31)); return n }()
	nextNames atomic.Uint64
)

// The method "users" returns n consecutive users that no other test case uses.
func (f *fixture) users(n int) []capping.UserID {
	first := nextUser.Add(uint32(n)) - uint32(n)
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(first) + capping.UserID(i)
	}
	return users
}

// The method "key" returns a messages.Key in the given namespace and on the given channel. No other test case uses the
// message of this key.
func (f *fixture) key(namespace string, channel capping.Channel) messages.Key {
	id := fmt.Sprintf("campaign-%x-%d", process, nextNames.Add(1))
	return messages.Key{Message: capping.Message{Namespace: namespace, ID: id}, Channel: channel}
}

func (f *fixture) now() capping.Instant { return capping.InstantOf(f.clock.Now()) }

// The method "filter" makes a filter call for the message and checks that the store's verdicts equal the model's
// verdicts. The argument "most" is the maximum number of a user's sends of all messages together; 0 means no limit.
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

// The method "release" releases the sends of the message on the channel; channel 0 means all channels.
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

// The method "campaigns" returns the store's counts of the message, by channel.
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

// The method "campaign" returns the store's counts of the key, and fails the test if the store has no counts.
func (f *fixture) campaign(key messages.Key) messages.Counts {
	f.Helper()
	found, ok := f.campaigns(key.Message)[key.Channel]
	require.True(f, ok, "%q on channel %d is counted", key.Message, key.Channel)
	return found
}

// The method "agree" checks that the store and the model have the same number of sends for each message.
func (f *fixture) agree() {
	f.Helper()
	for key, want := range f.model.sends {
		require.Equal(f, *want, f.campaign(key).Sends, "%q on channel %d", key.Message, key.Channel)
	}
}
