package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/pacing"
)

// The script of leases rejects impossible arguments before it writes, and keys of another type.
func TestLeaseScriptChecksItsArguments(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	keys, client := pacerKeys(t, s)
	names := []string{keys.Prefix + "pl:lease-ends", keys.Prefix + "pl:lease-calls"}
	request := pacing.Request{1}
	id, head := string(request[:]), stampOf(capping.InstantOf(time.Now()))
	for i, bad := range [][]any{
		{}, {"k"}, {"k", head, id, "1000", "{}"}, {"k", head, id, "0", "{}", "1"}, {"k", head, id, "x", "{}", "1"},
		{"k", head, id, "1", "{}", "x"}, {"k", head[1:], id, "1000", "{}", "1"},
		{"e", head}, {"r", head, id, "1"}, {"x", head, id},
	} {
		require.ErrorContains(t, client.EvalSha(t.Context(), s.scripts.Lease.SHA, names, bad...).Err(), "BADARG",
			"case %d", i)
	}
	good := []any{"k", head, id, "1000", "{}", "5000"}
	require.ErrorContains(t, client.EvalSha(t.Context(), s.scripts.Lease.SHA, names[:1], good...).Err(), "BADARG")
	old := []any{"k", stampOf(capping.InstantOf(time.Now().Add(-time.Hour))), id, "1000", "{}", "5000"}
	require.ErrorContains(t, client.EvalSha(t.Context(), s.scripts.Lease.SHA, names, old...).Err(), "CLOCKSKEW")
	require.Zero(t, client.Exists(t.Context(), names...).Val())

	for _, name := range names {
		require.NoError(t, client.Set(t.Context(), name, "x", 0).Err())
		_, err := s.KeepLease(t.Context(), "", request, time.Second, []byte("{}"))
		require.ErrorIs(t, err, errPacerWrongType)
		require.NoError(t, client.Del(t.Context(), name).Err())
	}
	state, err := s.KeepLease(t.Context(), "", request, time.Second, []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, pacing.LeaseBegun, state)
	for _, name := range names {
		life := client.PTTL(t.Context(), name).Val()
		require.Greater(t, life, pacing.MaxLease)
		require.LessOrEqual(t, life, 2*pacing.MaxLease)
	}
}

// stampOf returns the header of a call of lease.lua with a tolerance of a minute.
func stampOf(now capping.Instant) string {
	b := make([]byte, 9)
	for i := range 5 {
		b[4-i] = byte(now >> (8 * i))
	}
	b[7], b[8] = 60_000>>8, 60_000&0xFF
	return string(b)
}
