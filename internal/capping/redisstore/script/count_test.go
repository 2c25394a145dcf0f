package script

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

// A counting call names the key of the counts last, and says so in its header.
func TestCallsThatCount(t *testing.T) {
	t.Parallel()
	var plan Plan
	users := []capping.UserID{300, 301}
	plan.Arrange(Standard, users)
	book := NewRulebook([][]capping.Rule{nil})
	token := capping.Token{1, 2, 3, 4, 5, 255}
	for counted, want := range map[bool]struct {
		keys []blob
		mode string
	}{
		false: {[]blob{blob("1"), blob("fc:{66e}:1")}, "\x01"},
		true:  {[]blob{blob("2"), blob("fc:{66e}:1"), blob("fc:{66e}:c:0102030405ff")}, "\x02"},
	} {
		var a Args
		a.Filter(New("x"), Standard, "fc:{66e}:", plan.Items, users, []uint8{0, 0}, &book,
			Counts{counted, token}, nil)
		a.StampFilter(Header{Now: 1, Record: true, Token: token})
		require.Equal(t, want.keys, a.args[2:2+len(want.keys)])
		mode := filterHeaderSize - tokenSize - 3
		require.Equal(t, want.mode, string(a.head[mode:mode+1]))
		a.Release(New("x"), Standard, "fc:{66e}:", plan.Items, users, Counts{counted, token})
		a.StampRelease(1, 0, 7, token, 2)
		require.Equal(t, want.keys, a.args[2:2+len(want.keys)])
		require.Equal(t, want.mode, string(a.head[releaseHeaderSize-1:releaseHeaderSize]))
	}
	looks := Header{Now: 1, counting: true}
	require.Equal(t, byte(0), looks.append(nil)[filterHeaderSize-tokenSize-3], "what is not recorded is not counted")
}

func TestStoredCounts(t *testing.T) {
	t.Parallel()
	sends := map[capping.Channel]messages.Sends{}
	for _, c := range []struct {
		fields  []string
		atLeast bool
	}{
		{[]string{"7", "430000000000005", "7r", "2", "0", "1", "later", "x"}, false},
		{[]string{"7", "3", "255r", "4", "least", "430000000000001"}, true},
		{nil, false},
	} {
		atLeast, err := DecodeCounts(c.fields, sends)
		require.NoError(t, err)
		require.Equal(t, c.atLeast, atLeast)
	}
	require.Equal(t, map[capping.Channel]messages.Sends{
		7: {Recorded: 430000000000005%(1<<34) + 3, Released: 2}, 0: {Recorded: 1}, 255: {Released: 4},
	}, sends)
	for _, fields := range [][]string{{"7"}, {"7", "x"}, {"7", ""}} {
		_, err := DecodeCounts(fields, sends)
		require.ErrorIs(t, err, ErrReply)
	}
}

func TestCommandThatMarksCounts(t *testing.T) {
	t.Parallel()
	var a Args
	for begins, mode := range map[bool]string{true: "1", false: "0"} {
		a.AtLeast(New("x"), "fc:{66e}:", capping.Token{1}, time.Second, begins)
		a.StampAtLeast(42)
		require.Equal(t, []blob{
			blob("1"), blob("fc:{66e}:c:010000000000"), blob("42"), blob("1000"), blob(mode),
		}, a.args[2:])
	}
}

// Stored answers equal the added answers.
func TestStoredAnswers(t *testing.T) {
	t.Parallel()
	delta := messages.Delta{
		Key: messages.Key{Message: capping.Message{Namespace: "growth", ID: "m"}, Channel: 200},
		Answers: messages.Answers{
			Calls: 1, Asked: 100, Allowed: 2, Replayed: 3, Unavailable: 4,
			Denied: map[string]int64{"daily": 5, "": 6, "ü 7": 7}, Suppressed: map[string]int64{"a/b": 8},
			Shadow:   map[string]int64{"x": 9},
			Segments: map[string]messages.SegmentAnswers{"new": {Asked: 1, Allowed: 2, Denied: 3}, "none": {Asked: 1}},
			First:    5, Last: 9, Configs: []string{"v1", "v2"},
		},
	}
	var a Args
	a.Answers(New("x"), AnswerKeys{"answers", "index", "message", "sizes"}, &delta, [FlushSize]byte{1}, time.Hour, true)
	require.Equal(t, []blob{
		blob("4"), blob("answers"), blob("index"), blob("message"), blob("sizes"), blob("3600000"),
		blob("\x01\x00\x00\x00\x00\x00\x00\x00"),
		blob("\xffgrowth\xffm"), blob("200"), blob("1"), blob("5"), blob("9"), blob("v1\nv2\n"),
	}, a.args[2:15])
	stored := []string{"m", "text", "", "flushes", "200f", "5", "200l", "9", "200v", "v1\nv2\n",
		"200Kind of a later version", "1"}
	for _, arg := range a.args[15:] {
		stored = append(stored, string(arg))
	}
	found, err := DecodeAnswers(stored)
	require.NoError(t, err)
	require.Equal(t, map[capping.Channel]*messages.Answers{200: &delta.Answers}, found)
	for _, fields := range [][]string{{"7c"}, {"7c", "x"}, {"256c", "1"}, {"7f", "1.5"}} {
		_, err := DecodeAnswers(fields)
		require.ErrorIs(t, err, ErrReply)
	}
	few := messages.Delta{Key: delta.Key, Answers: messages.Answers{Asked: capping.BulkUsers - 1}}
	a.Answers(New("x"), AnswerKeys{"answers", "index", "message", "sizes"}, &few, [FlushSize]byte{1}, time.Hour, false)
	require.Empty(t, a.args[11], "begins no campaign")
	require.Empty(t, a.args[12], "no call")
}
