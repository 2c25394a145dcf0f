package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// The method "recorded" calls the method Recorded of a Capper, which looks up the recorded sends of a message.
func (f *fixture) recorded(
	message capping.Message, channel capping.Channel, users []capping.UserID,
) []capping.Presence {
	f.Helper()
	c := capping.New(f.store, nil, new(capping.Policy), f.clock.Now)
	found, err := c.Recorded(context.Background(), message, channel, users)
	require.NoError(f, err)
	require.Len(f, found, len(users))
	return found
}

func (f *fixture) present(
	message capping.Message, channel capping.Channel, users []capping.UserID, want capping.Presence,
) {
	f.Helper()
	for i, presence := range f.recorded(message, channel, users) {
		require.Equal(f, want, presence, "user %d", users[i])
	}
}

// The test case "presence" checks that a lookup finds sends by message, namespace and channel until their release or
// erasure. The lookup must record nothing.
func presence(f *fixture) {
	users, id := f.users(3000), f.message()
	message := capping.Message{Namespace: "growth", ID: id}
	f.present(message, 2, users, capping.PresenceMissing)
	f.all(f.filter(on(of(f.batch(id, users[:2000], daily(1)), "growth"), 2)), capping.Allowed)
	for range 2 {
		f.present(message, 2, users[:2000], capping.PresenceRecorded)
		f.present(message, 2, users[2000:], capping.PresenceMissing)
		f.present(message, 1, users, capping.PresenceMissing)
		f.present(message, 0, users, capping.PresenceMissing)
		f.present(capping.Message{ID: id}, 2, users, capping.PresenceMissing)
		f.clock.Advance(2 * day)
	}
	released := make([]capping.Released, 500)
	require.NoError(f, f.store.Release(context.Background(), message.Token(), 2, users[:500], released))
	require.NoError(f, f.store.Erase(context.Background(), users[500]))
	f.present(message, 2, users[:501], capping.PresenceMissing)
	f.present(message, 2, users[501:2000], capping.PresenceRecorded)
	require.Equal(f, 0, f.log(users[2500]).Len())
}

// presenceInFullLog checks lookups in a full log, which no longer has the oldest send on a channel. If a full log lacks
// a send, the log may have dropped the record of this send.
func presenceInFullLog(f *fixture) {
	users := f.users(2)
	first := capping.Message{ID: f.message()}
	f.all(f.filter(on(f.batch(first.ID, users, daily(capping.LogBound)), 3)), capping.Allowed)
	for i := range capping.LogBound {
		f.clock.Advance(time.Millisecond)
		f.all(f.filter(on(f.batch(fmt.Sprint(first.ID, "-", i), users[:1]), 3)), capping.Allowed)
	}
	require.Equal(f, []capping.Presence{capping.PresenceForgotten, capping.PresenceRecorded},
		f.recorded(first, 3, users))
	f.present(first, 2, users, capping.PresenceMissing)
}
