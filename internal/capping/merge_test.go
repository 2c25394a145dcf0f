package capping_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

// logWith returns a log of the entries in the given order.
func logWith(entries ...capping.Entry) (log capping.Log) {
	for _, e := range entries {
		log = append(log, byte(e.At>>32), byte(e.At>>24), byte(e.At>>16), byte(e.At>>8), byte(e.At), byte(e.Channel))
		log = append(log, e.Token[:]...)
	}
	return log
}

// naiveUnion computes Union on a list of entries.
func naiveUnion(log, other []capping.Entry, horizon capping.Instant) (union []capping.Entry, added int) {
	type dated struct {
		capping.Entry
		old bool
	}
	var all []dated
	same := func(a, b capping.Entry) bool {
		return a.Channel == b.Channel && a.Token == b.Token && (a.Token != capping.Token{} || a.At == b.At)
	}
	for _, e := range log {
		if e.At > horizon {
			all = append(all, dated{e, true})
		}
	}
	for _, e := range other {
		if e.At > horizon && !slices.ContainsFunc(all, func(d dated) bool { return same(d.Entry, e) }) {
			all = append(all, dated{e, false})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		if a.old != b.old && a.At == b.At {
			if b.old {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.At, b.At)
	})
	of := map[capping.Channel]int{}
	for i := len(all) - 1; i >= 0; i-- {
		if of[all[i].Channel]++; of[all[i].Channel] > capping.LogBound {
			continue
		}
		union = append(union, all[i].Entry)
		if !all[i].old {
			added++
		}
	}
	slices.Reverse(union)
	return union, added
}

// drawLog returns a random log with few messages and times, so that equal ones are frequent. Some logs are
// full.
func drawLog(t *rapid.T, name string) capping.Log {
	var entries []capping.Entry
	if rapid.IntRange(0, 9).Draw(t, name+" full") == 0 {
		first := rapid.IntRange(0, 3000).Draw(t, name+" first")
		for i := range rapid.IntRange(capping.LogBound-2, capping.LogBound).Draw(t, name+" n") {
			token := capping.Token{9, byte((first + i) >> 8), byte(first + i)}
			entries = append(entries, capping.Entry{At: capping.Instant(20 + (first+i)/3), Channel: 1, Token: token})
		}
	}
	few := rapid.Custom(func(t *rapid.T) capping.Entry {
		return capping.Entry{
			At:      capping.Instant(rapid.IntRange(0, 40).Draw(t, "at")),
			Channel: capping.Channel(rapid.IntRange(0, 2).Draw(t, "channel")),
			Token:   capping.Token{5: byte(rapid.IntRange(0, 5).Draw(t, "token"))},
		}
	})
	for _, e := range rapid.SliceOfN(few, 0, 8).Draw(t, name) {
		again := func(o capping.Entry) bool {
			return o.Channel == e.Channel && o.Token == e.Token && e.Token != capping.Token{}
		}
		of := func(o capping.Entry) bool { return o.Channel == e.Channel }
		if !slices.ContainsFunc(entries, again) && (len(entries) < capping.LogBound || !slices.ContainsFunc(entries,
			of)) {
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b capping.Entry) int { return cmp.Compare(a.At, b.At) })
	return logWith(entries...)
}

// shifted reports whether a send is in both logs with different times.
func shifted(log, other capping.Log) bool {
	for _, a := range log.Entries() {
		for _, b := range other.Entries() {
			if a.Token == b.Token && a.Channel == b.Channel && a.At != b.At && a.Token != (capping.Token{}) {
				return true
			}
		}
	}
	return false
}

func TestUnionIsThatOfNaiveSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log, other := drawLog(t, "log"), drawLog(t, "other")
		horizon := capping.Instant(rapid.IntRange(-1, 41).Draw(t, "horizon"))
		want, added := naiveUnion(log.Entries(), other.Entries(), horizon)
		dst, n := log.Union([]byte{1, 2, 3}, other, horizon)
		union := capping.Log(dst[3:])
		require.Equal(t, []byte{1, 2, 3}, dst[:3])
		require.NoError(t, union.Check())
		require.Equal(t, added, n)
		require.Equal(t, append(capping.Log{}, logWith(want...)...), append(capping.Log{}, union...))

		if union.Len() >= capping.LogBound && shifted(log, other) {
			return // a send that did not fit may be in other with a later time, and then fit
		}
		again, n := union.Union(nil, other, horizon)
		require.Zero(t, n, "what was brought once, or had no room, is not brought again")
		require.Equal(t, []byte(union), append([]byte{}, again...))
	})
}

func TestUnionKeepsTheTimeOfTheLog(t *testing.T) {
	t.Parallel()
	a, b := capping.Message{ID: "a"}.Token(), capping.Message{ID: "b"}.Token()
	log := logWith(capping.Entry{At: 10, Channel: 1, Token: a})
	union, added := log.Union(nil, logWith(
		capping.Entry{At: 5, Channel: 1, Token: a}, // the same send, although the time differs
		capping.Entry{At: 6, Channel: 2, Token: a}, // another channel
		capping.Entry{At: 7, Channel: 1, Token: b},
		capping.Entry{At: 7, Channel: 1}, // without a token
		capping.Entry{At: 8, Channel: 1}, // another time is another send
	), 5)
	require.Equal(t, 4, added)
	require.Equal(t, []capping.Entry{
		{At: 6, Channel: 2, Token: a}, {At: 7, Channel: 1, Token: b}, {At: 7, Channel: 1}, {At: 8, Channel: 1},
		{At: 10, Channel: 1, Token: a},
	}, capping.Log(union).Entries())
}

func TestMergeOfKeepsTheNewestOfAChannel(t *testing.T) {
	t.Parallel()
	var sent []capping.Sent
	for i := range 2*capping.LogBound + 10 {
		e := capping.Entry{At: capping.Instant(i / 2), Channel: capping.Channel(1 + i%2),
			Token: capping.Token{1, byte(i >> 8), byte(i)}}
		sent = append(sent, capping.Sent{User: 8, Entry: e}, capping.Sent{User: 8, Entry: e},
			capping.Sent{User: 7, Entry: capping.Entry{At: e.At}})
	}
	m := capping.MergeOf(sent)
	require.Equal(t, []capping.UserID{7, 8}, m.Users)
	require.Equal(t, capping.LogBound, m.Logs[0].Len())
	require.Equal(t, 2*capping.LogBound, m.Logs[1].Len())
	for _, log := range m.Logs {
		require.NoError(t, log.Check())
		require.Equal(t, capping.Instant(5), log.At(0), "the oldest have no room")
		union, added := capping.Log(nil).Union(nil, log, -1)
		require.Equal(t, log.Len(), added)
		require.Equal(t, []byte(log), union)
	}
}

func TestMalformedMerge(t *testing.T) {
	t.Parallel()
	good := func() *capping.Merge {
		return &capping.Merge{Users: []capping.UserID{7},
			Logs: []capping.Log{logWith(capping.Entry{At: 1}, capping.Entry{At: 1})}, Retention: time.Hour}
	}
	require.NoError(t, good().Check(make([]capping.Merged, 1)))
	require.ErrorContains(t, good().Check(nil), "merge of sends must have one log and one result for each of "+
		"1 users, got 1 logs and 0 results")
	for want, spoil := range map[string]func(m *capping.Merge){
		"one result for each of 2 users":                 func(m *capping.Merge) { m.Users = append(m.Users, 8) },
		"retention, the time for which":                  func(m *capping.Merge) { m.Retention = 0 },
		"user 7: stored log of a user's sends: the size": func(m *capping.Merge) { m.Logs[0] = append(m.Logs[0], 1) },
		"entry 1 is earlier than the previous entry": func(m *capping.Merge) {
			m.Logs[0] = logWith(capping.Entry{At: 2},
				capping.Entry{At: 1})
		},
		"user 7: the time of a send must be below 1099511627775 ms since 2024-01-01T00:00:00Z, " +
			"got 1099511627775": func(m *capping.Merge) {
			m.Logs[0] = logWith(capping.Entry{At: capping.Never})
		},
		"message id must have 1 to": func(m *capping.Merge) { m.Messages = []capping.Message{{}} },
	} {
		m := good()
		spoil(m)
		require.ErrorContains(t, m.Check(make([]capping.Merged, 1)), want)
	}
	require.Equal(t, capping.Merged{Done: true, Added: 65535}, capping.MergedOf(70_000))
}
