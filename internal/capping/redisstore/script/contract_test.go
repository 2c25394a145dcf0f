package script

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestCommandOfAFilterCall(t *testing.T) {
	t.Parallel()
	b := batchOf("m", []capping.UserID{300, 2, 301, 190 * 128}, rolling(2, 24*time.Hour))
	b.Rules = append(b.Rules, []capping.Rule{
		{Max: 1, Start: 5, Until: 9, Channels: capping.ChannelSetOf(2, 255)},
		{Max: 1, Start: 5, Until: 9, Channels: capping.ChannelSetOf(0), Shadow: true},
		{Max: 3, Hold: 7, Shadow: true},
	})
	b.Groups = []uint8{0, 1, 1, 0}
	b.Channel = 7
	var plan Plan
	plan.Arrange(Standard, b.Users)
	book := NewRulebook(b.Rules)
	var a Args
	a.Filter(New("x"), Standard, "fc:{66e}:", plan.Items[plan.Parts[0].Start:plan.Parts[0].End], b.Users,
		b.Groups, &book, Counts{}, nil)
	a.StampFilter(Header{
		Now: 0x0102030405, Since: capping.Never, Retention: b.Retention, Forget: b.Retention, Skew: time.Second,
		Record: true, Channel: b.Channel, Token: b.Token,
	})

	require.Equal(t, []blob{
		blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("2"), blob("fc:{66e}:0"),
		blob("fc:{66e}:3k"),
		blob("\x01\x02\x03\x04\x05" + "\xff\xff\xff\xff\xff" + "\x00\x00\x24\x0c\x84\x00" + "\x00\x00\x24\x0c\x84\x00" +
			"\x00\x00\x24\x0c\x8b\xd0" +
			"\x00\x00\x24\x9c\xbe\x00" + "\x00\x00\x03\xe8" + "\x01\x07\x01" + string(b.Token[:])),
		a.rules,
		blob("\x01\x02\x00" + "\x01\x00\x01"), // groups by their number in the call
	}, a.args)
	require.Equal(t, "\x03"+
		"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x09\x01"+"\x04"+string(make([]byte, 30))+
		"\x80"+
		"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x09\x03"+"\x01"+string(make([]byte, 31))+
		"\x00\x03\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"+
		"\x01\x00\x02\x00\x00\x05\x26\x5c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", string(a.rules))
}

// The users of a spread store stand in calls with their raw fields.
func TestCommandsOfASpreadStore(t *testing.T) {
	t.Parallel()
	k := Spread(16)
	users := []capping.UserID{0x0123456789abcdef, 0x0123ffffffffffef, 0x0124000000000000 + 47, 0x0123000000000000 + 47}
	var plan Plan
	plan.Arrange(k, users)
	require.Equal(t, []Part{{47, 0, 4}}, plan.Parts)
	book := NewRulebook([][]capping.Rule{nil, nil})
	groups := []uint8{0, 1, 1, 0}
	var a Args
	a.Filter(New("x"), k, "p:", plan.Items, users, groups, &book, Counts{}, nil)
	require.Equal(t, []blob{blob("2"), blob("p:83"), blob("p:84")}, a.args[2:5])
	const first, second = "\x8d\x15\x9e\x26\xaf\x37", "\x8f\xff\xff\xff\xff\xff"
	const third, fourth = "\x90\x00\x00\x00\x00\x00", "\x8c\x00\x00\x00\x00\x00"
	require.Equal(t, "\x03"+first+second+fourth+"\x00\x01\x00"+"\x01"+third+"\x01", string(a.users))
	a.Release(New("x"), k, "p:", plan.Items, users, Counts{})
	require.Equal(t, "\x03"+first+second+fourth+"\x01"+third, string(a.users))
	logs := []capping.Log{make(capping.Log, capping.EntrySize), nil, nil, nil}
	a.Union(New("x"), k, "p:", plan.Items, users, logs, nil)
	const none = "\x00\x00\x00"
	require.Equal(t, "\x03"+first+"\x00\x00\x01"+second+none+fourth+none+"\x01"+third+none, string(a.users))
}

// A call carries only the rules of its users' groups, and a limited number of them.
func TestUsersOfACallUnderManyRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ groups, rules, want int }{
		{1, 0, 512}, {1, 2, 512}, {5, 8, 512}, {255, 3, 512}, {1, 16, 256}, {1, 255, 16}, {255, 8, 128}, {255, 32, 32},
		{256, 255, 4},
	} {
		groups := make([][]capping.Rule, test.groups)
		for i := range groups {
			groups[i] = make([]capping.Rule, test.rules)
		}
		b := NewRulebook(groups)
		require.Equal(t, test.want, b.CallUsers(512), test)
	}
}

func TestVerdictsOfAReply(t *testing.T) {
	t.Parallel()
	rules := []capping.Rule{{Max: 0}, rolling(1, 100*time.Millisecond), {Max: 1, Start: 1, Until: 500}}
	b := batchOf("m", make([]capping.UserID, 7), rules...)
	items := []uint64{Standard.Item(1, 6), Standard.Item(2, 5), Standard.Item(3, 4), Standard.Item(4, 3),
		Standard.Item(5, 2), Standard.Item(6, 1), Standard.Item(7, 0)}
	verdicts := make([]capping.Verdict, 7)
	var bad BadLogs
	n, err := DecodeVerdicts("ARD\x00\xff\xff\xff\xff\xffD\x01\x00\x00\x00\x00\x05D\x02\x00\x00\x00\x00\x05CT", items,
		b, verdicts, &bad)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	D := capping.Denied
	require.Equal(t, []capping.Verdict{
		{}, {}, {Outcome: D, Rule: 2, FreesAt: 500}, {Outcome: D, Rule: 1, FreesAt: 105},
		{Outcome: D, FreesAt: capping.Never}, {Outcome: capping.Replayed}, {Outcome: capping.Allowed},
	}, verdicts)
	require.Equal(t, BadLogs{Corrupt: 1, WrongType: 1}, bad)
	for _, reply := range []string{"x", "D", "D\x03\x00\x00\x00\x00\x00", "D\x01\x00\x00\x00\x00", "AAAAAAAA"} {
		_, err := DecodeVerdicts(reply, items, b, verdicts, &bad)
		require.ErrorIs(t, err, ErrReply, "%q", reply)
	}
}

// A reply with bits of other rules than shadow rules is rejected.
func TestShadowsOfAReply(t *testing.T) {
	t.Parallel()
	rules := make([]capping.Rule, 33)
	for i := range rules {
		rules[i] = rolling(1, time.Hour)
		rules[i].Shadow = i == 1 || i == 3 || i == 31
	}
	b := batchOf("m", make([]capping.UserID, 3), rules...)
	items := []uint64{Standard.Item(1, 2), Standard.Item(2, 1), Standard.Item(3, 0)}
	verdicts := make([]capping.Verdict, 3)
	n, err := DecodeVerdicts("S\x00\x00\x00\x02AS\x80\x00\x00\x08", items, b, verdicts, &BadLogs{})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	A := capping.Allowed
	require.Equal(t, []capping.Verdict{{Outcome: A, Shadow: 1<<31 | 1<<3}, {Outcome: A}, {Outcome: A, Shadow: 2}},
		verdicts)
	for _, reply := range []string{
		"S", "S\x00\x00\x00", "S\x00\x00\x00\x00", "S\x00\x00\x00\x01", "S\x00\x00\x00\x03", "S\xff\xff\xff\xff",
		"AAAS\x00\x00\x00\x02",
	} {
		_, err := DecodeVerdicts(reply, items, b, make([]capping.Verdict, 3), &BadLogs{})
		require.ErrorIs(t, err, ErrReply, "%q", reply)
	}
	few := batchOf("m", make([]capping.UserID, 3), rules[:2]...)
	_, err = DecodeVerdicts("S\x00\x00\x00\x08", items, few, verdicts, &BadLogs{})
	require.ErrorIs(t, err, ErrReply, "there is no fourth rule")
}

// A reply decides exactly the users that it answers, whatever its bytes.
func FuzzVerdicts(f *testing.F) {
	f.Add("AR", uint8(3))
	f.Add("D\x01\x00\x00\x00\x00\x05CT", uint8(3))
	f.Add("S\x00\x00\x00\x04A", uint8(3))
	f.Fuzz(func(t *testing.T, reply string, users uint8) {
		b := batchOf("m", make([]capping.UserID, users), rolling(1, time.Hour), rolling(0, time.Hour),
			capping.Rule{Hold: 1, Shadow: true})
		items := make([]uint64, users)
		for i := range items {
			items[i] = Standard.Item(capping.UserID(i), i)
		}
		verdicts := make([]capping.Verdict, users)
		var bad BadLogs
		n, err := DecodeVerdicts(reply, items, b, verdicts, &bad)
		require.LessOrEqual(t, n, int(users))
		decided := 0
		for i, v := range verdicts {
			if v.Outcome != capping.Unavailable {
				decided++
				require.Less(t, i, n)
				require.Contains(t, []uint32{0, 4}, v.Shadow)
			}
		}
		if err == nil {
			require.Equal(t, n, decided+bad.Corrupt+bad.WrongType)
		}
		released := make([]capping.Released, users)
		bad = BadLogs{}
		n, err = DecodeReleased(reply, items, false, released, &bad)
		require.LessOrEqual(t, n, int(users))
		if err == nil {
			require.Equal(t, n, count(released, capping.ReleaseDone)+count(released, capping.ReleaseAbsent)+bad.Corrupt+
				bad.WrongType)
		}
		if DecodeErased(reply, &bad) == nil {
			require.Contains(t, []string{"D", "N", "T"}, reply)
		}
	})
}

func TestCommandsOfReleasesAndErasures(t *testing.T) {
	t.Parallel()
	var plan Plan
	users := []capping.UserID{300, 301, 190 * 128}
	plan.Arrange(Standard, users)
	var a Args
	a.Release(New("x"), Standard, "fc:{66e}:", plan.Items[:1], users, Counts{true, capping.Token{1, 2, 3, 4, 5, 6}})
	a.StampRelease(0x0102030405, time.Second, 7, capping.Token{1, 2, 3, 4, 5, 6}, 0x0a0b0c0d0e)
	require.Equal(t, []blob{
		blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("2"), blob("fc:{66e}:3k"),
		blob("fc:{66e}:c:010203040506"),
		blob("\x01\x02\x03\x04\x05" + "\x00\x00\x03\xe8" + "\x07\x01\x02\x03\x04\x05\x06" +
			"\x0a\x0b\x0c\x0d\x0e" + "\x02"), blob("\x01\x00"),
	}, a.args)
	a.Erase(New("x"), "fc:{66e}:3k", "0")
	a.StampTime(0x0102030405, time.Second)
	require.Equal(t, []blob{
		blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("1"), blob("fc:{66e}:3k"), blob("0"),
		blob("\x01\x02\x03\x04\x05" + "\x00\x00\x03\xe8"),
	}, a.args)
	require.Len(t, a.Values(), len(a.args))
}

func TestOutcomesOfReleasesAndErasures(t *testing.T) {
	t.Parallel()
	var bad BadLogs
	items := []uint64{Standard.Item(1, 3), Standard.Item(2, 2), Standard.Item(3, 1), Standard.Item(4, 0)}
	for again, absent := range map[bool]capping.Released{false: capping.ReleaseAbsent, true: capping.ReleaseDone} {
		released := make([]capping.Released, 4)
		n, err := DecodeReleased("DNC", items, again, released, &bad)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, []capping.Released{0, 0, absent, capping.ReleaseDone}, released)
	}
	for _, reply := range []string{"x", "DDDDD"} {
		_, err := DecodeReleased(reply, items, false, make([]capping.Released, 4), &bad)
		require.ErrorIs(t, err, ErrReply)
	}
	for reply, want := range map[string]error{"D": nil, "N": nil, "T": nil, "": ErrReply, "DD": ErrReply} {
		require.ErrorIs(t, DecodeErased(reply, &bad), want)
	}
	require.Equal(t, BadLogs{Corrupt: 2, WrongType: 1}, bad)
}

func TestReplyOfASharedRate(t *testing.T) {
	t.Parallel()
	require.Equal(t, []any{10, 20, 5}, RateArgs(capping.Rate{UsersPerSecond: 10, Burst: 20}, 5))
	state, err := DecodeRate([]int64{1, 15, 0, 500})
	require.NoError(t, err)
	require.Equal(t, capping.RateState{Allowed: true, Remaining: 15, ResetAfter: 500 * time.Millisecond}, state)
	state, err = DecodeRate([]int64{0, 2, 300, 1800})
	require.NoError(t, err)
	require.Equal(t, capping.RateState{Remaining: 2, RetryAfter: 300 * time.Millisecond,
		ResetAfter: 1800 * time.Millisecond}, state)
	for _, reply := range [][]int64{nil, {1, 2, 3}, {2, 0, 0, 0}, {-1, 0, 0, 0}} {
		_, err := DecodeRate(reply)
		require.ErrorIs(t, err, ErrReply)
	}
}

func count(released []capping.Released, what capping.Released) (n int) {
	for _, r := range released {
		if r == what {
			n++
		}
	}
	return n
}

func rolling(max int, d time.Duration) capping.Rule {
	return capping.Rule{Max: max, Hold: d.Milliseconds()}
}

// batchOf returns a recording batch of one group.
func batchOf(message string, users []capping.UserID, rules ...capping.Rule) *capping.Batch {
	return &capping.Batch{
		Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(), Users: users,
		Groups: make([]uint8, len(users)),
		Rules:  [][]capping.Rule{rules}, Record: true, Retention: 7 * 24 * time.Hour,
	}
}
