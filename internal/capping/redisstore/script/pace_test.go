package script

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

func paceAsk() *pacing.Ask {
	return &pacing.Ask{
		Targets: []pacing.Target{
			{Pacer: "carrier", Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond},
				{Max: 0x010203, Window: 24 * time.Hour}}},
			{Pacer: "campaign", Message: "0a1b", Limits: []pacing.Limit{{Max: 5, Window: 31 * 24 * time.Hour}}},
		},
		Permits: 500, MaxWait: 2 * time.Second, Request: pacing.Request{0xab, 15: 1},
	}
}

func TestCommandOfACallForPermits(t *testing.T) {
	t.Parallel()
	keys, ask := PacerKeys{Prefix: "fc:{x}:"}, paceAsk()
	fingerprint := ask.Fingerprint()
	var a Args
	for _, request := range []bool{true, false} {
		a.Pace(New("x"), keys, ask, nil)
		a.StampPace(0x0102030405, time.Second)
		text := "\x01\x02\x03\x04\x05" + "\x00\x00\x03\xe8" + "\x00\x01\xf4" + "\x00\x00\x1e\x84\x80" +
			"\x00\x00\x00\xf2\x30" + "\x01\x02" +
			"\x00" + "\x00\x14\x1d\xd7\x60\x00" + "\x02" + "\x00\x00\x01" + "\x00\x00\x00\x00\x0f\xa0" +
			"\x01\x02\x03" + "\x00\x14\x1d\xd7\x60\x00" +
			"\x01" + "\x02\x6f\x9d\x14\xa0\x00" + "\x01" + "\x00\x00\x05" + "\x02\x6f\x9d\x14\xa0\x00" +
			string(fingerprint[:])
		want := []blob{
			blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("4"), blob("fc:{x}:p:carrier"),
			blob("fc:{x}:p:campaign:0a1b"),
			blob("fc:{x}:pf:campaign"), blob("fc:{x}:pq:ab000000000000000000000000000001"), blob(text),
		}
		if !request {
			want = append(append(append(want[:2:2], blob("3")), want[3:6]...),
				blob(strings.Replace(text[:len(text)-8], "\x01\x02\x00", "\x00\x02\x00", 1)))
		}
		require.Equal(t, want, a.args)
		ask.Request = pacing.Request{}
	}
	one, two := *paceAsk(), *paceAsk()
	one.Permits, two.Permits, two.Request = 300, 200, pacing.Request{1}
	prints := [][8]byte{one.Fingerprint(), two.Fingerprint()}
	a.Pace(New("x"), keys, ask, []*pacing.Ask{&one, &two})
	require.Equal(t, []blob{blob("fc:{x}:pf:campaign"), blob("fc:{x}:pq:ab000000000000000000000000000001"),
		blob("fc:{x}:pq:01000000000000000000000000000000")}, a.args[5:8])
	text := string(a.args[8])
	require.Equal(t, "\x00\x01\xf4"+"\x00\x00\x1e\x84\x80"+"\x00\x00\x00\xf2\x30"+"\x03\x02", text[9:24])
	require.Equal(t, "\x00\x01\x2c"+string(prints[0][:])+"\x00\x00\xc8"+string(prints[1][:]), text[len(text)-22:])
	a.Forget(New("x"), keys, "carrier")
	a.StampPace(0x0102030405, time.Second)
	require.Equal(t, []blob{
		blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("2"), blob("fc:{x}:p:carrier"),
		blob("fc:{x}:pf:carrier"),
		blob("\x01\x02\x03\x04\x05" + "\x00\x00\x03\xe8"), blob("2848500000"),
	}, a.args)
	require.Greater(t, forgottenFor, pacing.MaxWait+pacing.MaxWindow+pacing.MaxWindow/64,
		"the longest life of a log, see pace.lua")
}

// number encodes v in n bytes.
func number(v int64, n int) string { return string(appendUint(nil, uint64(v), n)) }

func TestGrantOfAReply(t *testing.T) {
	t.Parallel()
	ask := paceAsk()
	const now = 1_795_000_000_000_000
	run := string(pacing.AppendRun(pacing.AppendRun(nil, pacing.Run{At: now, Burst: 1}),
		pacing.Run{At: now + 4000, Every: 4000, Burst: 1, First: 70}))
	reply := "G\x02" + number(now, 7) + number(now+1_004_000, 7) + "\x00\x01" +
		number(now+1_000_000, 7) + number(now+1_004_000, 7) + number(1, 3) + number(320, 3) +
		number(now-5, 7) + number(now, 7) + number(3, 3) + number(320, 6) + run
	paced, err := DecodePaced(reply, ask)
	require.NoError(t, err)
	require.Equal(t, pacing.Grant{
		At: now, Granted: 320, More: true, Next: 1004 * time.Millisecond, Target: 0, Limit: 1,
		Runs: []pacing.WaitRun{{Burst: 1, Permits: 70}, {Wait: 4 * time.Millisecond, Every: 4 * time.Millisecond,
			Burst: 1, Permits: 250}},
		States: []pacing.State{
			{Queue: time.Second, Next: 1004 * time.Millisecond, Used: []int{1, 320}}, {Used: []int{3}},
		},
	}, paced.Grant)
	single := *ask
	single.Targets = ask.Targets[:1]
	reply = "S" + number(now, 7) + number(now+7, 7) + number(now+9, 7) + "\xfe" + number(5, 3) + number(1, 3) +
		number(320, 3)
	paced, err = DecodePaced(reply, &single)
	require.NoError(t, err)
	require.Equal(t, pacing.Grant{
		At: now, Granted: 5, Next: 9 * time.Microsecond, Limit: pacing.ByQueue,
		Runs:   []pacing.WaitRun{{Wait: 7 * time.Microsecond, Burst: 1, Permits: 5}},
		States: []pacing.State{{Queue: 7 * time.Microsecond, Next: 9 * time.Microsecond, Used: []int{1, 325}}},
	}, paced.Grant)
	for reply, want := range map[string]Paced{
		"U": {Full: -1, Reused: true}, "R\x00\xff": {Full: -1, Repeated: []int{0, 255}},
		"F\x01" + number(now, 7): {Full: 1, Now: now},
		"T\x00":                  {Full: -1, Bad: BadLogs{WrongType: 1}}, "C\x02": {Full: -1, Bad: BadLogs{Corrupt: 1}},
	} {
		paced, err = DecodePaced(reply, ask)
		require.NoError(t, err)
		require.Equal(t, want, paced)
	}
	for _, bad := range []string{"", "x", "U2", "F\x02" + number(now, 7), "F", "G", "S", reply, "T", "G\x04" +
		reply[2:]} {
		_, err = DecodePaced(bad, ask)
		require.ErrorIs(t, err, ErrReply, "%q", bad)
	}
	ask.Request = pacing.Request{}
	_, err = DecodePaced("U", ask)
	require.ErrorIs(t, err, ErrReply)
}

// A decoded grant has at most the requested permits, whatever the reply's bytes, and as many as its runs have.
func FuzzPaced(f *testing.F) {
	const now = 1_795_000_000_000_000
	f.Add("S"+number(now, 7)+number(now+7, 7)+number(now+9, 7)+"\xfe"+number(5, 3)+number(1, 3)+number(320, 3), true)
	f.Add("G\x02"+number(now, 7)+number(now, 7)+"\xff\xff"+strings.Repeat(number(now, 7), 4)+strings.Repeat("\x00", 9)+
		number(5, 6)+
		string(pacing.AppendRun(nil, pacing.Run{At: now, Burst: 1})), false)
	f.Fuzz(func(t *testing.T, reply string, single bool) {
		ask := paceAsk()
		if single {
			ask.Targets = ask.Targets[:1]
		}
		paced, err := DecodePaced(reply, ask)
		if err != nil {
			require.Equal(t, Paced{}, paced)
			return
		}
		g, permits := &paced.Grant, 0
		for _, run := range g.Runs {
			require.Positive(t, run.Permits)
			permits += run.Permits
		}
		require.Equal(t, g.Granted, permits)
		require.LessOrEqual(t, g.Granted, ask.Permits)
		require.Less(t, g.Target, len(ask.Targets))
		if g.At != 0 {
			require.Len(t, g.States, len(ask.Targets))
		}
	})
}

// storedLog returns a log in the form that pace.lua stores.
func storedLog(log *pacing.Log, cursors int) string {
	l := PacerLog{Log: log, trailer: strings.Repeat("\x07", cursorsAt) + string(rune(cursors)) + "\x01"}
	return string(l.merged())
}

func TestPacerLogsAreReadAndWritten(t *testing.T) {
	t.Parallel()
	log := &pacing.Log{}
	log.Append(100, 0, 5, 5)
	log.Append(130, 0, 7, 7)
	stored := storedLog(log, 2)
	l, err := DecodePacerLog(stored)
	require.NoError(t, err)
	require.Equal(t, log, l.Log)
	require.False(t, l.Full())
	require.Equal(t, stored[len(stored)-trailerSize:], l.trailer)
	require.Equal(t, uint64(0x07070708), (&reader{rest: l.trailer[rewrittenAt:]}).uint(rewriteSize),
		"rewritten once more")
	require.Equal(t, strings.Repeat("\x07", 2*timeSize), l.trailer[untilAt:rewrittenAt], "made and lasting as before")
	var a Args
	a.Merge(New("x"), "k", &l)
	require.Equal(t, blob(l.trailer), a.args[4])
	require.Len(t, a.args[5], len(stored))
	for _, bad := range []string{"", "x", stored[1:], stored[:len(stored)-1] + "\x02", stored + "\x01",
		stored[pacing.RunSize:]} {
		_, err := DecodePacerLog(bad)
		require.Error(t, err, "%q", bad)
	}
	for reply, want := range map[string]error{"D": nil, "N": nil, "": ErrReply, "T": ErrReply} {
		require.ErrorIs(t, DecodeMerged(reply), want)
	}
}

// Slots ahead stay as they are when the log is merged, and the merge notices when they change.
func TestPacerLogsWithSlotsAhead(t *testing.T) {
	t.Parallel()
	log := &pacing.Log{}
	log.Append(100, 0, 5, 5)
	log.Stand(200, 1)
	log.Stand(230, 1)
	log.Stand(260, 1)
	log.Stand(210, 1)
	ahead := string(log.Ahead.Append(nil)) + "\x00\x00" + "\x00\x26\x02" // two bytes of padding
	require.Equal(t, "\x00\x00\x00\x00\x00\x00\xc8"+"\x00\x00\x00\x00\x1e"+"\x00\x00\x01"+"\x00\x00\x03"+
		"\x00\x00\x00\x00\x00\x00\xd2"+"\x00\x00\x00\x00\x00"+"\x00\x00\x01"+"\x00\x00\x01", ahead[:36])
	made := PacerLog{Log: log, ahead: ahead, trailer: strings.Repeat("\x07", cursorsAt) + "\x01\x02"}
	stored := string(made.merged())
	l, err := DecodePacerLog(stored)
	require.NoError(t, err)
	require.Equal(t, log, l.Log)
	require.Equal(t, ahead, l.ahead)
	var a Args
	a.Merge(New("x"), "k", &l)
	require.Equal(t, blob(ahead+l.trailer), a.args[4])
	for _, bad := range []string{stored[:len(stored)-1] + "\x01", stored[:len(stored)-1] + "\x03",
		stored[pacing.RunSize:], strings.Replace(stored, "\x26\x02", "\x26\x03", 1),
		strings.Replace(stored, "\x26\x02", "\x26\x00", 1)} {
		_, err := DecodePacerLog(bad)
		require.Error(t, err)
	}
}

// A decoded log is valid, whatever the bytes, and encodes to the same bytes except for the changes by merging.
func FuzzPacerLog(f *testing.F) {
	log := &pacing.Log{}
	log.Append(100, 0, 5, 5)
	f.Add(storedLog(log, 0))
	f.Add(storedLog(log, 3))
	log.Stand(200, 1)
	made := PacerLog{Log: log, ahead: string(log.Ahead.Append(nil)) + "\x00\x12\x01",
		trailer: strings.Repeat("\x07", cursorsAt) + "\x00\x02"}
	f.Add(string(made.merged()))
	f.Fuzz(func(t *testing.T, stored string) {
		l, err := DecodePacerLog(stored)
		if err != nil {
			return
		}
		again, err := DecodePacerLog(string(l.merged()))
		require.NoError(t, err)
		require.Equal(t, l.Log, again.Log)
		require.Len(t, l.merged(), len(stored))
		require.Equal(t, l.trailer[untilAt:rewrittenAt], again.trailer[untilAt:rewrittenAt])
	})
}
