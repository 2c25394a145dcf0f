package redisstore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func TestCommandOfAFilterCall(t *testing.T) {
	t.Parallel()
	b := batchOf("m", []capping.UserID{300, 2, 301, 190 * 128}, rolling(2, 24*time.Hour))
	b.Rules = append(b.Rules, []capping.Rule{{Max: 1, Start: 5, Until: 9, Channels: capping.ChannelSetOf(2, 255)}})
	b.Groups = []uint8{0, 1, 1, 0}
	b.Channel = 7
	var o order
	o.arrange(standardLayout, b.Users)
	c := &call{items: o.items[o.parts[0].start:o.parts[0].end], since: capping.Never, now: 0x0102030405}
	job := &filterJob{batch: b, verdicts: make([]capping.Verdict, 4)}
	require.NoError(t, job.prepare(time.Second))
	rules := c.chooseRules(&job.rules, b.Groups)
	c.encodeUsers(standardLayout, "fc:{66e}:", scriptOf("x"), b.Groups, c.head[:], rules)
	job.stamp(c)

	require.Equal(t, []blob{
		blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("2"), blob("fc:{66e}:0"), blob("fc:{66e}:3k"),
		blob("\x01\x02\x03\x04\x05" + "\xff\xff\xff\xff\xff" + "\x00\x00\x24\x0c\x84\x00" + "\x00\x00\x24\x0c\x84\x00" + "\x00\x00\x24\x0c\x8b\xd0" +
			"\x00\x00\x24\x9c\xbe\x00" + "\x00\x00\x03\xe8" + "\x01\x07\x01" + string(b.Token[:])),
		rules,
		blob("\x01\x02\x00" + "\x01\x00\x01"), // groups by their number in the call
	}, c.args)
	require.Equal(t, "\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x09\x01"+
		"\x04"+string(make([]byte, 30))+"\x80"+
		"\x01\x00\x02\x00\x00\x05\x26\x5c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", string(rules))
}

func TestRulesThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	_, err := newRulebook(nil)
	require.ErrorContains(t, err, "0 groups of rules: must be 1 to 256")
	_, err = newRulebook(make([][]capping.Rule, 257))
	require.Error(t, err)
	_, err = newRulebook([][]capping.Rule{make([]capping.Rule, 256)})
	require.ErrorContains(t, err, "at most 255")
}

func TestVerdictsOfAReply(t *testing.T) {
	t.Parallel()
	rules := []capping.Rule{{Max: 0}, rolling(1, 100*time.Millisecond), {Max: 1, Start: 1, Until: 500}}
	b := batchOf("m", make([]capping.UserID, 7), rules...)
	items := []uint64{item(1, 6), item(2, 5), item(3, 4), item(4, 3), item(5, 2), item(6, 1), item(7, 0)}
	verdicts := make([]capping.Verdict, 7)
	var bad badLogs
	n, err := decodeVerdicts("ARD\x00\xff\xff\xff\xff\xffD\x01\x00\x00\x00\x00\x05D\x02\x00\x00\x00\x00\x05CT", items, b, verdicts, &bad)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	D := capping.Denied
	require.Equal(t, []capping.Verdict{
		{}, {}, {Outcome: D, Rule: 2, FreesAt: 500}, {Outcome: D, Rule: 1, FreesAt: 105},
		{Outcome: D, FreesAt: capping.Never}, {Outcome: capping.Replayed}, {Outcome: capping.Allowed},
	}, verdicts)
	require.Equal(t, badLogs{corrupt: 1, wrongType: 1}, bad)
	for _, reply := range []string{"x", "D", "D\x03\x00\x00\x00\x00\x00", "D\x01\x00\x00\x00\x00", "AAAAAAAA"} {
		_, err := decodeVerdicts(reply, items, b, verdicts, &bad)
		require.ErrorIs(t, err, errReply, "%q", reply)
	}
}

// A reply decides exactly the users that it answers, whatever its bytes.
func FuzzVerdicts(f *testing.F) {
	f.Add("AR", uint8(3))
	f.Add("D\x01\x00\x00\x00\x00\x05CT", uint8(3))
	f.Fuzz(func(t *testing.T, reply string, users uint8) {
		b := batchOf("m", make([]capping.UserID, users), rolling(1, time.Hour), rolling(0, time.Hour))
		items := make([]uint64, users)
		for i := range items {
			items[i] = item(uint32(i), i)
		}
		verdicts := make([]capping.Verdict, users)
		var bad badLogs
		n, err := decodeVerdicts(reply, items, b, verdicts, &bad)
		require.LessOrEqual(t, n, int(users))
		decided := 0
		for i, v := range verdicts {
			if v.Outcome != capping.Unavailable {
				decided++
				require.Less(t, i, n)
			}
		}
		if err == nil {
			require.Equal(t, n, decided+bad.corrupt+bad.wrongType)
		}
		_, _ = decodeReleased(reply, items, false, make([]capping.Released, users), &bad)
	})
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

func TestRemedies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]remedy{
		"NOSCRIPT No matching script.":        {kind: kindScript, now: true},
		"MOVED 3999 127.0.0.1:6381":           {kind: kindMoved, now: true, refresh: true, addr: "127.0.0.1:6381"},
		"ASK 3999 [::1]:6381":                 {kind: kindAsk, now: true, addr: "[::1]:6381"},
		"TRYAGAIN Multiple keys request":      {kind: kindTryAgain, now: true},
		"CLUSTERDOWN The cluster is down":     {kind: kindDown, refresh: true},
		"READONLY You can't write":            {kind: kindDown, refresh: true},
		"LOADING Redis is loading":            {kind: kindDown, refresh: true},
		"CLOCKSKEW -1500 script: abc":         {kind: kindClock, off: -1500 * time.Millisecond},
		"OOM command not allowed":             {kind: kindMemory, final: true},
		"NOAUTH Authentication required.":     {kind: kindAuth, final: true},
		"ERR something else":                  {kind: kindServer, unknown: true},
		"MISCONF Errors writing to the AOF":   {kind: kindDown},
		"BUSY Redis is busy":                  {kind: kindDown},
		"NOREPLICAS Not enough good replicas": {kind: kindAcks},
	} {
		require.Equal(t, want, remedyOf(fmt.Errorf("node: %w", redisError(text))), text)
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	require.Equal(t, remedy{kind: kindDial, refresh: true}, remedyOf(dial))
	require.Equal(t, remedy{kind: kindLost, unknown: true, refresh: true}, remedyOf(io.EOF))
	require.Equal(t, remedy{kind: kindLost, refresh: true}, remedyOf(&errUnsent{io.EOF}))
	require.Equal(t, remedy{kind: kindAcks, unknown: true, refresh: true}, remedyOf(&errAcks{0, 1}))
	require.Equal(t, remedy{}, remedyOf(nil))
}

func TestCountSlaves(t *testing.T) {
	t.Parallel()
	nodes := `07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002,hostname2 master - 0 1426238316232 2 connected 5461-10922
6ec2 127.0.0.1:30005@31005,hostname5 slave,fail 67ed 0 1426238316232 5 connected
824f 127.0.0.1:30006@31006,hostname6 slave,fail? e7d1 0 1426238317741 6 connected
9999 127.0.0.1:30007@31007,hostname7 slave,fail e7d1 0 1426238317741 6 disconnected
e7d1 127.0.0.1:30001@31001,hostname1 myself,master - 0 0 1 connected 0-5460
`
	alive, all := countSlaves(nodes)
	require.Equal(t, []int{2, 3}, []int{alive, all}, "suspected replicas still count, failed ones do not")
	alive, all = countSlaves("")
	require.Equal(t, []int{0, 0}, []int{alive, all})
}
