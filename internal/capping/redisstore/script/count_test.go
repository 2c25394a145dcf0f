package script

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/campaign"
	"capper/internal/capping"
)

// A call that counts names the counts as its last key, and says so in its header.
func TestCallsThatCount(t *testing.T) {
	t.Parallel()
	var plan Plan
	plan.Arrange(Standard, []uint32{300, 301})
	book := NewRulebook([][]capping.Rule{nil})
	token := capping.Token{1, 2, 3, 4, 5, 255}
	for counting, want := range map[Counting]struct {
		keys []blob
		mode string
	}{
		CountNone: {[]blob{blob("1"), blob("fc:{66e}:1")}, "\x01"},
		CountHere: {[]blob{blob("2"), blob("fc:{66e}:1"), blob("fc:{66e}:c:0102030405ff")}, "\x02"},
		CountTell: {[]blob{blob("1"), blob("fc:{66e}:1")}, "\x03"},
	} {
		var a Args
		a.Filter(New("x"), Standard, "fc:{66e}:", plan.Items, []uint8{0, 0}, &book, Counts{counting, token})
		a.StampFilter(Header{Now: 1, Record: true, Token: token})
		require.Equal(t, want.keys, a.args[2:2+len(want.keys)])
		mode := filterHeaderSize - tokenSize - 3
		require.Equal(t, want.mode, string(a.head[mode:mode+1]))
		a.Release(New("x"), Standard, "fc:{66e}:", plan.Items, Counts{counting, token})
		a.StampRelease(1, 0, 7, token)
		require.Equal(t, want.keys, a.args[2:2+len(want.keys)])
		require.Equal(t, want.mode, string(a.head[releaseHeaderSize-1:releaseHeaderSize]))
	}
	looks := Header{Now: 1, counting: CountHere}
	require.Equal(t, byte(0), looks.append(nil)[filterHeaderSize-tokenSize-3], "what is not recorded is not counted")
}

func TestWhatRepliesTell(t *testing.T) {
	t.Parallel()
	rest, owed, err := CountTell.SplitOwed("AR\x00\x00\x01\x02", 7)
	require.NoError(t, err)
	require.Equal(t, "AR", rest)
	require.Equal(t, []Owed{{7, campaign.Sends{Recorded: 258}}}, owed)
	rest, owed, err = CountTell.SplitOwed("R\x00\x00\x00\x00", 7)
	require.NoError(t, err)
	require.Equal(t, "R", rest)
	require.Empty(t, owed)
	rest, owed, err = CountTell.SplitReleased("DN\x07\x00\x00\x00\x01\xff\x00\x00\x01\x00\x02")
	require.NoError(t, err)
	require.Equal(t, "DN", rest)
	require.Equal(t, []Owed{{7, campaign.Sends{Released: 1}}, {255, campaign.Sends{Released: 256}}}, owed)
	rest, owed, err = CountTell.SplitReleased("N\x00")
	require.NoError(t, err)
	require.Equal(t, "N", rest)
	require.Empty(t, owed)
	for _, short := range []string{"", "\x00\x00\x00"} {
		_, _, err = CountTell.SplitOwed(short, 7)
		require.ErrorIs(t, err, ErrReply)
	}
	for _, short := range []string{"", "\x01", "\x07\x00\x00\x00\x01\x02"} {
		_, _, err = CountTell.SplitReleased(short)
		require.ErrorIs(t, err, ErrReply)
	}
	for _, silent := range []Counting{CountNone, CountHere} {
		rest, owed, err = silent.SplitOwed("AAAAAAAA", 7)
		require.NoError(t, err)
		require.Equal(t, "AAAAAAAA", rest)
		require.Empty(t, owed)
		rest, owed, err = silent.SplitReleased("DD")
		require.NoError(t, err)
		require.Equal(t, "DD", rest)
		require.Empty(t, owed)
	}
}

func TestStoredCounts(t *testing.T) {
	t.Parallel()
	sends := map[capping.Channel]campaign.Sends{}
	require.NoError(t, DecodeCounts([]string{"7", "430000000000005", "7r", "2", "0", "1", "later", "x"}, sends))
	require.NoError(t, DecodeCounts([]string{"7", "3", "255r", "4"}, sends))
	require.Equal(t, map[capping.Channel]campaign.Sends{
		7: {Recorded: 430000000000005%(1<<34) + 3, Released: 2}, 0: {Recorded: 1}, 255: {Released: 4},
	}, sends)
	for _, fields := range [][]string{{"7"}, {"7", "x"}, {"7", ""}} {
		require.ErrorIs(t, DecodeCounts(fields, sends), ErrReply)
	}
}

func TestCommandOfWhatIsOwed(t *testing.T) {
	t.Parallel()
	var a Args
	a.Owed(New("x"), "fc:{66e}:", capping.Token{1}, time.Second, []Owed{{7, campaign.Sends{Recorded: 3, Released: 2}},
		{0, campaign.Sends{Released: 1}}})
	a.StampOwed(42)
	require.Equal(t, []blob{
		blob("1"), blob("fc:{66e}:c:010000000000"), blob("42"), blob("1000"), blob("7"), blob("3"), blob("7r"),
		blob("2"), blob("0r"), blob("1"),
	}, a.args[2:])
}

// What is stored of answers is what was added.
func TestStoredAnswers(t *testing.T) {
	t.Parallel()
	delta := campaign.Delta{
		Key: campaign.Key{Message: capping.Message{Namespace: "growth", ID: "m"}, Channel: 200},
		Answers: campaign.Answers{
			Calls: 1, Asked: 100, Allowed: 2, Replayed: 3, Unavailable: 4,
			Denied: map[string]int64{"daily": 5, "": 6, "ü 7": 7}, Suppressed: map[string]int64{"a/b": 8},
			Shadow:   map[string]int64{"x": 9},
			Segments: map[string]campaign.SegmentAnswers{"new": {Asked: 1, Allowed: 2, Denied: 3}, "none": {Asked: 1}},
			First:    5, Last: 9, Configs: []string{"v1", "v2"},
		},
	}
	var a Args
	a.Answers(New("x"), AnswerKeys{"answers", "index", "message"}, &delta, [FlushSize]byte{1}, time.Hour, true)
	require.Equal(t, []blob{
		blob("3"), blob("answers"), blob("index"), blob("message"), blob("3600000"),
		blob("\x01\x00\x00\x00\x00\x00\x00\x00"),
		blob("\xffgrowth\xffm"), blob("200"), blob("1"), blob("5"), blob("9"), blob("v1\nv2\n"),
	}, a.args[2:14])
	stored := []string{"m", "text", "", "flushes", "200f", "5", "200l", "9", "200v", "v1\nv2\n",
		"200Kind of a later version", "1"}
	for _, arg := range a.args[14:] {
		stored = append(stored, string(arg))
	}
	found, err := DecodeAnswers(stored)
	require.NoError(t, err)
	require.Equal(t, map[capping.Channel]*campaign.Answers{200: &delta.Answers}, found)
	for _, fields := range [][]string{{"7c"}, {"7c", "x"}, {"256c", "1"}, {"7f", "1.5"}} {
		_, err := DecodeAnswers(fields)
		require.ErrorIs(t, err, ErrReply)
	}
	few := campaign.Delta{Key: delta.Key, Answers: campaign.Answers{Asked: capping.BulkUsers - 1}}
	a.Answers(New("x"), AnswerKeys{"answers", "index", "message"}, &few, [FlushSize]byte{1}, time.Hour, false)
	require.Empty(t, a.args[10], "begins no campaign")
	require.Empty(t, a.args[11], "no call")
}
