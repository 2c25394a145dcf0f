package pebblestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/storetest"
	"capper/internal/pacing"
)

// TestNumbersOfRecordsStay checks that the numbers of records survive restarts until the records expire.
func TestNumbersOfRecordsStay(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	now := clock.Now()
	late := pacing.RecordGroup{Client: "crm", Kind: pacing.RequestRecord, Expires: now.Unix() + 100}
	soon := pacing.RecordGroup{Client: "crm", Kind: pacing.LogRecord, Expires: now.Unix() + 10}
	for n := range 3 {
		got, err := s.AddRecords(t.Context(), map[pacing.RecordGroup]int{late: 2, soon: 1}, now)
		require.NoError(t, err)
		require.Equal(t, map[pacing.RecordGroup]int{late: 2 * (n + 1), soon: n + 1}, got)
		require.NoError(t, s.Close())
		s = reopen(t, config)
	}
	got, err := s.AddRecords(t.Context(), nil, now.Add(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, map[pacing.RecordGroup]int{late: 6}, got)

	ask := hundred(1, 0)
	ask.Request, ask.Targets[0].Message = pacing.Request{1}, "0a1b"
	has := func() [2]bool {
		log, err := s.HasLog(t.Context(), &ask.Targets[0])
		require.NoError(t, err)
		request, err := s.HasRequest(t.Context(), "", ask.Request)
		require.NoError(t, err)
		return [2]bool{log, request}
	}
	require.Equal(t, [2]bool{false, false}, has())
	take(t, s, ask)
	require.Equal(t, [2]bool{true, true}, has())
	clock.Advance(pacing.RememberFor)
	require.Equal(t, [2]bool{true, false}, has())
	require.NoError(t, s.Close())
}
