package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func rollingWindow(f *fixture) {
	user, start := f.user(), f.clock.Instant()
	f.allowed(f.send(user, daily(1)))
	f.denied(f.send(user, daily(1)), 0, after(start, day))
	f.clock.Advance(day - time.Millisecond)
	f.denied(f.send(user, daily(1)), 0, after(start, day))
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, daily(1)))

	// One millisecond is the shortest possible window.
	user = f.user()
	f.allowed(f.send(user, rolling("gap", 1, time.Millisecond)))
	f.denied(f.send(user, rolling("gap", 1, time.Millisecond)), 0, f.clock.Instant()+1)
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, rolling("gap", 1, time.Millisecond)))
}

// dailyAndWeekly checks two limits together: two sends a day and three sends a week. The weekly limit denies a send on
// day 2, and this denial must not use up a slot of the daily limit. When the weekly limit has a free slot again, the
// slot of the daily limit must still be free.
func dailyAndWeekly(f *fixture) {
	user, start := f.user(), f.clock.Instant()
	limits := []capping.Limit{daily(2), weekly(3)}
	f.allowed(f.send(user, limits...))
	f.allowed(f.send(user, limits...))
	f.denied(f.send(user, limits...), 0, after(start, day))
	f.clock.Advance(day)
	f.allowed(f.send(user, limits...))
	for range 5 {
		f.denied(f.send(user, limits...), 1, after(start, week))
	}
	require.Equal(f, 3, f.live(user))
	f.clock.Advance(6*day - time.Millisecond)
	f.denied(f.send(user, limits...), 1, after(start, week))
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, limits...))
	f.allowed(f.send(user, limits...))
	f.denied(f.send(user, limits...), 0, after(start, 8*day)) // both limits deny; the verdict names the first limit
}

func denialRecordsNothing(f *fixture) {
	user := f.user()
	f.allowed(f.send(user, daily(1), weekly(5)))
	before := f.log(user)
	refused := f.message()
	for range 10 {
		f.clock.Advance(time.Second)
		b := f.batch(refused, []capping.UserID{user}, daily(1), weekly(5))
		require.Equal(f, capping.Denied, f.only(b).Outcome)
	}
	require.Equal(f, before, f.log(user))
	// The weekly limit still has four slots, because denials used none.
	for range 4 {
		f.clock.Advance(day)
		f.allowed(f.send(user, daily(1), weekly(5)))
	}
}

func lastLimitNamed(f *fixture) {
	user, start := f.user(), f.clock.Instant()
	f.allowed(f.send(user))
	f.denied(f.send(user, weekly(1), daily(1)), 0, after(start, week))
	f.denied(f.send(user, daily(1), weekly(1)), 1, after(start, week))
	f.denied(f.send(user, weekly(2), daily(1)), 1, after(start, day))
	f.denied(f.send(user, daily(1), weekly(0)), 1, capping.Never)
	f.denied(f.send(user, weekly(9), rolling("gap", 1, time.Minute), daily(9)), 1, after(start, time.Minute))
}

// freesAtExact checks that a denial returns the first time at which every limit has a free slot. The time in a denial
// must be right even if the user's log has more sends than a limit allows.
func freesAtExact(f *fixture) {
	limits := []capping.Limit{rolling("hour", 2, time.Hour), daily(3), weekly(4)}
	user := f.user()
	for range 6 {
		f.allowed(f.send(user)) // exempt from limits
		f.clock.Advance(7 * time.Minute)
	}
	for range 4 {
		verdict := f.send(user, limits...)
		require.Equal(f, capping.Denied, verdict.Outcome)
		f.clock.Advance(time.Duration(verdict.FreesAt-f.clock.Instant()-1) * time.Millisecond)
		require.Equal(f, capping.Denied, f.send(user, limits...).Outcome)
		f.clock.Advance(time.Millisecond)
		f.allowed(f.send(user, limits...))
	}
}

func replayEndsWithRetention(f *fixture) {
	users, message := f.users(2), f.message()
	f.all(f.filter(f.batch(message, users, weekly(1))), capping.Allowed)
	f.clock.Advance(week - time.Millisecond)
	f.all(f.filter(f.batch(message, users, weekly(1))), capping.Replayed)
	f.clock.Advance(time.Millisecond)
	f.all(f.filter(f.batch(message, users, weekly(1))), capping.Allowed)
	f.all(f.filter(f.batch(message, users, weekly(1))), capping.Replayed)
}

func channels(f *fixture) {
	const push, email, sms = 1, 2, 255
	user, start := f.user(), f.clock.Instant()
	gap := rolling("push-gap", 1, 30*time.Minute, push)
	both := rolling("loud", 2, day, push, sms)
	to := func(channel capping.Channel, limits ...capping.Limit) capping.Verdict {
		return f.only(on(f.batch(f.message(), []capping.UserID{user}, limits...), channel))
	}
	f.allowed(to(push, gap, both))
	f.denied(to(push, gap, both), 0, after(start, 30*time.Minute))
	for range 3 {
		f.allowed(to(email)) // no limit applies to email
	}
	f.allowed(to(sms, both)) // the limit push-gap does not apply to sms
	f.clock.Advance(time.Hour)
	f.denied(to(push, gap, both), 1, after(start, day))
	f.denied(to(sms, both), 0, after(start, day))
	f.allowed(to(0, daily(6))) // a limit without channels also counts sends without a channel
	f.denied(to(0, daily(5)), 0, after(start, day))
	f.denied(to(email, daily(6)), 0, after(start, day))
	require.Equal(f, 6, f.live(user))
}

func calendar(f *fixture) {
	user := f.user()
	limit := func() capping.Limit {
		return capping.Limit{Name: "day", Max: 2, Calendar: capping.CalendarDay, Location: time.UTC}
	}
	now := f.clock.Now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	next := capping.InstantOf(midnight)
	f.clock.Advance(midnight.Sub(f.clock.Now()) - 2*time.Millisecond)
	f.allowed(f.send(user, limit()))
	f.clock.Advance(time.Millisecond) // the last millisecond of the day
	f.allowed(f.send(user, limit()))
	f.denied(f.send(user, limit()), 0, next)
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, limit()))
	f.allowed(f.send(user, limit()))
	f.denied(f.send(user, limit()), 0, after(next, day))
	f.clock.Advance(day - time.Millisecond)
	f.denied(f.send(user, limit()), 0, after(next, day))
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, limit(), weekly(5)))
	f.denied(f.send(user, limit(), weekly(5)), 1, after(next-2, week))
}

// calendarMonth checks that a send in the first millisecond of a month counts until the last millisecond of the month.
// In the time zone Antarctica/Troll, clocks go back by two hours in October, so October is the longest possible month.
func calendarMonth(f *fixture) {
	troll, err := time.LoadLocation("Antarctica/Troll")
	require.NoError(f, err)
	limit := capping.Limit{Name: "month", Max: 2, Calendar: capping.CalendarMonth, Location: troll}
	users := f.users(40)
	ask := func(users []capping.UserID) []capping.Verdict {
		b := f.batch(f.message(), users, limit)
		b.Retention = (&capping.Policy{Default: []capping.Limit{limit}}).Retention(capping.Widening(f.store))
		return f.filter(b)
	}
	first := time.Date(f.clock.Now().Year()+1, time.October, 1, 0, 0, 0, 0, troll)
	november := time.Date(first.Year(), time.November, 1, 0, 0, 0, 0, troll)
	require.Equal(f, 31*day+2*time.Hour, november.Sub(first))
	f.clock.Advance(first.Sub(f.clock.Now()) - time.Millisecond)
	f.all(ask(users), capping.Allowed)
	f.clock.Advance(time.Millisecond)
	for range 2 {
		f.all(ask(users[:20]), capping.Allowed)
	}
	for range 31 { // a neighbour gets a send each day, as happens within a month
		f.denied(ask(users[:1])[0], 0, capping.InstantOf(november))
		f.send(users[30])
		f.clock.Advance(day)
	}
	f.clock.Advance(2*time.Hour - time.Millisecond) // the last millisecond of October
	for _, v := range ask(users[:20]) {
		f.denied(v, 0, capping.InstantOf(november))
	}
	f.clock.Advance(time.Millisecond)
	f.all(ask(users[:20]), capping.Allowed)
	f.all(ask(users[:20]), capping.Allowed)
	f.denied(ask(users[:1])[0], 0, capping.InstantOf(time.Date(first.Year(), time.December, 1, 0, 0, 0, 0, troll)))
}
