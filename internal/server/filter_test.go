package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFilterAnswersEachUser(t *testing.T) {
	t.Parallel()
	s := newService(t)
	first := s.filter(`{"message_id": "promo-1", "channel": "push", "user_ids": [7, 142, 99, 7, 4294967295, 0, 300, 400]}`)
	require.Equal(t, []uint32{7, 142, 99, 4294967295, 0, 400}, first.Allowed)
	require.Empty(t, first.Replayed)
	require.Equal(t, []denied{{300, "blocked", "never", 0, nil}}, first.Denied)
	require.Equal(t, 8, first.Summary.Requested)
	require.Equal(t, 1, first.Summary.Duplicates)
	require.Equal(t, 6, first.Summary.Allowed)
	require.Equal(t, map[string]int{"never": 1}, first.Summary.Denied)
	require.Equal(t, []string{"active", "blocked", "default", "free", "new"}, keys(first.Summary.Segments))
	require.Equal(t, "policy-1", first.ConfigVersion)
	require.Equal(t, "2026-11-20T080000Z-1", first.Generation)

	again := s.filter(`{"message_id": "promo-1", "channel": "push", "user_ids": [7, 142, 43]}`)
	require.Equal(t, []uint32{7, 142, 43}, again.Allowed)
	require.Equal(t, []uint32{7, 142}, again.Replayed)

	s.clock.Add(time.Hour)
	next := s.filter(`{"message_id": "promo-2", "channel": "push", "user_ids": [142, 7, 600]}`)
	require.Equal(t, []uint32{142, 600}, next.Allowed)
	at := "2026-11-21T09:12:44.120Z"
	require.Equal(t, []denied{{7, "new", "daily", 1, &at}}, next.Denied)
}
