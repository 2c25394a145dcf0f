package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// The type "history" makes the same random calls to the store under test and to the naive model, and compares the
// results.
type history struct {
	*fixture
	rt       *rapid.T
	model    model
	users    []capping.UserID
	messages []capping.Message
	limits   [][]capping.Limit // by group of users
}

func randomHistories(f *fixture) {
	rapid.Check(f.T, func(rt *rapid.T) {
		h := &history{fixture: f, rt: rt, users: f.users(6)}
		h.model = model{retention: week, sends: make(map[capping.UserID][]send)}
		for range rapid.IntRange(1, 8).Draw(rt, "messages") {
			id := f.message()
			h.messages = append(h.messages, capping.Message{ID: id}, capping.Message{Namespace: "growth", ID: id})
		}
		for range 3 {
			h.limits = append(h.limits, rapid.SliceOfN(rapid.Custom(drawLimit), 0, 4).Draw(rt, "limits"))
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			h.step()
		}
	})
}

var (
	windowLengths = []time.Duration{time.Millisecond, time.Second, time.Hour, day, week}
	channelSets   = [][]capping.Channel{nil, nil, {1}, {2}, {1, 2}}
	pauses        = []time.Duration{0, 0, time.Millisecond, time.Second, time.Hour, 5 * time.Hour,
		day - time.Millisecond, day, 3 * day, week - time.Millisecond, week}
)

func drawLimit(rt *rapid.T) capping.Limit {
	limit := capping.Limit{
		Max:      rapid.IntRange(0, 4).Draw(rt, "max"),
		Channels: capping.ChannelSetOf(rapid.SampledFrom(channelSets).Draw(rt, "channels")...),
		Shadow:   rapid.IntRange(0, 3).Draw(rt, "shadow") == 0,
	}
	if rapid.IntRange(0, 3).Draw(rt, "calendar") == 0 {
		calendars := capping.Calendars()
		limit.Calendar = rapid.SampledFrom(calendars[:]).Draw(rt, "unit")
		return limit
	}
	limit.Window = rapid.SampledFrom(windowLengths).Draw(rt, "window")
	return limit
}

func (h *history) step() {
	pause := rapid.SampledFrom(pauses).Draw(h.rt, "pause")
	if h.clock.Instant() > capping.Never/2 {
		pause %= time.Second // keeps a long run within the range of instants in a log
	}
	h.clock.Advance(pause)
	switch rapid.IntRange(0, 9).Draw(h.rt, "call") {
	case 0:
		h.release()
	case 1:
		user := rapid.SampledFrom(h.users).Draw(h.rt, "erased")
		require.NoError(h.rt, h.store.Erase(context.Background(), user))
		h.model.erase(user)
	case 2:
		h.filter(false)
	case 3:
		h.mergeStep()
	default:
		h.filter(true)
	}
	h.compareLogs()
}

func (h *history) release() {
	message := rapid.SampledFrom(h.messages).Draw(h.rt, "released")
	channel := rapid.SampledFrom([]capping.Channel{0, 1, 2}).Draw(h.rt, "released channel")
	for i, got := range h.fixture.releaseOn(message, channel, h.users...) {
		switch remembered, known := h.model.release(h.users[i], message, channel, h.clock.Now()); {
		case remembered:
			require.Equal(h.rt, capping.ReleaseDone, got, "user %d", h.users[i])
		case !known:
			require.Equal(h.rt, capping.ReleaseAbsent, got, "user %d", h.users[i])
		} // the store may or may not have removed a send older than the retention
	}
}

func (h *history) filter(record bool) {
	users := rapid.Permutation(h.users).Draw(h.rt, "users")[:rapid.IntRange(1, len(h.users)).Draw(h.rt, "n")]
	message := rapid.SampledFrom(h.messages).Draw(h.rt, "message")
	channel := rapid.SampledFrom([]capping.Channel{0, 1, 2}).Draw(h.rt, "channel")
	b := on(of(h.batch(message.ID, users), message.Namespace), channel)
	b.Record = record
	at := h.clock.Now()
	if !record && rapid.Bool().Draw(h.rt, "later") {
		at = at.Add(rapid.SampledFrom(pauses).Draw(h.rt, "by"))
		b.At = capping.InstantOf(at)
	}
	windows := make([][]window, len(h.limits))
	b.Rules = make([][]capping.Rule, len(h.limits))
	for group, limits := range h.limits {
		for i := range limits {
			if limits[i].AppliesTo(channel) {
				b.Rules[group] = append(b.Rules[group], limits[i].Rule(capping.InstantOf(at), 0))
				windows[group] = append(windows[group], windowOf(&limits[i], at))
			}
		}
	}
	for i := range b.Groups {
		b.Groups[i] = uint8(rapid.IntRange(0, len(h.limits)-1).Draw(h.rt, "group"))
	}
	for i, got := range h.fixture.filter(b) {
		h.compare(b, i, got, windows[b.Groups[i]], at)
		if record && got.Outcome == capping.Allowed {
			h.model.record(users[i], send{at, channel, message})
		}
	}
}

func (h *history) compare(b *capping.Batch, i int, got capping.Verdict, windows []window, at time.Time) {
	want := h.model.ask(b.Users[i], b.Message, b.Channel, windows, at)
	mask := uint32(0)
	for _, k := range want.shadow {
		mask |= 1 << k
	}
	require.Equal(h.rt, want.outcome, got.Outcome, "user %d at %v", b.Users[i], at)
	if want.outcome != capping.Denied {
		require.Equal(h.rt, capping.Verdict{Outcome: want.outcome, Shadow: mask}, got)
		return
	}
	until := capping.Never
	if !want.until.IsZero() {
		until = capping.InstantOf(want.until)
	}
	require.Equal(h.rt, until, got.FreesAt, "user %d at %v", b.Users[i], at)
	require.Zero(h.rt, got.Shadow)
	// The limit that the verdict names must have a free slot at the returned time, and none before.
	named, sends := windows[got.Rule], h.model.remembered(b.Users[i], at)
	require.False(h.rt, named.shadow || named.free(sends, at))
	if until != capping.Never {
		require.False(h.rt, named.free(sends, want.until.Add(-time.Millisecond)))
	}
}

// windowOf converts a capping.Limit to a window, the form of a limit in the naive model. A calendar limit becomes a
// period of the calendar in UTC.
func windowOf(l *capping.Limit, at time.Time) window {
	w := window{most: l.Max, length: l.Window, channels: l.Channels.Channels(), shadow: l.Shadow}
	at = at.UTC()
	switch l.Calendar {
	case capping.CalendarDay:
		w.start = at.Truncate(day)
		w.until = w.start.Add(day)
	case capping.CalendarWeek:
		w.start = at.Truncate(week) // the zero Time was a Monday
		w.until = w.start.Add(week)
	case capping.CalendarMonth:
		w.start = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		w.until = w.start.AddDate(0, 1, 0)
	case "":
	default:
		panic("windowOf has no case for calendar " + string(l.Calendar))
	}
	return w
}

// compareLogs checks that the store and the naive model have equal sends within the retention (time for which the store
// keeps sends).
func (h *history) compareLogs() {
	for _, user := range h.users {
		var want []capping.Entry
		for _, s := range h.model.remembered(user, h.clock.Now()) {
			want = append(want, capping.Entry{At: capping.InstantOf(s.at), Channel: s.channel,
				Token: s.message.Token()})
		}
		live := h.log(user).Live(h.clock.Instant() - capping.Instant(week.Milliseconds()))
		require.ElementsMatch(h.rt, want, live.Entries())
	}
}
