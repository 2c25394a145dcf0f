package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func (f *fixture) release(message string, users ...capping.UserID) []capping.Released {
	f.Helper()
	return f.releaseOn(capping.Message{ID: message}, 0, users...)
}

func (f *fixture) releaseOn(message capping.Message, channel capping.Channel,
	users ...capping.UserID) []capping.Released {
	f.Helper()
	released := make([]capping.Released, len(users))
	require.NoError(f, f.store.Release(context.Background(), message.Token(), channel, users, released))
	return released
}

// releaseIdentity checks that a release of a message removes no sends of messages with the same id in other namespaces.
// If a release call names a channel, the store removes only the sends on that channel.
func releaseIdentity(f *fixture) {
	const push, email = 1, 2
	users, id := f.users(3000), f.message()
	plain, named := capping.Message{ID: id}, capping.Message{Namespace: "growth", ID: id}
	for _, message := range []capping.Message{plain, named} {
		for _, channel := range []capping.Channel{push, email, 0} {
			f.all(f.filter(on(of(f.batch(id, users), message.Namespace), channel)), capping.Allowed)
		}
	}
	done := func(message capping.Message, channel capping.Channel, want capping.Released, left int) {
		f.Helper()
		for i, got := range f.releaseOn(message, channel, users...) {
			require.Equal(f, want, got, "user %d", i)
		}
		require.Equal(f, left, f.live(users[7]))
	}
	done(capping.Message{Namespace: "crm", ID: id}, 0, capping.ReleaseAbsent, 6)
	done(plain, 3, capping.ReleaseAbsent, 6)
	done(plain, email, capping.ReleaseDone, 5)
	done(plain, email, capping.ReleaseAbsent, 5)
	f.all(f.filter(on(f.batch(id, users), push)), capping.Replayed)
	f.all(f.filter(on(of(f.batch(id, users), "growth"), email)), capping.Replayed)
	done(named, 0, capping.ReleaseDone, 2)
	for _, e := range f.log(users[9]).Entries() {
		require.Equal(f, plain.Token(), e.Token)
		require.NotEqual(f, capping.Channel(email), e.Channel)
	}
}

func release(f *fixture) {
	user, kept, failed := f.user(), f.message(), f.message()
	one := func(message string) capping.Verdict {
		return f.only(f.batch(message, []capping.UserID{user}, daily(2)))
	}
	f.allowed(one(kept))
	f.allowed(one(failed))
	require.Equal(f, capping.Denied, f.send(user, daily(2)).Outcome)
	require.Equal(f, []capping.Released{capping.ReleaseDone}, f.release(failed, user))
	require.Equal(f, []capping.Released{capping.ReleaseAbsent}, f.release(failed, user))
	require.Equal(f, []capping.Released{capping.ReleaseAbsent}, f.release(f.message(), user))
	require.Equal(f, 1, f.log(user).Len())
	f.allowed(one(failed)) // the same message counts as a new send
	f.replayed(one(failed))
	f.replayed(one(kept))
	require.Equal(f, capping.Denied, f.send(user, daily(2)).Outcome)
}

func releaseMany(f *fixture) {
	users, message := f.users(5000), f.message()
	f.all(f.filter(f.batch(message, users[:4000], daily(1))), capping.Allowed)
	f.all(f.filter(f.batch(f.message(), users[3000:], daily(2))), capping.Allowed)
	for _, want := range []capping.Released{capping.ReleaseDone, capping.ReleaseAbsent} {
		for i, got := range f.release(message, users...) {
			if i >= 4000 {
				require.Equal(f, capping.ReleaseAbsent, got, "user %d", i)
				continue
			}
			require.Equal(f, want, got, "user %d", i)
		}
	}
	require.Zero(f, f.log(users[0]).Len())
	require.Equal(f, 1, f.log(users[3500]).Len())
	verdicts := f.filter(f.batch(f.message(), users, daily(1)))
	f.all(verdicts[:3000], capping.Allowed)
	f.all(verdicts[3000:], capping.Denied)
}

func erase(f *fixture) {
	users, message := f.users(3), f.message()
	f.all(f.filter(f.batch(message, users, daily(1))), capping.Allowed)
	for range 2 {
		require.NoError(f, f.store.Erase(context.Background(), users[1]))
		require.Zero(f, f.log(users[1]).Len())
	}
	verdicts := f.filter(f.batch(message, users, daily(1)))
	f.replayed(verdicts[0])
	f.allowed(verdicts[1])
	f.replayed(verdicts[2])
	require.NoError(f, f.store.Erase(context.Background(), f.user()))
}

func readBack(f *fixture) {
	user := f.user()
	require.Zero(f, f.log(user).Len())
	var want []capping.Entry
	for i := range 5 {
		message, channel := f.message(), capping.Channel(i*60)
		want = append(want, capping.Entry{At: f.clock.Instant(), Channel: channel,
			Token: capping.Message{ID: message}.Token()})
		f.allowed(f.only(on(f.batch(message, []capping.UserID{user}, daily(9)), channel)))
		f.clock.Advance(time.Duration(i) * 1234567 * time.Microsecond)
	}
	require.Equal(f, want, f.log(user).Entries())
}

func messages(f *fixture) {
	bulk, small, never, preview := f.message(), f.message(), f.message(), f.message()
	long := capping.Message{Namespace: strings.Repeat("n", 64), ID: f.message() + strings.Repeat("é", 40)}
	users := f.users(capping.BulkUsers)
	f.all(f.filter(f.batch(bulk, users)), capping.Allowed)
	f.all(f.filter(f.batch(small, users[:1])), capping.Allowed) // a new MessageMemory allows such a burst
	ask := f.batch(preview, users)
	ask.Record = false
	f.filter(ask)
	f.all(f.filter(of(f.batch(long.ID, users), long.Namespace)), capping.Allowed)
	tokens := []capping.Token{
		capping.Message{ID: never}.Token(), capping.Message{ID: bulk}.Token(),
		capping.Message{ID: preview}.Token(), capping.Message{ID: small}.Token(), long.Token(),
	}
	f.knows(tokens, map[capping.Token]capping.Message{
		capping.Message{ID: bulk}.Token():  {ID: bulk},
		capping.Message{ID: small}.Token(): {ID: small}, long.Token(): long,
	})
	got, err := f.store.Messages(context.Background(), nil)
	require.NoError(f, err)
	require.Empty(f, got)
}

// The method "knows" waits until the store returns exactly the given messages for the tokens. Waiting is necessary
// because a store writes the texts of messages in the background.
func (f *fixture) knows(tokens []capping.Token, want map[capping.Token]capping.Message) {
	f.Helper()
	require.EventuallyWithT(f, func(c *assert.CollectT) {
		got, err := f.store.Messages(context.Background(), tokens)
		require.NoError(c, err)
		require.Equal(c, want, got)
	}, 30*time.Second, 5*time.Millisecond)
}

// logBound checks that a user's log keeps the newest LogBound sends on a channel without limits, and no older sends.
// Sends on other channels must stay in the log.
func logBound(f *fixture) {
	const quiet, flooded = 1, 2
	user, first, second := f.user(), f.message(), f.message()
	one := []capping.UserID{user}
	other := f.message()
	f.allowed(f.only(on(f.batch(other, one), quiet)))
	f.allowed(f.only(on(f.batch(first, one), flooded)))
	f.allowed(f.only(on(f.batch(second, one), flooded)))
	for range capping.LogBound - 2 {
		f.clock.Advance(time.Millisecond)
		f.allowed(f.only(on(f.batch(f.message(), one), flooded)))
	}
	f.replayed(f.only(on(f.batch(first, one), flooded)))
	require.Equal(f, capping.LogBound+1, f.log(user).Len())
	f.clock.Advance(time.Millisecond)
	f.allowed(f.only(on(f.batch(f.message(), one), flooded)))
	require.Equal(f, capping.LogBound+1, f.log(user).Len())
	f.replayed(f.only(on(f.batch(second, one), flooded)))
	f.replayed(f.only(on(f.batch(other, one), quiet)))
	full := rolling("full", capping.LogBound, day, flooded)
	require.Equal(f, capping.Denied, f.only(on(f.batch(f.message(), one, full), flooded)).Outcome)
	f.allowed(f.only(on(f.batch(first, one), flooded))) // newer sends have displaced this send, so it is new
}

// expiredLeave checks that the next write of a user's log removes entries that no window counts any more.
func expiredLeave(f *fixture) {
	user := f.user()
	for range 4 {
		f.allowed(f.send(user, daily(9)))
	}
	f.clock.Advance(week)
	f.allowed(f.send(user, daily(9)))
	require.Equal(f, 1, f.log(user).Len())
}
