package script

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
)

func TestCommandsOfLeases(t *testing.T) {
	t.Parallel()
	var a Args
	keys := PacerKeys{Prefix: "fc:{x}:"}
	request := pacing.Request{1, 2}
	const head = "\x01\x02\x03\x04\x05" + "\x00\x00\x03\xe8"
	start := []blob{blob("evalsha"), blob("11f6ad8ec52a2984abaafd7c3b516503785c2072"), blob("2"),
		blob("fc:{x}:pl:lease-ends"), blob("fc:{x}:pl:lease-calls")}
	a.KeepLease(New("x"), keys, request, 1500*time.Millisecond, []byte("{}"))
	a.StampPace(0x0102030405, time.Second)
	require.Equal(t, append(start[:5:5], blob("k"), blob(head), blob(request[:]), blob("1501"), blob("{}"),
		blob("7200000")), a.args)
	a.EndedLeases(New("x"), keys, 256)
	a.StampPace(0x0102030405, time.Second)
	require.Equal(t, append(start[:5:5], blob("e"), blob(head), blob("256")), a.args)
	a.RemoveLease(New("x"), keys, request)
	a.StampPace(0x0102030405, time.Second)
	require.Equal(t, append(start[:5:5], blob("r"), blob(head), blob(request[:])), a.args)
}

func TestRepliesOfLeases(t *testing.T) {
	t.Parallel()
	var bad BadLogs
	for reply, want := range map[string]pacing.LeaseState{"B": pacing.LeaseBegun, "X": pacing.LeaseExtended,
		"E": pacing.LeaseEnded, "T": 0} {
		state, err := DecodeKept(reply, &bad)
		require.NoError(t, err)
		require.Equal(t, want, state)
	}
	require.Equal(t, BadLogs{WrongType: 1}, bad)
	for _, reply := range []string{"", "D", "BB"} {
		_, err := DecodeKept(reply, &bad)
		require.ErrorIs(t, err, ErrReply, reply)
	}
	id := string(make([]byte, 16))
	ended, err := DecodeEnded([]string{id, "1500", "{}", id, "0", ""})
	require.NoError(t, err)
	require.Equal(t, []pacing.Lease{{Ended: 1500 * time.Millisecond, Call: []byte("{}")}, {Call: []byte{}}}, ended)
	for _, list := range [][]string{{id}, {id, "1"}, {id[1:], "1", ""}, {id, "-1", ""}, {id, "x", ""}} {
		_, err := DecodeEnded(list)
		require.ErrorIs(t, err, ErrReply, "%q", list)
	}
}
