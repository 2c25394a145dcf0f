package capping_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

func drawEntry(t *rapid.T) capping.Entry {
	return capping.Entry{
		At:      capping.Instant(rapid.Int64Range(0, int64(capping.Never)-1).Draw(t, "at")),
		Channel: capping.Channel(rapid.Uint8().Draw(t, "channel")),
		Token:   capping.Token(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "token")),
	}
}

func TestInstant(t *testing.T) {
	t.Parallel()
	require.Zero(t, capping.InstantOf(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, capping.Instant(999), capping.InstantOf(time.Date(2024, 1, 1, 0, 0, 0, 999_999_999, time.UTC)))
	require.Equal(t, capping.Instant(-1), capping.InstantOf(time.Date(2023, 12, 31, 23, 59, 59, 999_000_000, time.UTC)))
	require.Equal(t, 2058, capping.Never.Time().Year())
	rapid.Check(t, func(t *rapid.T) {
		at := capping.Instant(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "at"))
		require.Equal(t, at, capping.InstantOf(at.Time()))
	})
}

func TestToken(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("promo-2026-11-20"))
	token := capping.Message{ID: "promo-2026-11-20"}.Token()
	require.Equal(t, sum[:6], token[:])
	require.Zero(t, capping.Message{ID: ""}.Token())
	require.NotZero(t, capping.Message{ID: "a"}.Token())
	require.Zero(t, capping.Message{Namespace: "growth"}.Token())
	named := sha256.Sum256([]byte("\xffgrowth\xffpromo-2026-11-20"))
	require.Equal(t, capping.Token(named[:6]), capping.Message{Namespace: "growth", ID: "promo-2026-11-20"}.Token())
}

// TestMessageText checks that every message text can be read back, and that two different messages have
// different texts. Stores keep the text and tokens are made of it.
func TestMessageText(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]capping.Message{
		"promo":                {ID: "promo"}, // as every record was before namespaces existed
		"":                     {},
		"\xffgrowth\xffpromo":  {Namespace: "growth", ID: "promo"},
		"\xffg\xffa/\x00é b":   {Namespace: "g", ID: "a/\x00é b"},
		"\xff\xffpromo":        {ID: "\xff\xffpromo"}, // not written by capper: shown unchanged
		"\xffgrowth":           {ID: "\xffgrowth"},
		"\xffgrowth\xff":       {ID: "\xffgrowth\xff"},
		"growth\xffpromo":      {ID: "growth\xffpromo"},
		"\xffgrowth\xffx\xffy": {Namespace: "growth", ID: "x\xffy"},
	} {
		require.Equal(t, message, capping.MessageOf(text), "%q", text)
		require.Equal(t, text, message.Text())
	}
	namespace := rapid.StringMatching(`([A-Za-z0-9][A-Za-z0-9_.-]{0,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		a := capping.Message{Namespace: namespace.Draw(t, "namespace"), ID: rapid.StringN(1, 4, 8).Draw(t, "id")}
		b := capping.Message{Namespace: namespace.Draw(t, "other namespace"), ID: rapid.StringN(1, 4, 8).Draw(t,
			"other id")}
		require.Equal(t, a, capping.MessageOf(a.Text()))
		require.Equal(t, a == b, a.Text() == b.Text())
	})
}

// TestEntryLayout fixes the layout of entries, which stores contain.
func TestEntryLayout(t *testing.T) {
	t.Parallel()
	log := capping.Log(nil).Record(nil, capping.Entry{At: 0x0102030405, Channel: 6, Token: capping.Token{7, 8, 9, 10,
		11, 12}}, 0)
	require.Equal(t, capping.Log{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, capping.Log(log))
}

func TestEntriesAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var log capping.Log
		var want []capping.Entry
		for _, e := range rapid.SliceOfN(rapid.Custom(drawEntry), 0, 20).Draw(t, "entries") {
			log = log.Record(nil, e, -1)
			if n := len(want); n > 0 { // never stamped before the newest entry
				e.At = max(e.At, want[n-1].At)
			}
			want = append(want, e)
		}
		require.NoError(t, log.Check())
		require.Equal(t, len(want), log.Len())
		require.Equal(t, want, append([]capping.Entry(nil), log.Entries()...))
	})
}

// TestRecordForgets checks that recording drops entries at or before the horizon of the call, even when the
// new entry has a later stamp.
func TestRecordForgets(t *testing.T) {
	t.Parallel()
	log := capping.Log(logOf(100, 200, 300).Record(nil, capping.Entry{At: 250, Token: letter(8)}, 200))
	require.Equal(t, []capping.Instant{300, 300}, []capping.Instant{log.At(0), log.At(1)})
	require.Equal(t, letter(8), log.Entry(1).Token)
	log = log.Record(nil, capping.Entry{At: 5}, 900)
	require.Equal(t, []capping.Entry{{At: 5}}, log.Entries())
}

// TestRecordAppends checks that Record keeps the given prefix and does not write to the log.
func TestRecordAppends(t *testing.T) {
	t.Parallel()
	log := logOf(1, 2)
	before := string(log)
	buffer := append(make([]byte, 0, 100), "prefix"...)
	buffer = log.Record(buffer, capping.Entry{At: 3}, 0)
	require.Equal(t, "prefix"+before, string(buffer[:6+len(before)]))
	require.Len(t, buffer, 6+3*capping.EntrySize)
	released, found := log.Release(buffer[:6], 0, letter(0), capping.Period{})
	require.True(t, found)
	require.Len(t, released, 6+capping.EntrySize)
	require.Equal(t, before, string(log))
}

func TestRecordBoundsByChannel(t *testing.T) {
	t.Parallel()
	log := capping.Log(nil).Record(nil, capping.Entry{At: 1, Channel: 9, Token: letter(9)}, 0)
	for i := range capping.LogBound + 5 {
		log = capping.Log(log).Record(nil, capping.Entry{At: capping.Instant(2 + i), Channel: 1}, 0)
	}
	bounded := capping.Log(log)
	require.Equal(t, capping.LogBound+1, bounded.Len())
	require.Equal(t, letter(9), bounded.Entry(0).Token, "the other channel's stays")
	require.Equal(t, capping.Instant(7), bounded.At(1), "the oldest of this channel went")
	require.NoError(t, bounded.Check())
}

// TestTokensAreFoundWhereTheyStand checks that the bytes of a token across two entries or inside a stamp are
// not taken for a send.
func TestTokensAreFoundWhereTheyStand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var log capping.Log
		small := rapid.ByteRange(0, 1) // so that accidental matches are frequent
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			e := capping.Entry{Channel: capping.Channel(small.Draw(t, "channel"))}
			e.At = capping.Instant(small.Draw(t, "high"))<<32 | capping.Instant(small.Draw(t, "low"))
			copy(e.Token[:], rapid.SliceOfN(small, 6, 6).Draw(t, "token"))
			log = log.Record(nil, e, -1)
		}
		token := capping.Token(rapid.SliceOfN(small, 6, 6).Draw(t, "sought"))
		channel := capping.Channel(small.Draw(t, "sought on"))
		horizon := capping.Instant(rapid.Int64Range(-1, 1<<32+1).Draw(t, "horizon"))
		want := capping.Allowed
		for _, e := range log.Entries() {
			if e.Token == token && e.Channel == channel && e.At > horizon && token != (capping.Token{}) {
				want = capping.Replayed
			}
		}
		require.Equal(t, want, capping.Judge(log, channel, token, nil, 1<<33, horizon).Outcome)
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	require.NoError(t, capping.Log(nil).Check())
	require.NoError(t, logOf(1, 1, 2).Check())
	require.ErrorContains(t, logOf(1, 2)[:13].Check(), "multiple of 12 bytes, got 13")
	backwards := append(append(capping.Log{}, logOf(2)...), logOf(1)...)
	require.ErrorContains(t, backwards.Check(), "entry 1")
}
