package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPreviewRecordsNothing(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		for range 3 {
			preview := s.filter(`{"record": false, "user_ids": [7, 300]}`)
			require.Equal(t, []uint32{7}, preview.Allowed)
			require.Len(t, preview.Denied, 1)
		}
		require.Empty(t, decodeAs[explained](t, s.get("/v1/users/7").body).Sends)
		s.filter(`{"message_id": "m", "user_ids": [7]}`)
		require.Empty(t, s.filter(`{"record": false, "user_ids": [7]}`).Allowed)
		require.Equal(t, []uint32{7}, s.filter(`{"message_id": "m", "record": false, "user_ids": [7]}`).Replayed)
	})
}

// TestForecast checks that a forecast equals the later answer to the same call.
func TestForecast(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(`{"message_id": "m1", "user_ids": [7, 107, 600]}`)
		s.clock.Advance(time.Hour)
		s.filter(`{"message_id": "m2", "user_ids": [107, 8]}`)
		const audience = `"user_ids": [7, 8, 107, 600, 300]`
		forecast := func(at string) *filtered {
			return s.filter(`{"record": false, "at": "` + at + `", ` + audience + `}`)
		}
		require.Empty(t, forecast("2037-11-20T10:12:44.120Z").Allowed, "now")
		require.Equal(t, []uint32{7, 107, 600}, forecast("2037-11-21T09:12:44.120Z").Allowed)
		require.Empty(t, forecast("2037-11-21T09:12:44.119Z").Allowed)
		tomorrow := forecast("2037-11-21T18:12:44.12+08:00")
		require.Equal(t, []uint32{7, 8, 107, 600}, tomorrow.Allowed)
		require.Equal(t, map[string]int{"never": 1}, tomorrow.Summary.Denied)
		require.Equal(t, map[string]segmentCounts{"new": {2, 2}, "active": {1, 1}, "default": {1, 1},
			"blocked": {1, 0}}, tomorrow.Summary.Segments)

		s.clock.Set(startOfTest.Add(25 * time.Hour))
		require.Equal(t, tomorrow.Allowed, s.filter(`{"message_id": "m3", `+audience+`}`).Allowed)
	})
}

// TestForecastOfTheLastMinuteIsNow checks that a time within the last minute counts as now, because a time written by
// date -u +%FT%TZ has passed when it arrives.
func TestForecastOfTheLastMinuteIsNow(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(`{"message_id": "m", "user_ids": [7]}`)
		s.clock.Advance(24*time.Hour - time.Millisecond) // 09:12:44.119; a slot is free one millisecond later
		for at, allowed := range map[string][]uint32{
			"2037-11-21T09:12:44Z": {}, "2037-11-21T09:11:44.119Z": {}, "2037-11-21T09:12:44.119Z": {},
			"2037-11-21T09:12:44.120Z": {7},
		} {
			require.Equal(t, allowed, s.filter(fields{"record": false, "at": at, "user_ids": []int{7}}).Allowed, at)
		}
		s.clock.Advance(time.Millisecond)
		now := s.filter(`{"record": false, "at": "2037-11-21T09:12:44Z", "user_ids": [7]}`)
		require.Equal(t, []uint32{7}, now.Allowed, "decided as of now, not as of the time given")
		old := s.post("/v1/filter", `{"record": false, "at": "2037-11-21T09:11:44.119Z", "user_ids": [7]}`)
		require.Equal(t, "at", old.failure(t).Error.Field)
	})
}

func TestWavesGroupByHour(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		for i, minutes := range []int{0, 20, 40, 60} { // 09:12:44.12, 09:32:44.12, 09:52:44.12, 10:12:44.12
			s.clock.Set(startOfTest.Add(time.Duration(minutes) * time.Minute))
			s.filter(fields{"message_id": fmt.Sprint("m", i), "user_ids": []int{3 - i, 10 + i}})
		}
		answer := s.filter(`{"message_id": "next", "waves": true, "user_ids": [0, 13, 1, 2, 300, 3, 12, 11, 10, 50]}`)
		require.Equal(t, []uint32{50}, answer.Allowed)
		require.Len(t, answer.Denied, 9)
		require.Equal(t, []waved{
			{From: "2037-11-21T09:00:00Z", ReadyAt: "2037-11-21T09:52:44.120Z", UserIDs: []uint32{1, 2, 3, 12, 11, 10}},
			{From: "2037-11-21T10:00:00Z", ReadyAt: "2037-11-21T10:12:44.120Z", UserIDs: []uint32{0, 13}},
		}, answer.Waves, "user 300 is in no wave: no waiting helps")

		s.clock.Set(time.Date(2037, 11, 21, 9, 52, 44, 120e6, time.UTC))
		wave := s.filter(fields{"message_id": "next", "user_ids": answer.Waves[0].UserIDs})
		require.Equal(t, answer.Waves[0].UserIDs, wave.Allowed, "at ready_at all of the wave are allowed")
		require.Empty(t, s.filter(`{"message_id": "next", "waves": true, "user_ids": [60]}`).Waves)
	})
}
