package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/server"
)

func TestFilterAnswersEachUser(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		first := s.filter(`{"message_id": "promo-1", "channel": "push", "user_ids": [7, 142, 99, 7, 4294967295, 0, 300, 400]}`)
		require.Equal(t, []uint32{7, 142, 99, 4294967295, 0, 400}, first.Allowed)
		require.Empty(t, first.Replayed)
		require.Equal(t, []denied{{300, "blocked", "never", 0, nil}}, first.Denied)
		require.Equal(t, summary{
			Requested: 8, Allowed: 6, Duplicates: 1, Denied: map[string]int{"never": 1},
			Segments: map[string]segmentCounts{"new": {3, 3}, "active": {1, 1}, "blocked": {1, 0}, "free": {1, 1},
				"default": {1, 1}},
		}, first.Summary)
		require.Equal(t, "policy-1", first.ConfigVersion)
		require.Equal(t, "2037-11-20T080000Z-1", first.Generation)

		again := s.filter(`{"message_id": "promo-1", "channel": "push", "user_ids": [7, 142, 43]}`)
		require.Equal(t, []uint32{7, 142, 43}, again.Allowed)
		require.Equal(t, []uint32{7, 142}, again.Replayed)
		require.Equal(t, 2, again.Summary.Replayed)

		s.clock.Advance(time.Hour)
		next := s.filter(`{"message_id": "promo-2", "channel": "push", "user_ids": [142, 7, 4294967295]}`)
		require.Equal(t, []uint32{142}, next.Allowed)
		require.Equal(t, []denied{{7, "new", "daily", 1, at("2037-11-21T09:12:44.120Z")},
			{4294967295, "default", "daily", 1, at("2037-11-21T09:12:44.120Z")}}, next.Denied)
		require.Equal(t, map[string]int{"daily": 2}, next.Summary.Denied)
	})
}

func at(text string) *string { return &text }

// TestRetryAtIsExact checks that a user is allowed at retry_at and denied a millisecond earlier.
func TestRetryAtIsExact(t *testing.T) {
	t.Parallel()
	singapore, err := time.LoadLocation("Asia/Singapore")
	require.NoError(t, err)
	newYork, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	havana, err := time.LoadLocation("America/Havana") // clocks there skip midnight
	require.NoError(t, err)
	for name, c := range map[string]struct {
		limit capping.Limit
		start time.Time
		want  string
	}{
		"rolling": {capping.Limit{Window: 30 * time.Minute}, startOfTest, "2037-11-20T09:42:44.120Z"},
		"day in Singapore": {capping.Limit{Calendar: capping.CalendarDay, Location: singapore},
			startOfTest, "2037-11-20T16:00:00.000Z"},
		"week in Singapore": {capping.Limit{Calendar: capping.CalendarWeek, Location: singapore},
			startOfTest, "2037-11-22T16:00:00.000Z"},
		"a day of 25 hours": {capping.Limit{Calendar: capping.CalendarDay, Location: newYork},
			time.Date(2026, 11, 1, 0, 0, 1, 0, newYork), "2026-11-02T05:00:00.000Z"},
		"a day of 23 hours": {capping.Limit{Calendar: capping.CalendarDay, Location: newYork},
			time.Date(2026, 3, 8, 0, 0, 1, 0, newYork), "2026-03-09T04:00:00.000Z"},
		"a week with a change": {capping.Limit{Calendar: capping.CalendarWeek, Location: newYork},
			time.Date(2026, 10, 26, 0, 0, 0, 0, newYork), "2026-11-02T05:00:00.000Z"},
		"a day without midnight": {capping.Limit{Calendar: capping.CalendarDay, Location: havana},
			time.Date(2026, 3, 7, 12, 0, 0, 0, havana), "2026-03-08T05:00:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, s *service) {
				c, policy := c, *testPolicy()
				c.limit.Name, c.limit.Max = "one", 1
				policy.Segments = map[string][]capping.Limit{"new": {c.limit}}
				s.capper.SetPolicy(&policy)
				s.clock.Set(c.start)
				s.filter(fields{"message_id": "first", "user_ids": []uint32{7}})
				second := s.filter(fields{"message_id": "second", "user_ids": []uint32{7}})
				require.Equal(t, []denied{{7, "new", "one", 1, at(c.want)}}, second.Denied)
				retryAt, err := time.Parse(time.RFC3339, c.want)
				require.NoError(t, err)
				s.clock.Set(retryAt.Add(-time.Millisecond))
				require.Empty(t, s.filter(fields{"message_id": "second", "user_ids": []uint32{7}}).Allowed)
				s.clock.Set(retryAt)
				require.Equal(t, []uint32{7}, s.filter(fields{"message_id": "second", "user_ids": []uint32{7}}).Allowed)
			})
		})
	}
}

func TestLimitsOverSomeChannels(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		const vip = `, "user_ids": [200]}`
		require.Len(t, s.filter(`{"message_id": "p1", "channel": "push"`+vip).Allowed, 1)
		require.Equal(t, "push-gap", s.filter(`{"message_id": "p2", "channel": "push"` + vip).Denied[0].Limit)
		require.Len(t, s.filter(`{"message_id": "e1", "channel": "email"`+vip).Allowed, 1)
		require.Equal(t, "email-day", s.filter(`{"message_id": "e2", "channel": "email"` + vip).Denied[0].Limit)
		require.Len(t, s.filter(`{"message_id": "s1", "channel": "sms"`+vip).Allowed, 1)
		require.Len(t, s.filter(`{"message_id": "n1"`+vip).Allowed, 1, "a send without a channel")
		s.clock.Advance(30 * time.Minute)
		require.Len(t, s.filter(`{"message_id": "p2", "channel": "push"`+vip).Allowed, 1)
	})
}

func TestExemptSendsAreCountedAndNeverDenied(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		for i := range 3 {
			exempt := s.filter(fields{"message_id": fmt.Sprint("order-", i), "user_ids": []uint32{7, 300},
				"enforce": false})
			require.Equal(t, []uint32{7, 300}, exempt.Allowed)
		}
		promo := s.filter(fields{"message_id": "promo", "user_ids": []uint32{7}})
		require.Equal(t, "weekly", promo.Denied[0].Limit, "three sends of the week are used")
	})
}

func TestCountsLeaveTheListOfDenialsOut(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		for _, audience := range []fields{{"user_ids": []uint32{300, 301, 1}},
			{"users_bitmap": bitmapText(t, 300, 301, 1)}} {
			audience["message_id"], audience["detail"] = "m", "counts"
			r := s.post("/v1/filter", audience)
			require.NotContains(t, string(r.body), `"denied":[`)
			require.NotContains(t, string(r.body), `"denied_bitmaps"`)
			require.Equal(t, map[string]int{"never": 2}, decodeAs[filtered](t, r.body).Summary.Denied)
		}
	})
}

func TestBitmapsAndIDsGetTheSameDecisions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	ids, bitmaps := newService(t), newService(t)
	for round := range 12 {
		var users []uint32
		for range 1 + random.IntN(700) {
			users = append(users, random.Uint32N(900))
		}
		if round%3 == 0 {
			users = append(users, 4294967295, 1<<31, 65535, 65536, 0)
		}
		body := fields{"message_id": fmt.Sprint("m", round%7), "channel": []string{"push", "email"}[round%2],
			"waves": true}
		body["user_ids"] = users
		a := ids.filter(body)
		delete(body, "user_ids")
		body["users_bitmap"] = bitmapText(t, users...)
		b := bitmaps.filter(body)
		requirePartition(t, users, a)
		requireSame(t, a, b)
		later := time.Duration(random.IntN(10)) * time.Hour
		ids.clock.Advance(later)
		bitmaps.clock.Advance(later)
	}
}

// requirePartition checks that every user is decided once and in the order of the request.
func requirePartition(t *testing.T, users []uint32, f *filtered) {
	t.Helper()
	decisions := map[uint32]int{}
	order := map[uint32]int{}
	for i, user := range slices.Backward(users) {
		order[user] = i
	}
	for _, user := range slices.Concat(f.Allowed, f.Unavailable, deniedUsers(f)) {
		decisions[user]++
		require.Contains(t, order, user)
	}
	require.Len(t, decisions, len(order))
	for user, n := range decisions {
		require.Equal(t, 1, n, user)
	}
	for _, list := range [][]uint32{f.Allowed, f.Replayed, deniedUsers(f)} {
		require.True(t, slices.IsSortedFunc(list, func(a, b uint32) int { return order[a] - order[b] }))
	}
	require.Equal(t, f.Summary.Requested, len(users))
	require.Equal(t, len(users)-len(order), f.Summary.Duplicates)
	require.Equal(t, len(f.Allowed), f.Summary.Allowed)
	require.Subset(t, f.Allowed, f.Replayed)
}

func deniedUsers(f *filtered) (users []uint32) {
	for _, d := range f.Denied {
		users = append(users, d.UserID)
	}
	return users
}

// requireSame compares the answer in ids with the answer in bitmaps.
func requireSame(t *testing.T, ids, bitmaps *filtered) {
	t.Helper()
	require.ElementsMatch(t, ids.Allowed, bitmapOf(t, bitmaps.AllowedBitmap))
	require.ElementsMatch(t, ids.Replayed, bitmapOf(t, bitmaps.ReplayedBitmap))
	require.Empty(t, bitmapOf(t, bitmaps.UnavailableBitmap))
	byLimit := map[string][]uint32{}
	for _, d := range ids.Denied {
		byLimit[d.Limit] = append(byLimit[d.Limit], d.UserID)
	}
	require.Equal(t, keys(byLimit), keys(bitmaps.DeniedBitmaps))
	for limit, users := range byLimit {
		require.ElementsMatch(t, users, bitmapOf(t, bitmaps.DeniedBitmaps[limit]))
	}
	require.Len(t, bitmaps.Waves, len(ids.Waves))
	for i, wave := range ids.Waves {
		require.ElementsMatch(t, wave.UserIDs, bitmapOf(t, bitmaps.Waves[i].UsersBitmap))
		require.Equal(t, wave.ReadyAt, bitmaps.Waves[i].ReadyAt)
	}
	counts := bitmaps.Summary
	counts.Requested += ids.Summary.Duplicates
	counts.Duplicates = ids.Summary.Duplicates
	require.Equal(t, ids.Summary, counts)
}

func TestLargeBatches(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *server.Config) { cfg.Bounds.CallTimeout = time.Minute })
	users := span(1_000_000, 1_100_000)
	require.Len(t, s.filter(fields{"message_id": "m1", "user_ids": users}).Allowed, 100_000)
	tooMany := s.post("/v1/filter", fields{"message_id": "m1", "user_ids": append(users, 1)})
	require.Equal(t, http.StatusRequestEntityTooLarge, tooMany.status)

	million := s.filter(fields{"message_id": "m2", "users_bitmap": bitmapText(t, span(500_000, 1_500_000)...)})
	require.Equal(t, 900_000, million.Summary.Allowed)
	require.Len(t, bitmapOf(t, million.AllowedBitmap), 900_000)
	require.Equal(t, users, bitmapOf(t, million.DeniedBitmaps["daily"]))
	require.Less(t, len(million.AllowedBitmap), 400, "runs are written as runs")
}

// TestMessageIDs checks that a message id may have 128 arbitrary bytes, and that an escape counts as the bytes it
// stands for.
func TestMessageIDs(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		require.Equal(t, http.StatusOK, s.post("/v1/filter", fields{"message_id": strings.Repeat("é", 64),
			"user_ids": span(0, 1)}).status)
		require.Equal(t, http.StatusBadRequest, s.post("/v1/filter", fields{"message_id": strings.Repeat("é", 64) + "x",
			"user_ids": span(0, 1)}).status)
		s.filter(`{"message_id": "caf\u00e9 \ud83d\ude00 \"\/", "user_ids": [5]}`)
		require.Equal(t, []uint32{5}, s.filter(`{"message_id": "café 😀 \"/", "user_ids": [5]}`).Replayed)
		require.Equal(t, []uint32{5}, s.filter("{ \"user_ids\" :\t[ 5\n, 6 ] ,\r\n\"message_id\":\"café 😀 "+
			"\\\"/\"}\n").Replayed)
	})
}

func TestSameMillisecond(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		for i := range 7 {
			r := s.filter(fields{"message_id": fmt.Sprint(i), "user_ids": []uint32{150}})
			require.Equal(t, i < 2, len(r.Allowed) == 1, "send %d of a limit of 2", i)
		}
	})
}

func TestUsersMetric(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.filter(`{"message_id": "m1", "user_ids": [7, 300, 301, 999]}`)
	s.filter(`{"message_id": "m1", "user_ids": [7]}`)
	s.filter(`{"record": false, "user_ids": [7]}`)
	s.post("/v1/filter", `{}`)
	s.get("/nowhere")
	metrics := string(s.get("/metrics").body)
	for _, line := range []string{
		`capper_users_total{limit="",outcome="allowed",segment="new"} 1`,
		`capper_users_total{limit="",outcome="replayed",segment="new"} 1`,
		`capper_users_total{limit="",outcome="allowed",segment="default"} 1`,
		`capper_users_total{limit="never",outcome="denied",segment="blocked"} 2`,
		`capper_http_requests_total{route="/v1/filter",status="200"} 3`,
		`capper_http_requests_total{route="/v1/filter",status="400"} 1`,
		`capper_http_requests_total{route="other",status="404"} 1`,
		`capper_http_request_seconds_count{route="/v1/filter"} 4`,
		`capper_in_flight_users 0`,
	} {
		require.Contains(t, metrics, line+"\n")
	}
}

// TestCountersExistFromTheStart checks that counters start at 0, because an alert misses the first increase of a new
// counter.
func TestCountersExistFromTheStart(t *testing.T) {
	t.Parallel()
	s := newService(t)
	metrics := string(s.get("/metrics").body)
	for _, line := range []string{
		`capper_users_total{limit="",outcome="unavailable",segment="default"} 0`,
		`capper_users_total{limit="",outcome="unavailable",segment="free"} 0`,
		`capper_users_total{limit="push-gap",outcome="denied",segment="vip"} 0`,
		`capper_http_requests_total{route="/v1/filter",status="429"} 0`,
		`capper_http_requests_total{route="/v1/filter",status="500"} 0`,
		`capper_http_requests_total{route="/v1/users/{id}",status="503"} 0`,
		`capper_http_request_seconds_count{route="/v1/release"} 0`,
	} {
		require.Contains(t, metrics, line+"\n")
	}
}
