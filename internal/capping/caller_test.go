package capping_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestALateReleaseKeepsTheSendsThatFollowedIt checks which sends a release leaves in a log: those between the call and
// the present, beyond the clock tolerance on both sides.
func TestALateReleaseKeepsTheSendsThatFollowedIt(t *testing.T) {
	t.Parallel()
	token, other := capping.Message{ID: "m"}.Token(), capping.Message{ID: "other"}.Token()
	var log capping.Log
	for _, at := range []capping.Instant{900, 1000, 1001, 1020, 1021, 2000, 2020, 2021, 9000} {
		log = log.Record(nil, capping.Entry{At: at, Channel: 1, Token: token}, 0)
	}
	log = log.Record(nil, capping.Entry{At: 9000, Channel: 1, Token: other}, 0)
	left := func(c capping.Caller, tolerance time.Duration) (times []capping.Instant) {
		rest, released := log.Release(nil, 1, token, c.Later(2000, tolerance))
		require.True(t, released)
		for _, e := range capping.Log(rest).Entries() {
			if e.Token == token {
				times = append(times, e.At)
			}
		}
		return times
	}
	require.Equal(t, []capping.Instant{1001, 1020, 1021, 2000}, left(capping.Caller{Asked: 1000}, 0),
		"later times are from before the clock was put back")
	require.Equal(t, []capping.Instant{1021, 2000, 2020}, left(capping.Caller{Asked: 1000}, 10*time.Millisecond))
	require.Empty(t, left(capping.Caller{}, 0))
	require.Empty(t, left(capping.Caller{Asked: 2000}, 0))
}
