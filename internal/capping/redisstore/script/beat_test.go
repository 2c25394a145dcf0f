package script

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestArgumentsOfABeat(t *testing.T) {
	t.Parallel()
	m := NewMarker(Standard, IDs{}, "fc", Known)
	require.Equal(t, []string{"fc:{format}", "fc:{format}:store", "fc:{format}:retentions", "fc:{format}:channels",
		"fc:{format}:instances"}, m.Keys())
	b := Beat{
		Mode: Adopt, Retention: 1000, ID: "a1", Description: `{"formats":"1-2"}`, Silent: 30 * time.Second,
		Life:     time.Hour,
		Channels: map[string]capping.Channel{"push": 1},
	}
	space := "bucket 190 partitions 64 epoch 2024-01-01"
	require.Equal(t, []any{
		"capper log 3 least 3 " + space, 1, 3, space, 1, int64(1000), "a1", `{"formats":"1-2"}`, int64(30_000),
		int64(3_600_000), "push", 1,
	}, b.Args(&m))
	older := NewMarker(Standard, IDs{}, "fc", Known[:1])
	require.Equal(t, "capper log 1 "+space, older.Text)
	require.Equal(t, 3, older.Refusal(m.Text).Found)
	require.Equal(t, "1-1", Known[:1].String())
}

func TestReplyOfABeat(t *testing.T) {
	t.Parallel()
	for outcome, reply := range map[string][]string{
		"format": {"format", "something"}, "gone": {"gone"}, "channel": {"channel", "push", "1", "push", "2"},
	} {
		heard, err := DecodeBeat(reply)
		require.NoError(t, err)
		require.Equal(t, outcome, heard.Outcome)
	}
	heard, err := DecodeBeat([]string{"found", "1000", "5", "1", "1", "2", "a1", "{}", "b2", "x"})
	require.NoError(t, err)
	require.Equal(t, Heard{
		Outcome: "found", Longest: time.Second, Born: time.UnixMilli(5), Signed: true, Before: 1, Format: 2,
		Others: map[string]string{"a1": "{}", "b2": "x"},
	}, heard)
	for _, reply := range [][]string{
		nil, {}, {"format"}, {"gone", "x"}, {"channel", "push"}, {"x"}, {"found"}, {"found", "1", "5", "1", "1"},
		{"found", "one", "5", "1", "1", "2"}, {"made", "1", "5", "1", "1", "two"}, {"found", "1", "5", "1", "1", "2",
			"alone"},
	} {
		_, err := DecodeBeat(reply)
		require.ErrorIs(t, err, ErrReply, "%q", reply)
	}
}

// DecodeBeat decodes a whole reply or returns an error.
func FuzzBeat(f *testing.F) {
	f.Add("found,1000,5,1,1,2,a1,{}")
	f.Add("channel,push,1,push,2")
	f.Fuzz(func(t *testing.T, text string) {
		reply := strings.Split(text, ",")
		heard, err := DecodeBeat(reply)
		switch {
		case err != nil:
			require.Equal(t, Heard{}, heard)
		case heard.Format > 0:
			require.LessOrEqual(t, len(heard.Others), (len(reply)-6)/2)
		default:
			require.Equal(t, reply[0], heard.Outcome)
		}
	})
}
