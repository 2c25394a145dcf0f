package pebblestore

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// FuzzDecodeLog checks that every accepted value is a valid log for all operations, and that encoding its
// entries again gives the same bytes.
func FuzzDecodeLog(f *testing.F) {
	one := capping.Log(nil).Record(nil, capping.Entry{At: 5, Channel: 3, Token: capping.Message{ID: "a"}.Token()}, 0)
	two := capping.Log(one).Record(nil, capping.Entry{At: 9, Channel: 255, Token: capping.Message{ID: "b"}.Token()}, 0)
	for _, seed := range [][]byte{nil, one, two, two[1:], append(two[12:24:24], one...),
		bytes.Repeat([]byte{255}, 12)} {
		f.Add(seed)
	}
	f.Add(append(beginLog(nil), two...))
	f.Add(append([]byte{7}, two...))
	f.Fuzz(func(t *testing.T, value []byte) {
		log, version, err := decodeLog(value)
		if err != nil {
			return
		}
		again := []byte{logVersion}
		if version == bareVersion {
			again = nil
		}
		for _, e := range log.Entries() {
			again = append(again, capping.Log(nil).Record(nil, e, -1)...)
		}
		require.Equal(t, value, again)
		rules := []capping.Rule{{Max: 1, Hold: 1000}, {Max: 2, Start: 3, Until: 9, Channels: capping.ChannelSetOf(3)}}
		token := capping.Message{ID: "c"}.Token()
		capping.Judge(log, 0, token, rules, 10, 0)
		next, version, err := decodeLog(log.Record(beginLog(nil), capping.Entry{At: 10, Token: token}, 0))
		require.NoError(t, err)
		require.Equal(t, logVersion, version)
		require.Equal(t, capping.Replayed, capping.Judge(next, 0, token, rules, 10, 0).Outcome)
		rest, found := next.Release(beginLog(nil), 0, token, capping.Period{})
		require.True(t, found)
		require.NoError(t, entriesOf(rest).Check())
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(encodeMessage(5, capping.Message{ID: "promo"}))
	f.Add(encodeMessage(5, capping.Message{Namespace: "growth", ID: "promo"}))
	f.Add([]byte("12345678"))
	f.Fuzz(func(t *testing.T, value []byte) {
		expires, message, err := decodeMessage(value)
		if err != nil {
			return
		}
		require.NotEmpty(t, message.ID)
		require.Equal(t, value, encodeMessage(expires, message))
	})
}

func TestRetentionRecord(t *testing.T) {
	t.Parallel()
	millis, err := decodeRetention(encodeRetention(123456))
	require.NoError(t, err)
	require.EqualValues(t, 123456, millis)
	millis, err = decodeRetention(nil)
	require.NoError(t, err)
	require.Zero(t, millis)
	for _, bad := range [][]byte{{}, {1}, make([]byte, 8), bytes.Repeat([]byte{255}, 8)} {
		_, err := decodeRetention(bad)
		require.Error(t, err)
	}
}
