package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/testkit"
)

type explained struct {
	UserID        uint32 `json:"user_id"`
	Segment       string
	Generation    string
	ConfigVersion string `json:"config_version"`
	Limits        []standing
	Sends         []sent
}

type limit struct {
	Name, Window, Calendar, Timezone string
	Max                              int
	Channels                         []string
}

type standing struct {
	limit
	Used    int
	RetryAt *string `json:"retry_at"`
}

type sent struct {
	At        string
	Channel   *string
	Namespace *string
	MessageID *string `json:"message_id"`
}

func TestExplain(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		nobody := decodeAs[explained](t, s.get("/v1/users/4294967295").body)
		require.Equal(t, "default", nobody.Segment)
		require.Equal(t, []sent{}, nobody.Sends)
		require.Equal(t, []standing{
			{limit: limit{Name: "daily", Max: 1, Window: "24h"}},
			{limit: limit{Name: "weekly", Max: 3, Window: "168h"}},
		}, nobody.Limits)

		s.filter(`{"message_id": "promo-1", "channel": "push", "user_ids": [200]}`)
		s.clock.Advance(time.Second)
		s.filter(`{"message_id": "mail-1", "channel": "email", "user_ids": [200]}`)
		s.clock.Advance(time.Second)
		s.filter(`{"message_id": "plain", "user_ids": [200]}`)
		vip := decodeAs[explained](t, s.get("/v1/users/200").body)
		require.Equal(t, explained{
			UserID: 200, Segment: "vip", Generation: "2037-11-20T080000Z-1", ConfigVersion: "policy-1",
			Limits: []standing{
				{limit{Name: "push-gap", Max: 1, Window: "30m", Channels: []string{"push"}}, 1,
					at("2037-11-20T09:42:44.120Z")},
				{limit{Name: "email-day", Max: 1, Window: "day", Calendar: "day", Timezone: "UTC",
					Channels: []string{"email"}}, 1, at("2037-11-21T00:00:00.000Z")},
			},
			Sends: []sent{
				{"2037-11-20T09:12:44.120Z", at("push"), at(""), at("promo-1")},
				{"2037-11-20T09:12:45.120Z", at("email"), at(""), at("mail-1")},
				{"2037-11-20T09:12:46.120Z", nil, at(""), at("plain")},
			},
		}, *vip)
		blocked := decodeAs[explained](t, s.get("/v1/users/300").body)
		require.Equal(t, []standing{{limit: limit{Name: "never", Window: "24h"}}}, blocked.Limits)
	})
}

func TestExplainAgreesWithFilter(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		for i := range 4 {
			s.filter(fields{"message_id": fmt.Sprint(i), "user_ids": []uint32{150}})
			s.clock.Advance(time.Minute)
		}
		user := decodeAs[explained](t, s.get("/v1/users/150").body)
		denial := s.filter(`{"record": false, "user_ids": [150]}`).Denied[0]
		i := slices.IndexFunc(user.Limits, func(l standing) bool { return l.Name == denial.Limit })
		require.Equal(t, denial.RetryAt, user.Limits[i].RetryAt)
		require.Equal(t, 2, user.Limits[i].Used)
	})
}

func TestEraseForgetsAUser(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(`{"message_id": "m1", "user_ids": [7, 8]}`)
		for range 2 {
			r := s.call(http.MethodDelete, "/v1/users/7", "")
			require.Equal(t, http.StatusNoContent, r.status)
			require.Empty(t, r.body)
		}
		require.Empty(t, decodeAs[explained](t, s.get("/v1/users/7").body).Sends)
		require.Equal(t, []uint32{7}, s.filter(`{"message_id": "m2", "user_ids": [7, 8]}`).Allowed)
	})
}

type released struct {
	Released          []uint32
	Unavailable       []uint32
	ReleasedBitmap    string `json:"released_bitmap"`
	UnavailableBitmap string `json:"unavailable_bitmap"`
	Summary           struct{ Requested, Released, Absent, Unavailable, Duplicates int }
}

func TestReleaseGivesSlotsBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		release := func(body any) *released {
			r := s.post("/v1/release", body)
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			return decodeAs[released](t, r.body)
		}
		s.filter(`{"message_id": "m1", "user_ids": [7, 8, 9]}`)
		first := release(`{"message_id": "m1", "user_ids": [9, 7, 100, 9]}`)
		require.Equal(t, []uint32{9, 7}, first.Released)
		require.Equal(t, released{}.Summary.Unavailable, first.Summary.Unavailable)
		require.Equal(t, 4, first.Summary.Requested)
		require.Equal(t, 1, first.Summary.Absent)
		require.Equal(t, 1, first.Summary.Duplicates)

		second := release(`{"message_id": "m1", "user_ids": [9, 7, 100]}`)
		require.Empty(t, second.Released, "twice is once")
		require.Equal(t, 3, second.Summary.Absent)

		again := s.filter(`{"message_id": "m1", "user_ids": [7, 8]}`)
		require.Equal(t, []uint32{7, 8}, again.Allowed)
		require.Equal(t, []uint32{8}, again.Replayed, "the released send was granted anew")
		require.Equal(t, []uint32{9}, s.filter(`{"message_id": "m2", "user_ids": [7, 8, 9]}`).Allowed)

		bitmaps := release(fields{"message_id": "m1", "users_bitmap": bitmapText(t, 7, 8, 9)})
		require.Equal(t, []uint32{7, 8}, bitmapOf(t, bitmaps.ReleasedBitmap))
		require.Empty(t, bitmapOf(t, bitmaps.UnavailableBitmap))
		require.Equal(t, []uint32{7, 8}, s.filter(`{"message_id": "m3", "user_ids": [7, 8, 9]}`).Allowed)
	})
}

func TestLimitsTellThePolicyInForce(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		type policy struct {
			Version     string
			Channels    map[string]int
			Default     []limit
			Segments    map[string][]limit
			ToleranceMS int `json:"tolerance_ms"`
		}
		got := decodeAs[policy](t, s.get("/v1/limits").body)
		require.Equal(t, "policy-1", got.Version)
		require.Equal(t, map[string]int{"push": 1, "email": 2, "sms": 3}, got.Channels)
		require.Equal(t, []limit{{Name: "daily", Max: 1, Window: "24h"}, {Name: "weekly", Max: 3, Window: "168h"}},
			got.Default)
		require.Equal(t, []limit{}, got.Segments["free"])
		require.Equal(t, limit{Name: "email-day", Max: 1, Window: "day", Calendar: "day", Timezone: "UTC",
			Channels: []string{"email"}}, got.Segments["vip"][1])

		s.filter(`{"message_id": "m1", "user_ids": [7]}`)
		wider := testPolicy()
		wider.Version = "policy-2"
		wider.Segments["new"] = []capping.Limit{{Name: "daily", Max: 2, Window: 24 * time.Hour}}
		s.capper.SetPolicy(wider)
		got = decodeAs[policy](t, s.get("/v1/limits").body)
		require.Equal(t, "policy-2", got.Version)
		require.Zero(t, got.ToleranceMS)
		answer := s.filter(`{"message_id": "m2", "user_ids": [7]}`)
		require.Equal(t, []uint32{7}, answer.Allowed, "the new limits judge the old log")
		require.Equal(t, "policy-2", answer.ConfigVersion)
		third := s.filter(`{"message_id": "m3", "user_ids": [7]}`)
		require.Equal(t, at("2037-11-21T09:12:44.120Z"), third.Denied[0].RetryAt)
	})
}

// tolerant is a store whose clocks may differ by a quarter of a second.
type tolerant struct{ capping.Store }

func (tolerant) ClockTolerance() time.Duration { return 250 * time.Millisecond }

func TestWindowsAreWiderByTheStoresTolerance(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(clock func() time.Time) capping.Store{
		"embedded": func(clock func() time.Time) capping.Store { return openStore(t, clock) },
		"redis":    func(clock func() time.Time) capping.Store { return openRedis(t, clock, testkit.Namespace()) },
	} {
		clock := testkit.NewClockAt(startOfTest)
		s := newServiceOver(t, tolerant{open(clock.Now)}, clock)
		require.Contains(t, string(s.get("/v1/limits").body), `"tolerance_ms":500`, kind)
		s.filter(`{"message_id": "m1", "user_ids": [7]}`)
		denied := s.filter(`{"message_id": "m2", "user_ids": [7]}`).Denied
		require.Equal(t, at("2037-11-21T09:12:44.620Z"), denied[0].RetryAt, "the tolerance is in retry_at")
		explanation := decodeAs[explained](t, s.get("/v1/users/7").body)
		require.Equal(t, at("2037-11-21T09:12:44.620Z"), explanation.Limits[0].RetryAt, "and explain says the same")
	}
}

func TestStatusTellsWhatIsInForce(t *testing.T) {
	t.Parallel()
	failedAt := startOfTest.Add(-time.Minute)
	s := newService(t, func(cfg *server.Config) {
		cfg.Segments = func() api.SegmentsStatus {
			return api.SegmentsStatus{
				Generation: "2037-11-20T080000Z-1", CreatedAt: startOfTest.Add(-time.Hour), LoadedAt: startOfTest,
				Origin:    "cache",
				CheckedAt: startOfTest, Error: "get current.json: no such host", ErrorAt: failedAt,
				Segments: []api.SegmentSize{{Name: "new", Users: 100, SizeBytes: 20}},
			}
		}
		cfg.ConfigStatus = func() api.ConfigStatus {
			return api.ConfigStatus{Version: "policy-1", LoadedAt: startOfTest,
				Problems: []string{"limits.segments.ghost: not published"}}
		}
	})
	body := string(s.get("/v1/status").body)
	for _, part := range []string{
		`"ready":true`, `"generation":"2037-11-20T080000Z-1"`, `"generation_age_seconds":3600`,
		`"config_version":"policy-1"`,
		`"store":{"kind":"embedded","path":"`, `"state":"ok"`, `"origin":"cache"`,
		`"error":"get current.json: no such host"`,
		`"error_at":"2037-11-20T09:11:44.12Z"`, `"problems":["limits.segments.ghost: not published"]`,
		`"in_flight_users":0`,
	} {
		require.Contains(t, body, part)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	require.Equal(t, http.StatusOK, s.get("/healthz").status)
	require.Equal(t, http.StatusOK, s.get("/readyz").status)
	s.server.SetReady(false)
	require.Equal(t, http.StatusOK, s.get("/healthz").status)
	r := s.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, s.post("/v1/filter", `{"message_id": "m", "user_ids": [1]}`).status,
		"calls are answered until the listener closes")
}
