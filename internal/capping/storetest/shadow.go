package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// The function "shadow" returns the limit as a shadow limit (limit that denies nobody).
func shadow(limit capping.Limit) capping.Limit {
	limit.Shadow = true
	return limit
}

// The method "marked" checks that the store allows the send. The store must report exactly the rules in the bit mask as
// the shadow rules that would have denied the send.
func (f *fixture) marked(v capping.Verdict, mask uint32) {
	f.Helper()
	require.Equal(f, capping.Verdict{Outcome: capping.Allowed, Shadow: mask}, v)
}

// shadowLimits checks that shadow limits (limits on trial) deny nobody. The verdict of each allowed send must report
// the shadow limits that would have denied the send.
func shadowLimits(f *fixture) {
	user, start := f.user(), f.clock.Instant()
	limits := []capping.Limit{shadow(daily(1)), weekly(4), shadow(weekly(2))}
	f.allowed(f.send(user, limits...))
	first := f.message()
	f.marked(f.only(f.batch(first, []capping.UserID{user}, limits...)), 1)
	f.replayed(f.only(f.batch(first, []capping.UserID{user}, limits...)))
	f.marked(f.send(user, limits...), 1|4)
	f.clock.Advance(day - time.Millisecond)
	f.marked(f.send(user, limits...), 1|4)
	f.denied(f.send(user, limits...), 1, after(start, week)) // whatever the shadow limits report
	f.clock.Advance(6 * day)
	f.denied(f.send(user, limits...), 1, after(start, week))
	f.clock.Advance(time.Millisecond)
	f.allowed(f.send(user, limits...)) // only the send one day after the first still counts
	f.clock.Advance(day - time.Millisecond)
	f.marked(f.send(user, limits...), 1)
	f.clock.Advance(2 * time.Millisecond)
	f.marked(f.send(user, limits...), 1|4)
}

// shadowMaxZero checks a shadow limit with a Max of 0, which would deny every user, even a user without sends.
func shadowMaxZero(f *fixture) {
	users := f.users(300)
	for round := range 3 {
		for i, v := range f.filter(f.batch(f.message(), users, daily(2), shadow(daily(0)))) {
			if round < 2 {
				f.marked(v, 2)
				continue
			}
			require.Equal(f, capping.Denied, v.Outcome, "user %d", i)
			require.Zero(f, v.Shadow)
		}
	}
	require.Equal(f, 2, f.live(users[7]))
	f.denied(f.send(f.user(), shadow(daily(0)), daily(0)), 1, capping.Never)
	f.denied(f.send(f.user(), daily(0), shadow(daily(0))), 0, capping.Never)
	closed := shadow(capping.Limit{Max: 0, Calendar: capping.CalendarMonth})
	f.marked(f.send(f.user(), shadow(daily(0)), daily(1), closed), 1|4)
	f.marked(f.send(f.user(), shadow(rolling("push", 0, day, 1))), 1)
}

// shadowPreview checks that a preview (Record is false) reports the same shadow limits as a recording call, and records
// nothing.
func shadowPreview(f *fixture) {
	user := f.user()
	for range 2 {
		f.allowed(f.send(user))
	}
	for range 2 {
		b := f.batch("", []capping.UserID{user}, daily(3), shadow(daily(2)), shadow(daily(3)), shadow(daily(1)))
		b.Record = false
		f.marked(f.only(b), 2|8)
	}
	b := f.batch("", []capping.UserID{user}, shadow(daily(1)))
	b.Record, b.At = false, after(f.clock.Instant(), day)
	f.allowed(f.only(b))
	require.Equal(f, 2, f.log(user).Len())
}

// shadowChannels checks that a shadow limit (limit that denies nobody) counts only the sends on its channels.
func shadowChannels(f *fixture) {
	const push, email = 1, 255
	users := f.users(40)
	limits := []capping.Limit{shadow(rolling("push", 1, time.Hour, push)), daily(3),
		shadow(rolling("loud", 3, day, push, email))}
	to := func(channel capping.Channel) []capping.Verdict {
		return f.filter(on(f.batch(f.message(), users, limits...), channel))
	}
	for _, step := range []struct {
		channel capping.Channel
		mask    uint32
	}{{email, 0}, {push, 0}, {push, 1}} {
		for _, v := range to(step.channel) {
			f.marked(v, step.mask)
		}
	}
	f.all(to(push), capping.Denied)
	limits[1] = daily(4)
	for _, v := range to(push) {
		f.marked(v, 1|4)
	}
}

// shadowGroups checks that each user is judged by the shadow limits of the user's own group, even if users with equal
// logs are in other groups.
func shadowGroups(f *fixture) {
	users := f.users(200)
	f.all(f.filter(f.batch(f.message(), users[:100])), capping.Allowed)
	b := f.batch(f.message(), users)
	now := f.clock.Instant()
	day1, none := daily(1), daily(0)
	plain, tried, closed := day1.Rule(now, 0), day1.Rule(now, 0), none.Rule(now, 0)
	tried.Shadow, closed.Shadow = true, true
	b.Rules = [][]capping.Rule{{plain}, {tried}, nil, {tried, closed}}
	for i := range b.Groups {
		b.Groups[i] = uint8(i / 5 % 4)
	}
	for i, v := range f.filter(b) {
		switch had := i < 100; {
		case b.Groups[i] == 0 && had:
			f.denied(v, 0, after(now, day))
		case b.Groups[i] == 1 && had:
			f.marked(v, 1)
		case b.Groups[i] == 3 && had:
			f.marked(v, 3)
		case b.Groups[i] == 3:
			f.marked(v, 2)
		default:
			f.allowed(v)
		}
	}
	require.Equal(f, 1, f.live(users[0]))
	require.Equal(f, 2, f.live(users[5]))
}

// shadowBound tests a shadow rule at the highest index that such a rule may have in its group. Other rules follow the
// shadow rule at the highest index.
func shadowBound(f *fixture) {
	users := f.users(50)
	limits := make([]capping.Limit, capping.MaxShadow+2)
	for i := range limits {
		limits[i] = daily(9)
	}
	limits[0], limits[capping.MaxShadow-1] = shadow(daily(2)), shadow(daily(1))
	limits[capping.MaxShadow+1] = daily(3)
	for _, mask := range []uint32{0, 1 << (capping.MaxShadow - 1), 1<<(capping.MaxShadow-1) | 1} {
		for _, v := range f.filter(f.batch(f.message(), users, limits...)) {
			f.marked(v, mask)
		}
	}
	for _, v := range f.filter(f.batch(f.message(), users, limits...)) {
		f.denied(v, capping.MaxShadow+1, after(f.clock.Instant(), day))
	}
	all := make([]capping.Limit, capping.MaxShadow)
	for i := range all {
		all[i] = shadow(daily(i % 4))
	}
	for _, v := range f.filter(f.batch(f.message(), users, all...)) {
		f.marked(v, 1<<capping.MaxShadow-1)
	}
}
