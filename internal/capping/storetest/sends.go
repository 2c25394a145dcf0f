package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func sameMessageOnce(f *fixture) {
	user, message := f.user(), f.message()
	one := func() capping.Verdict {
		return f.only(f.batch(message, []capping.UserID{user}, daily(1), weekly(3)))
	}
	f.allowed(one())
	for range 5 {
		f.replayed(one())
		f.clock.Advance(time.Hour)
	}
	require.Equal(f, 1, f.live(user))
	f.clock.Advance(day)
	f.allowed(f.send(user, daily(1), weekly(3)))
	f.replayed(one()) // the send was recorded long before, and no slot is free today
	require.Equal(f, 2, f.live(user))
}

// The function "identities" checks that message, namespace and channel together identify a send. If the message, the
// namespace or the channel differs, the store must treat the send as another send, with its own decision and count.
func identities(f *fixture) {
	users, id, limit := f.users(3000), f.message(), daily(4)
	all := []func(b *capping.Batch) *capping.Batch{
		func(b *capping.Batch) *capping.Batch { return b },
		func(b *capping.Batch) *capping.Batch { return on(b, 1) },
		func(b *capping.Batch) *capping.Batch { return on(b, 255) },
		func(b *capping.Batch) *capping.Batch { return on(of(b, "growth"), 1) },
		func(b *capping.Batch) *capping.Batch { return of(b, "growth") }, // the fifth send finds no slot
		func(b *capping.Batch) *capping.Batch { return of(b, "crm") },
	}
	for round := range 2 {
		for i, send := range all {
			want := capping.Allowed
			switch {
			case i >= limit.Max:
				want = capping.Denied
			case round == 1:
				want = capping.Replayed
			}
			f.all(f.filter(send(f.batch(id, users, limit))), want)
			f.clock.Advance(time.Minute)
		}
	}
	for _, user := range users[:20] {
		require.Equal(f, limit.Max, f.live(user))
	}
}

func sameMillisecond(f *fixture) {
	user, start := f.user(), f.clock.Instant()
	for range 20 {
		f.allowed(f.send(user, daily(20)))
	}
	f.denied(f.send(user, daily(20)), 0, after(start, day))
	log := f.log(user)
	require.Equal(f, 20, log.Len())
	for _, e := range log.Entries() {
		require.Equal(f, start, e.At)
	}
}

func uncapped(f *fixture) {
	user := f.user()
	for range 50 {
		f.allowed(f.send(user))
	}
	require.Equal(f, 50, f.live(user))
}

func maxZero(f *fixture) {
	user := f.user()
	f.denied(f.send(user, daily(0)), 0, capping.Never)
	f.denied(f.send(user, daily(1), rolling("none", 0, time.Second)), 1, capping.Never)
	closed := capping.Limit{Name: "closed", Max: 0, Calendar: capping.CalendarDay}
	f.denied(f.send(user, closed), 0, capping.Never)
	require.Zero(f, f.log(user).Len())
}

// The test case "exempt" checks that a store never denies a send in a call without limits. The sends of a call without
// limits must count for the limits of later calls.
func exempt(f *fixture) {
	user, start := f.user(), f.clock.Instant()
	f.allowed(f.send(user, daily(2)))
	for range 3 {
		f.clock.Advance(time.Minute)
		f.allowed(f.send(user))
	}
	// The user has four sends, but the limit allows two, so a slot is free only after the third send expires.
	f.denied(f.send(user, daily(2)), 0, after(start, day+2*time.Minute))
	require.Equal(f, 4, f.live(user))
}

func groups(f *fixture) {
	users := f.users(6)
	f.all(f.filter(f.batch(f.message(), users)), capping.Allowed)
	b := f.batch(f.message(), users)
	now := f.clock.Instant()
	one, two, none := daily(1), weekly(2), daily(0)
	b.Groups = []uint8{0, 3, 1, 2, 0, 3}
	b.Rules = [][]capping.Rule{{one.Rule(now, 0)}, {two.Rule(now, 0)}, {two.Rule(now, 0), none.Rule(now, 0)}, nil}
	verdicts := f.filter(b)
	f.denied(verdicts[0], 0, after(now, day))
	f.allowed(verdicts[1])
	f.allowed(verdicts[2])
	f.denied(verdicts[3], 1, capping.Never)
	f.denied(verdicts[4], 0, after(now, day))
	f.allowed(verdicts[5])
}

func preview(f *fixture) {
	user, message, start := f.user(), f.message(), f.clock.Instant()
	ask := func(message string, limits ...capping.Limit) capping.Verdict {
		b := f.batch(message, []capping.UserID{user}, limits...)
		b.Record = false
		return f.only(b)
	}
	for range 3 {
		f.allowed(ask("", daily(1)))
		f.allowed(ask(message, daily(1)))
	}
	require.Zero(f, f.log(user).Len())
	f.allowed(f.only(f.batch(message, []capping.UserID{user}, daily(1))))
	f.replayed(ask(message, daily(1)))
	f.denied(ask(f.message(), daily(1)), 0, after(start, day))
	f.denied(ask("", daily(1)), 0, after(start, day))
	require.Equal(f, 1, f.log(user).Len())
}

func previewAt(f *fixture) {
	user, message, start := f.user(), f.message(), f.clock.Instant()
	f.allowed(f.only(f.batch(message, []capping.UserID{user})))
	asOf := func(message string, at capping.Instant) capping.Verdict {
		b := f.batch(message, []capping.UserID{user}, daily(1))
		b.Record, b.At = false, at
		return f.only(b)
	}
	f.denied(asOf("", start), 0, after(start, day))
	f.denied(asOf("", after(start, day)-1), 0, after(start, day))
	f.allowed(asOf("", after(start, day)))
	f.replayed(asOf(message, after(start, week)-1))
	f.allowed(asOf(message, after(start, week)))
	require.Equal(f, 1, f.live(user))
}

func neighbours(f *fixture) {
	users := f.users(300) // several buckets of users, the first and the last only in part
	for round := range 5 {
		var some []capping.UserID
		for i := range users {
			if i%5 >= round {
				some = append(some, users[i])
			}
		}
		f.all(f.filter(f.batch(f.message(), some)), capping.Allowed)
		f.clock.Advance(time.Minute)
	}
	for i, v := range f.filter(f.batch(f.message(), users, daily(3))) {
		if i%5+1 >= 3 {
			require.Equal(f, capping.Denied, v.Outcome, "user %d", i)
			continue
		}
		f.allowed(v)
	}
	for i := range 20 {
		require.Equal(f, []int{2, 3, 3, 4, 5}[i%5], f.live(users[i]), "user %d", i)
	}
}

func extremeUsers(f *fixture) {
	users := []capping.UserID{4294967295, 0}
	for _, user := range users {
		require.NoError(f, f.store.Erase(context.Background(), user))
		require.Zero(f, f.log(user).Len())
	}
	f.all(f.filter(f.batch(f.message(), users, daily(1))), capping.Allowed)
	f.all(f.filter(f.batch(f.message(), users, daily(1))), capping.Denied)
	f.allowed(f.send(f.user(), daily(1)))
	for _, user := range users {
		require.Equal(f, 1, f.log(user).Len())
		require.NoError(f, f.store.Erase(context.Background(), user))
	}
}

func emptyBatch(f *fixture) {
	require.NoError(f, f.store.Filter(context.Background(), f.batch(f.message(), nil, daily(1)), nil))
	require.NoError(f, f.store.Release(context.Background(), capping.Message{ID: "x"}.Token(), 0, nil, nil))
}

func largeBatch(f *fixture) {
	const n = 100_000
	first, second := f.message(), f.message()
	users := f.users(3 * n)
	for i := range n {
		users[i] = users[0] + capping.UserID(i*48271%n*3) // every third user, in mixed order
	}
	users = users[:n]
	half := f.batch(first, users[:n/2], daily(1))
	f.all(f.filter(half), capping.Allowed)
	verdicts := f.filter(f.batch(first, users, daily(1)))
	f.all(verdicts[:n/2], capping.Replayed)
	f.all(verdicts[n/2:], capping.Allowed)
	f.all(f.filter(f.batch(second, users, daily(1))), capping.Denied)
	ascending := slices.Sorted(slices.Values(users))
	f.clock.Advance(day)
	f.all(f.filter(f.batch(second, ascending, daily(1))), capping.Allowed)
	require.Equal(f, 2, f.live(users[n/3]))
}
