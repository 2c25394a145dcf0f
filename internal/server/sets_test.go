package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
	"capper/internal/share"
	"capper/internal/testkit"
)

// snapshot adapts a generation to the interface of the domain.
type snapshot struct {
	*segments.Snapshot
}

func (s snapshot) Set(name string) (capping.Set, bool) {
	set := s.Snapshot.Set(name)
	return capping.SetByNumber{Members: set}, set != nil
}

// generations holds the generations of a service, the current one last.
type generations struct{ list []*segments.Snapshot }

func (g *generations) current() *segments.Snapshot { return g.list[len(g.list)-1] }

func (g *generations) pin(name string) (*segments.Snapshot, error) {
	for _, s := range g.list {
		if s.Generation() == name {
			return s, nil
		}
	}
	if name == "" {
		return g.current(), nil
	}
	if segments.IsGeneration(name) && name > g.current().Generation() {
		return nil, &segments.NotYetError{Generation: name, InUse: g.current().Generation(), Interval: 30 * time.Second}
	}
	return nil, &segments.GoneError{Generation: name, InUse: g.current().Generation()}
}

// add creates a generation with the sets and makes it current.
func (g *generations) add(t testing.TB, sets map[string]*bitmap.Bitmap) {
	t.Helper()
	names := []string{"vip", "active"}
	users := []*bitmap.Bitmap{bitmap.Range(1, 10), bitmap.Of(append(span(5, 2001), span(70_000, 70_101)...)...)}
	var entries []segments.Set
	var bitmaps []*bitmap.Bitmap
	for _, name := range slices.Sorted(keysOf(sets)) {
		entries = append(entries, segments.Set{Segment: segments.Describe(name, sets[name])})
		bitmaps = append(bitmaps, sets[name])
	}
	list := []segments.Segment{segments.Describe(names[0], users[0]), segments.Describe(names[1], users[1])}
	m, err := segments.NewManifest(segmentstest.Epoch.Add(time.Duration(len(g.list))*time.Hour), "test", "", list,
		entries...)
	require.NoError(t, err)
	g.list = append(g.list, (&segments.Generation{Manifest: m, Bitmaps: users, Sets: bitmaps}).Snapshot())
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func testSets() map[string]*bitmap.Bitmap {
	return map[string]*bitmap.Bitmap{
		"opted-out": bitmap.Of(3, 7, 1000, 99_999), "country/sg": bitmap.Of(1, 2, 3, 100_000),
		"bounced":           bitmap.Of(8, 1000),
		"tz/Asia/Singapore": bitmap.Range(1, 100), "tz/America/New_York": bitmap.Range(101, 200),
	}
}

// setPolicy returns a policy with the suppressed set opted-out, quiet nights and a daily limit in the user's time
// zone, and a shadow limit.
func setPolicy(t testing.TB) *capping.Policy {
	t.Helper()
	held, err := share.New(share.Holdout, 10, "2027-q1")
	require.NoError(t, err)
	return &capping.Policy{
		Version: "policy-2", Channels: map[string]capping.Channel{"push": push, "email": email, "sms": 3},
		Default: []capping.Limit{{Name: "daily", Max: 1, Calendar: capping.CalendarDay, UserZone: true}},
		Segments: map[string][]capping.Limit{
			"vip": {{Name: "daily", Max: 2, Calendar: capping.CalendarDay, UserZone: true},
				{Name: "hourly", Max: 1, Window: time.Hour, Shadow: true}},
		},
		Suppress: []capping.Suppression{{Set: "opted-out"}, {Set: "bounced", Channels: capping.ChannelSetOf(email),
			EvenExempt: true}},
		Holdout: &capping.Holdout{Share: held, Channels: capping.ChannelSetOf(3)},
		Quiet: []capping.Quiet{{Hours: quiet.Hours{From: 21 * 60, To: 8 * 60}, Channels: capping.ChannelSetOf(push),
			UserZone: true}},
	}
}

// newSetService returns a service with a generation that has sets.
func newSetService(t testing.TB, change ...func(*server.Config)) (*service, *generations) {
	t.Helper()
	clock := testkit.NewClockAt(startOfTest)
	return newSetServiceOver(t, openStore(t, clock.Now), clock, change...)
}

func newSetServiceOver(t testing.TB, store capping.Store, clock *testkit.Clock, change ...func(*server.Config)) (
	*service, *generations) {
	t.Helper()
	g := &generations{}
	g.add(t, testSets())
	named, err := audience.NewNamed(map[string]string{"engaged": "active - opted-out"})
	require.NoError(t, err)
	use := func(cfg *server.Config) {
		cfg.Capper = capping.New(store, func() capping.Segments { return snapshot{Snapshot: g.current()} },
			setPolicy(t),
			clock.Now)
		cfg.Generations, cfg.Audiences = g.pin, func(*capping.Policy) *audience.Named { return named }
	}
	s := newServiceOver(t, store, clock, append([]func(*server.Config){use}, change...)...)
	return s, g
}

func onBothStoresWithSets(t *testing.T, test func(t *testing.T, s *service, g *generations)) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s, g := newSetService(t)
		test(t, s, g)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		clock := testkit.NewClockAt(startOfTest)
		s, g := newSetServiceOver(t, openRedis(t, clock.Now, testkit.Namespace()), clock)
		test(t, s, g)
	})
}

// filterIDs calls POST /v1/filter with ids, which must succeed.
func (s *service) filterIDs(body any) *api.FilterIDs {
	s.t.Helper()
	r := s.post("/v1/filter", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.FilterIDs](s.t, r.body)
}

func (s *service) filterBitmaps(body any) *api.FilterBitmaps {
	s.t.Helper()
	r := s.post("/v1/filter", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.FilterBitmaps](s.t, r.body)
}

// TestAnswersTellWhatWithholds runs at 17:12 in Singapore, 04:12 in New York and 09:12 in UTC.
func TestAnswersTellWhatWithholds(t *testing.T) {
	onBothStoresWithSets(t, func(t *testing.T, s *service, _ *generations) {
		ids := []uint32{1, 3, 11, 150, 1000, 70_000, 500_000}
		a := s.filterIDs(fields{"message_id": "m1", "channel": "push", "user_ids": ids, "waves": true})
		require.Equal(t, []uint32{1, 11, 70_000, 500_000}, a.Allowed)
		opening := time.Date(2037, 11, 20, 13, 0, 0, 0, time.UTC)
		require.Equal(t, []api.Denial{
			{UserID: 3, Segment: "vip", Limit: "suppressed", Set: "opted-out"},
			{UserID: 150, Segment: "active", Limit: "quiet", Timezone: "America/New_York", RetryAt: &opening},
			{UserID: 1000, Segment: "active", Limit: "suppressed", Set: "opted-out"},
		}, a.Denied)
		require.Equal(t, map[string]int{"suppressed": 2, "quiet": 1}, a.Summary.Denied)
		require.Equal(t, map[string]int{"opted-out": 2}, a.Summary.Suppressed)
		require.Nil(t, a.Summary.ShadowDenied)
		require.Len(t, a.Waves, 1)
		require.Equal(t, []uint32{150}, a.Waves[0].UserIDs)
		require.Equal(t, opening, a.Waves[0].ReadyAt)

		again := s.filterIDs(fields{"message_id": "m2", "channel": "push", "user_ids": ids})
		require.Equal(t, []uint32{1}, again.Allowed)
		require.Equal(t, map[string]int{"hourly": 1}, again.Summary.ShadowDenied)
		require.Equal(t, map[string]int{"suppressed": 2, "quiet": 1, "daily": 3}, again.Summary.Denied)
		require.Equal(t, "Asia/Singapore", again.Denied[1].Timezone)
		midnight := time.Date(2037, 11, 21, 8, 0, 0, 0, time.UTC)
		require.Equal(t, api.Denial{UserID: 500_000, Segment: "default", Limit: "daily", Max: 1, Timezone: "UTC",
			RetryAt: &midnight}, again.Denied[5],
			"the day begins at midnight, and quiet hours end at eight")

		b := s.filterBitmaps(fields{"message_id": "m3", "channel": "push", "users_bitmap": bitmapText(t, ids...)})
		require.Equal(t, []string{"daily", "quiet", "suppressed"}, keys(b.DeniedBitmaps))
		require.Equal(t, []uint32{3, 1000}, b.DeniedBitmaps["suppressed"].ToArray())
		require.Equal(t, []uint32{150}, b.DeniedBitmaps["quiet"].ToArray())

		exempt := s.filterIDs(fields{"message_id": "m4", "channel": "email", "user_ids": []int{3, 8, 150},
			"enforce": false})
		require.Equal(t, []uint32{3, 150}, exempt.Allowed)
		require.Equal(t, map[string]int{"bounced": 1}, exempt.Summary.Suppressed)
	})
}

func TestHoldoutIsAnswered(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	a := s.filterBitmaps(fields{"message_id": "m", "channel": "sms", "users_bitmap": bitmapText(t, span(0, 3000)...)})
	held := a.DeniedBitmaps["holdout"].ToArray()
	require.InDelta(t, 300, len(held), 60)
	var e api.Explanation
	r := s.get("/v1/users/" + fmt.Sprint(held[0]))
	e = *decodeAs[api.Explanation](t, r.body)
	require.Equal(t, &api.Holdout{Percent: 10, Salt: "2027-q1", Channels: []string{"sms"}}, e.Holdout)
}

func TestExplainTellsWhatWithholds(t *testing.T) {
	onBothStoresWithSets(t, func(t *testing.T, s *service, g *generations) {
		s.filterIDs(fields{"message_id": "m1", "channel": "push", "user_ids": []int{1}})
		e := decodeAs[api.Explanation](t, s.get("/v1/users/1").body)
		require.Equal(t, "Asia/Singapore", e.Timezone)
		require.Equal(t, []string{"hourly"}, e.WouldBeDeniedBy)
		require.Equal(t, "user", e.Limits[0].Timezone)
		require.True(t, e.Limits[1].Shadow)
		require.Empty(t, e.Suppressed)
		require.Len(t, e.Quiet, 1)
		require.False(t, e.Quiet[0].Now)

		e = decodeAs[api.Explanation](t, s.get("/v1/users/1000").body)
		require.Equal(t, "UTC", e.Timezone)
		require.Equal(t, []api.Suppression{{Set: "opted-out"}, {Set: "bounced", Channels: []string{"email"},
			EvenExempt: true}}, e.Suppressed)
		e = decodeAs[api.Explanation](t, s.get("/v1/users/150").body)
		opening := time.Date(2037, 11, 20, 13, 0, 0, 0, time.UTC)
		require.Equal(t, []api.QuietStanding{{Quiet: api.Quiet{From: "21:00", To: "08:00", Zone: "user",
			Channels: []string{"push"}}, Now: true, Until: &opening}}, e.Quiet)
		require.Contains(t, string(s.get("/v1/users/150").body), `"until":"2037-11-20T13:00:00.000Z"`)
		require.Empty(t, e.Missing)

		g.add(t, map[string]*bitmap.Bitmap{"bounced": bitmap.Of(8, 1000)})
		e = decodeAs[api.Explanation](t, s.get("/v1/users/1000").body)
		require.Equal(t, []string{"opted-out"}, e.Missing)
		require.Equal(t, []api.Suppression{{Set: "bounced", Channels: []string{"email"}, EvenExempt: true}},
			e.Suppressed)
	})
}

func TestLimitsTellWhatWithholds(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	p := decodeAs[api.Policy](t, s.get("/v1/limits").body)
	require.Equal(t, []api.Suppression{{Set: "opted-out"}, {Set: "bounced", Channels: []string{"email"},
		EvenExempt: true}}, p.Suppress)
	require.Equal(t, &api.Holdout{Percent: 10, Salt: "2027-q1", Channels: []string{"sms"}}, p.Holdout)
	require.Equal(t, []api.Quiet{{From: "21:00", To: "08:00", Zone: "user", Channels: []string{"push"}}}, p.Quiet)
	require.Equal(t, "UTC", p.Timezone)
	require.True(t, p.Segments["vip"][1].Shadow)
}

// TestMetricsOfSets checks that denials by sets and shadow limits have metrics from the start, which follow the
// configuration.
func TestMetricsOfSets(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	metrics := string(s.get("/metrics").body)
	for _, line := range []string{
		`capper_users_total{limit="suppressed",outcome="denied",segment="vip"} 0`,
		`capper_users_total{limit="holdout",outcome="denied",segment="default"} 0`,
		`capper_users_total{limit="quiet",outcome="denied",segment="default"} 0`,
		`capper_suppressed_users_total{set="opted-out"} 0`,
		`capper_suppressed_users_total{set="bounced"} 0`,
		`capper_shadow_denied_users_total{limit="hourly",segment="vip"} 0`,
	} {
		require.Contains(t, metrics, line+"\n")
	}
	for _, id := range []string{"m1", "m2"} {
		s.filterIDs(fields{"message_id": id, "channel": "push", "user_ids": []int{1, 3, 150, 1000}})
	}
	metrics = string(s.get("/metrics").body)
	for _, line := range []string{
		`capper_users_total{limit="suppressed",outcome="denied",segment="vip"} 2`,
		`capper_users_total{limit="quiet",outcome="denied",segment="active"} 2`,
		`capper_suppressed_users_total{set="opted-out"} 4`,
		`capper_shadow_denied_users_total{limit="hourly",segment="vip"} 1`,
	} {
		require.Contains(t, metrics, line+"\n")
	}
	policy := setPolicy(t)
	policy.Suppress = []capping.Suppression{{Set: "country/sg"}}
	policy.Segments = nil
	s.capper.SetPolicy(policy)
	metrics = string(s.get("/metrics").body)
	require.Contains(t, metrics, `capper_suppressed_users_total{set="country/sg"} 0`)
	require.NotContains(t, metrics, `set="opted-out"`)
	require.NotContains(t, metrics, "capper_shadow_denied_users_total{")
}

// TestAMissingSetIsNotReady checks that without a needed set nobody may receive a send and the service is not ready.
func TestAMissingSetIsNotReady(t *testing.T) {
	onBothStoresWithSets(t, func(t *testing.T, s *service, g *generations) {
		require.Equal(t, http.StatusOK, s.get("/readyz").status)
		sets := testSets()
		delete(sets, "opted-out")
		g.add(t, sets)
		r := s.get("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Contains(t, r.failure(t).Error.Message, "not ready: generation "+g.current().Generation()+
			" has no set opted-out")
		status := decodeAs[api.Status](t, s.get("/v1/status").body)
		require.False(t, status.Ready)
		require.Equal(t, []string{"opted-out"}, status.Segments.Missing)
		a := s.filterIDs(fields{"message_id": "m1", "channel": "push", "user_ids": []int{1, 5, 150}})
		require.Equal(t, []uint32{1, 5, 150}, a.Unavailable)
		g.add(t, testSets())
		require.Equal(t, http.StatusOK, s.get("/readyz").status)
		require.True(t, decodeAs[api.Status](t, s.get("/v1/status").body).Ready)
		require.NotEmpty(t, s.filterIDs(fields{"message_id": "m1", "channel": "push",
			"user_ids": []int{1, 5, 150}}).Allowed)
	})
}
