package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

func (s *service) activity(query string) *api.Activity {
	s.t.Helper()
	r := s.get("/v1/activity" + query)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.Activity](s.t, r.body)
}

// TestActivityAddsUp checks that the hours and their parts add up to the answers, that small calls count, and that
// lists of messages do not show the activity.
func TestActivityAddsUp(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		require.Empty(t, s.activity("").Hours)
		begin := s.clock.Now().UTC().Truncate(time.Hour)
		s.filter(fields{"message_id": "one", "channel": "push", "user_ids": []int{7}})
		s.filter(fields{"message_id": "many", "channel": "push", "user_ids": span(0, 200)})
		s.filter(fields{"message_id": "many", "channel": "push", "user_ids": span(0, 200)})
		s.filter(fields{"message_id": "tried", "record": false, "user_ids": span(0, 100)})
		s.clock.Advance(2 * time.Hour)
		s.filter(fields{"message_id": "later", "user_ids": span(0, 10)})

		hours := s.activity("?since=3h").Hours
		require.Len(t, hours, 2)
		require.Equal(t, begin, hours[0].At)
		require.Equal(t, []int64{3, 401}, []int64{hours[0].Calls, hours[0].Asked})
		require.Equal(t, int64(10), hours[1].Asked)
		for _, hour := range hours {
			denied, parts := int64(0), api.ActivityPart{}
			for _, n := range hour.Denied {
				denied += n
			}
			for _, part := range hour.Parts {
				require.False(t, part.At.Before(hour.At) || part.At.Sub(hour.At) >= time.Hour)
				parts.Asked, parts.Allowed, parts.Denied = parts.Asked+part.Asked, parts.Allowed+part.Allowed,
					parts.Denied+part.Denied
			}
			require.Equal(t, hour.Asked, hour.Allowed+hour.Replayed+denied+hour.Unavailable)
			require.Equal(t, []int64{hour.Asked, hour.Allowed, denied},
				[]int64{parts.Asked, parts.Allowed, parts.Denied})
		}
		sends := int64(0)
		for _, m := range s.messages("").Messages {
			require.Contains(t, []string{"one", "many", "later"}, m.MessageID)
			sends += m.Allowed
		}
		require.Equal(t, sends, hours[0].Allowed+hours[1].Allowed, "each send once")

		require.Len(t, s.activity("?since=3h&until=90m").Hours, 1)
		require.Empty(t, s.activity("?since=8d&until=7d").Hours)
		for _, wrong := range []string{"?since=now", "?until=-1h", "?since=40d", "?since=1h&until=2d"} {
			require.Equal(t, http.StatusBadRequest, s.get("/v1/activity"+wrong).status, wrong)
		}
	}, counted(t))
}

// TestActivityNeedsCounts checks that a service that counts no messages says so.
func TestActivityNeedsCounts(t *testing.T) {
	t.Parallel()
	require.Equal(t, http.StatusConflict, newService(t).get("/v1/activity").status)
}
