package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/server"
	"capper/internal/server/gate"
)

// TestForecastOfSeveralTimes checks that a forecast at several times equals the filter calls at these times.
func TestForecastOfSeveralTimes(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(`{"message_id": "m1", "user_ids": [7, 107, 600]}`)
		s.clock.Advance(time.Hour)
		s.filter(`{"message_id": "m2", "user_ids": [107, 8]}`)
		now := s.clock.Now()
		request := fields{"user_ids": []int{7, 8, 107, 600, 300}}
		got := decodeAs[api.Forecast](t, s.post("/v1/forecast", request).body)
		require.Len(t, got.Forecasts, 1)
		require.Equal(t, 5, got.Users)
		require.True(t, got.Forecasts[0].At.Equal(now.Truncate(time.Millisecond)))
		require.Zero(t, got.Forecasts[0].Summary.Allowed)

		times := []time.Time{now, now.Add(23 * time.Hour), now.Add(24 * time.Hour), now.Add(48 * time.Hour)}
		request["at"] = times
		got = decodeAs[api.Forecast](t, s.post("/v1/forecast", request).body)
		for i, point := range got.Forecasts {
			alone := s.filter(fields{"record": false, "at": times[i], "user_ids": request["user_ids"]})
			require.Equal(t, len(alone.Allowed), point.Summary.Allowed)
			require.Equal(t, alone.Summary.Denied, point.Summary.Denied)
		}
		require.Equal(t, []int{0, 3, 4, 4}, []int{
			got.Forecasts[0].Summary.Allowed, got.Forecasts[1].Summary.Allowed, got.Forecasts[2].Summary.Allowed,
			got.Forecasts[3].Summary.Allowed,
		})
		require.Len(t, decodeAs[explained](t, s.get("/v1/users/7").body).Sends, 1, "nothing is recorded")
	})
}

func TestForecastOfAnAudience(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	got := decodeAs[api.Forecast](t, s.post("/v1/forecast", `{"audience": "vip", "channel": "email"}`).body)
	require.Equal(t, &api.AudienceTaken{Generation: g.current().Generation(), Users: 9}, got.Audience)
	require.Equal(t, map[string]int{"suppressed": 3}, got.Forecasts[0].Summary.Denied)
	require.Equal(t, "policy-2", got.ConfigVersion)
	nobody := decodeAs[api.Forecast](t, s.post("/v1/forecast", `{"audience": "vip - vip"}`).body)
	require.Zero(t, nobody.Forecasts[0].Summary.Requested)
	require.Equal(t, g.current().Generation(), nobody.Generation)
}

func TestForecastsAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t, func(cfg *server.Config) { cfg.Bounds = gate.Bounds{BitmapUsers: 100} })
	many := strings.TrimSuffix(strings.Repeat(`"2037-11-21T09:00:00Z",`, api.MaxForecasts+1), ",")
	for body, want := range map[string]badBody{
		`{"audience": "vip &", "channel": "push"}`: {field: "audience", message: "got the end"},
		`{"audience": "vip", "at": []}`:            {field: "at", message: "must not be empty"},
		`{"audience": "vip", "at": "2037-11-21T09:00:00Z"}`: {field: "at",
			message: "is not an array of times"},
		`{"audience": "vip", "at": ["2037-11-21T09:00:00Z", "tomorrow"]}`: {field: "at[1]", message: "is not an RFC 3339 time"},
		`{"audience": "vip", "at": ["2037-11-19T09:00:00Z"]}`:             {field: "at[0]", message: "in the past"},
		`{"audience": "vip", "at": [` + many + `]}`:                       {field: "at", message: "at most 64 times"},
		`{"audience": "vip", "channel": "fax"}`: {field: "channel",
			message: "is not a configured channel"},
		`{"audience": "vip", "user_ids": [1]}`:   {field: "user_ids", message: "both given"},
		`{"at": ["2037-11-21T09:00:00Z"]}`:       {field: "user_ids", message: "exactly one"},
		`{"audience": "vip", "message_id": "m"}`: {field: "message_id", message: "no such field"},
	} {
		requireRefused(t, s.post("/v1/forecast", body), http.StatusBadRequest, "invalid_request", want)
	}
	var times []string
	for i := range 12 {
		times = append(times, startOfTest.Add(time.Duration(i)*time.Hour).Format(time.RFC3339Nano))
	}
	r := s.post("/v1/forecast", fields{"audience": "vip", "at": times})
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "audience", message: fmt.Sprintf("9 users at %d times", len(times))})
}

// TestAForecastCountsUsedLimits checks the counts of used limits, before suppression and quiet hours.
func TestAForecastCountsUsedLimits(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(`{"message_id": "a", "channel": "push", "user_ids": [100, 101, 102]}`)
		s.filter(`{"message_id": "b", "channel": "push", "user_ids": [100, 200]}`)
		got := decodeAs[api.Forecast](t, s.post("/v1/forecast",
			`{"channel": "push", "user_ids": [100, 101, 103, 200, 201, 300, 600], "used": true}`).body)
		require.Len(t, got.Forecasts, 1)
		require.Equal(t, []api.LimitUse{
			{Segment: "default", Limit: "daily", Max: 1,
				Steps: []api.UseStep{{Sends: 0, Users: 1}, {Sends: 1, Users: 0}}},
			{Segment: "default", Limit: "weekly", Max: 3,
				Steps: []api.UseStep{{Sends: 0, Users: 1}, {Sends: 1, Users: 0},
					{Sends: 2, Users: 0}, {Sends: 3, Users: 0}}},
			{Segment: "active", Limit: "daily", Max: 2,
				Steps: []api.UseStep{{Sends: 0, Users: 1}, {Sends: 1, Users: 1},
					{Sends: 2, Users: 1}}},
			{Segment: "active", Limit: "weekly", Max: 7,
				Steps: []api.UseStep{{Sends: 0, Users: 1}, {Sends: 1, Users: 1},
					{Sends: 2, Users: 1}, {Sends: 3, Users: 0}, {Sends: 4, Users: 0}, {Sends: 5, Users: 0},
					{Sends: 7, Users: 0}}},
			{Segment: "vip", Limit: "push-gap", Max: 1,
				Steps: []api.UseStep{{Sends: 0, Users: 1}, {Sends: 1, Users: 1}}},
		}, got.Used)
		require.Empty(t, decodeAs[api.Forecast](t, s.post("/v1/forecast", `{"user_ids": [1]}`).body).Used)
		requireRefused(t, s.post("/v1/forecast", `{"user_ids": [1], "used": 1}`), http.StatusBadRequest,
			"invalid_request", badBody{field: "used", message: "neither true nor false"})
	})
}
