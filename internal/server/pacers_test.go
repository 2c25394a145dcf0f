package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

func testPacers() *pacing.Policy {
	return &pacing.Policy{Version: "policy-1", Pacers: []pacing.Pacer{
		{Name: "twilio", Limits: []pacing.Limit{{Max: 100, Window: time.Second}, {Max: 250, Window: 24 * time.Hour}}},
		{Name: "carrier", Rate: pacing.Rate{Permits: 250, Per: time.Second}, MaxWait: 30 * time.Second},
		{Name: "campaign", Limits: []pacing.Limit{{Max: 300, Window: time.Minute}}, Per: pacing.PerMessage,
			MaxWait: 24 * time.Hour},
		{Name: "sender", Rate: pacing.Rate{Permits: 1, Per: time.Second}, Per: pacing.PerKey},
		{Name: "thirds", Rate: pacing.Rate{Permits: 3, Per: time.Second},
			Limits: []pacing.Limit{{Max: 2, Window: time.Minute}}},
	}}
}

// newPaced returns a service with pacers on a separate store.
func newPaced(t testing.TB, change ...func(*server.Config)) *service {
	t.Helper()
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	return newServiceOver(t, store, clock, append([]func(*server.Config){withPacers(t, store)}, change...)...)
}

func withPacers(t testing.TB, store capping.Store) func(*server.Config) {
	permits, ok := capping.As[pacing.Store](store)
	require.True(t, ok)
	return func(cfg *server.Config) { cfg.Pacers = pacing.New(permits, testPacers()) }
}

// permits calls POST /v1/permits, which must succeed.
func (s *service) permits(body any) *api.Permits {
	s.t.Helper()
	r := s.post("/v1/permits", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.Permits](s.t, r.body)
}

// answers requires the exact text of an answer to POST /v1/permits.
func (s *service) answers(body, want string) {
	s.t.Helper()
	r := s.post("/v1/permits", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	require.Equal(s.t, strings.Join(strings.Fields(want), ""), strings.TrimSpace(string(r.body)))
}

func TestPermitsOfALimit(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	s.answers(`{"pacers":["twilio"],"permits":60}`, `
		{"granted":60,"slots":[{"wait_ms":0,"permits":60}],"refused":0,
		 "pacers":[{"name":"twilio","queue_ms":0,"next_ms":0,"used":60,"max":100,"window":"1s"}]}`)
	s.clock.Advance(250_250 * time.Microsecond)
	s.answers(`{"pacers":["twilio"],"permits":60}`, `
		{"granted":40,"slots":[{"wait_ms":0,"permits":40}],"refused":20,
		 "limited_by":{"pacer":"twilio","limit":"1s"},"retry_after_ms":749.75,
		 "pacers":[{"name":"twilio","queue_ms":0,"next_ms":749.75,"used":100,"max":100,"window":"1s"}]}`)
	s.answers(`{"pacers":["twilio"],"permits":7}`, `
		{"granted":0,"slots":[],"refused":7,
		 "limited_by":{"pacer":"twilio","limit":"1s"},"retry_after_ms":749.75,
		 "pacers":[{"name":"twilio","queue_ms":0,"next_ms":749.75,"used":100,"max":100,"window":"1s"}]}`)
	s.answers(`{"pacers":["twilio"],"permits":200,"max_wait":"2s"}`, `
		{"granted":150,"slots":[{"wait_ms":749.75,"permits":60},{"wait_ms":1000,"permits":40},{"wait_ms":1749.75,
		 "permits":50}],"refused":50,
		 "limited_by":{"pacer":"twilio","limit":"24h"},"retry_after_ms":86399749.75,
		 "pacers":[{"name":"twilio","queue_ms":1749.75,"next_ms":86399749.75,"used":250,"max":250,"window":"24h"}]}`)
}

func TestPermitsOfARate(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	s.answers(`{"pacers":["carrier"],"permits":500,"max_wait":"1s"}`, `
		{"granted":251,"slots":[{"wait_ms":0,"every_ms":4,"permits":251}],"refused":249,
		 "limited_by":{"pacer":"carrier","limit":"rate"},"retry_after_ms":1004,"pacers":[{"name":"carrier","queue_ms":1000,"next_ms":1004}]}`)
	s.clock.Advance(1001 * time.Millisecond)
	s.answers(`{"pacers":["carrier"],"permits":2}`, `
		{"granted":1,"slots":[{"wait_ms":0,"permits":1}],"refused":1,
		 "limited_by":{"pacer":"carrier","limit":"rate"},"retry_after_ms":1,"pacers":[{"name":"carrier","queue_ms":0,"next_ms":4}]}`)
	s.clock.Advance(3 * time.Millisecond) // for which the call was held
	s.answers(`{"pacers":["carrier"],"permits":1,"max_wait":"4ms"}`, `
		{"granted":1,"slots":[{"wait_ms":4,"permits":1}],"refused":0,"pacers":[{"name":"carrier","queue_ms":4,"next_ms":8}]}`)
	got := s.permits(`{"pacers":["carrier"],"permits":100000,"max_wait":"24h"}`)
	require.Equal(t, 7499, got.Granted, "30 s of the rate: the pacer's own max_wait bounds the call's")
	s.answers(`{"pacers":["thirds"],"permits":2,"max_wait":"1s"}`, `
		{"granted":2,"slots":[{"wait_ms":0,"every_ms":333.334,"permits":2}],"refused":0,
		 "pacers":[{"name":"thirds","queue_ms":333.334,"next_ms":60000,"used":2,"max":2,"window":"1m"}]}`)
}

func TestPermitsOfSeveralPacersAreWhatAllOfThemGrant(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	s.answers(`{"message_id":"promo-7","max_wait":"2s","permits":500,"pacers":["carrier","campaign"]}`, `
		{"granted":300,"slots":[{"wait_ms":0,"every_ms":4,"permits":300}],"refused":200,
		 "limited_by":{"pacer":"campaign","limit":"1m"},"retry_after_ms":60000,
		 "pacers":[{"name":"carrier","queue_ms":1196,"next_ms":1200},
		           {"name":"campaign","per":"message","message_id":"promo-7","queue_ms":1196,"next_ms":60000,"used":300,"max":300,"window":"1m"}]}`)
	s.answers(`{"message_id":"promo-8","permits":1,"pacers":["carrier","campaign"]}`, `
		{"granted":0,"slots":[],"refused":1,"limited_by":{"pacer":"carrier","limit":"rate"},"retry_after_ms":1191,
		 "pacers":[{"name":"carrier","queue_ms":1196,"next_ms":1200},
		           {"name":"campaign","per":"message","message_id":"promo-8","queue_ms":0,"next_ms":0,"used":0,"max":300,"window":"1m"}]}`)
	require.Equal(t, 100, s.permits(`{"message_id":"promo-8","permits":100,"pacers":["campaign"]}`).Granted,
		"what was refused is not recorded")
	s.answers(`{"pacers":["twilio","carrier"],"permits":1,"max_wait":"10s"}`, `
		{"granted":1,"slots":[{"wait_ms":1200,"permits":1}],"refused":0,
		 "pacers":[{"name":"twilio","queue_ms":1200,"next_ms":0,"used":1,"max":100,"window":"1s"},{"name":"carrier","queue_ms":1200,"next_ms":1204}]}`)
	s.answers(`{"pacers":["twilio"],"permits":1}`, `
		{"granted":1,"slots":[{"wait_ms":0,"permits":1}],"refused":0,
		 "pacers":[{"name":"twilio","queue_ms":1200,"next_ms":0,"used":2,"max":100,"window":"1s"}]}`)
}

// TestSlotsThatStayFreeAreTold checks that a refusal says when the slot is within all waits, and stays free because of
// shares: a client may wait for it.
func TestSlotsThatStayFreeAreTold(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	permits, ok := capping.As[pacing.Store](store)
	require.True(t, ok)
	s := newServiceOver(t, store, clock, func(cfg *server.Config) {
		cfg.Pacers = pacing.New(permits, &pacing.Policy{Version: "shares", Pacers: []pacing.Pacer{
			{Name: "carrier", Rate: pacing.Rate{Permits: 50, Per: time.Second},
				Shares: []pacing.Share{{Name: "otp", Percent: 20}}},
			{Name: "slow", Rate: pacing.Rate{Permits: 10, Per: time.Second}, MaxWait: 2900 * time.Millisecond},
		}})
	})
	require.Equal(t, 25, s.permits(`{"pacers":["slow"],"permits":25,"max_wait":"5s"}`).Granted)
	both := `{"pacers":["carrier","slow"],"permits":1`
	late := &api.LimitedBy{Pacer: "slow", Limit: "rate"}
	require.Equal(t, &api.LimitedBy{Pacer: "slow", Limit: "rate", TooEarly: true},
		s.permits(both+`,"max_wait":"4s"}`).LimitedBy)
	for _, wait := range []string{"", `,"max_wait":"2s"`} {
		require.Equal(t, late, s.permits(both+wait+"}").LimitedBy)
	}
	require.Equal(t, 1, s.permits(both+`,"max_wait":"4s","share":"otp"}`).Granted)
	require.Equal(t, 4, s.permits(`{"pacers":["slow"],"permits":4,"max_wait":"5s"}`).Granted)
	require.Equal(t, late, s.permits(both+`,"max_wait":"1h"}`).LimitedBy, "the pacer's own max_wait is shorter")
	s.clock.Advance(2700 * time.Millisecond)
	require.Equal(t, 1, s.permits(both+`,"max_wait":"4s"}`).Granted, "the slot is near")
}

func TestLookingTakesNothing(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	for range 3 {
		s.answers(`{"pacers":["twilio","campaign"],"permits":0,"message_id":"m","request_id":"r"}`, `
			{"granted":0,"slots":[],"refused":0,
			 "pacers":[{"name":"twilio","queue_ms":0,"next_ms":0,"used":0,"max":250,"window":"24h",
			             "limits":[{"used":0,"max":100,"window":"1s"},{"used":0,"max":250,"window":"24h"}]},
			           {"name":"campaign","per":"message","message_id":"m","queue_ms":0,"next_ms":0,"used":0,"max":300,
			             "window":"1m","limits":[{"used":0,"max":300,"window":"1m"}]}]}`)
	}
	s.permits(`{"pacers":["twilio"],"permits":100}`)
	s.answers(`{"pacers":["twilio"],"permits":0}`, `
		{"granted":0,"slots":[],"refused":0,
		 "pacers":[{"name":"twilio","queue_ms":0,"next_ms":1000,"used":100,"max":100,"window":"1s",
		 "limits":[{"used":100,"max":100,"window":"1s"},{"used":100,"max":250,"window":"24h"}]}]}`)
}

func TestARepeatedRequestTakesItsPermitsOnce(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	const body = `{"pacers":["carrier"],"permits":100,"max_wait":"200ms","request_id":"w3-1182"}`
	s.answers(body, `
		{"granted":51,"slots":[{"wait_ms":0,"every_ms":4,"permits":51}],"refused":49,
		 "limited_by":{"pacer":"carrier","limit":"rate"},"retry_after_ms":204,"pacers":[{"name":"carrier","queue_ms":200,"next_ms":204}]}`)
	s.clock.Advance(9 * time.Millisecond)
	s.answers(body, `
		{"granted":51,"slots":[{"wait_ms":0,"permits":3},{"wait_ms":3,"every_ms":4,"permits":48}],"replayed":true,
		 "refused":49,
		 "limited_by":{"pacer":"carrier","limit":"rate"},"retry_after_ms":195,"pacers":[{"name":"carrier","queue_ms":191,"next_ms":195}]}`)
	s.clock.Advance(30 * time.Second)
	s.answers(body, `
		{"granted":51,"slots":[{"wait_ms":0,"permits":51}],"replayed":true,"refused":49,"retry_after_ms":0,
		 "pacers":[{"name":"carrier","queue_ms":0,"next_ms":0}]}`)
	for _, other := range []string{
		`{"pacers":["carrier"],"permits":99,"max_wait":"200ms","request_id":"w3-1182"}`,
		`{"pacers":["twilio"],"permits":100,"request_id":"w3-1182"}`,
		`{"pacers":["carrier","campaign"],"permits":100,"message_id":"m","request_id":"w3-1182"}`,
	} {
		requireRefused(t, s.post("/v1/permits", other), http.StatusBadRequest, "invalid_request",
			badBody{field: "request_id", message: `"w3-1182" was used by an earlier request with other pacers`})
	}
	s.clock.Advance(2 * time.Hour)
	require.False(t, s.permits(body).Replayed, "it is not remembered for ever")
}

// TestPermitsAreOfANamespaceAndAClient checks that two teams with the same ids have separate logs and repeated
// requests.
func TestPermitsAreOfANamespaceAndAClient(t *testing.T) {
	t.Parallel()
	s := newPaced(t, teams)
	const body = `{"pacers":["campaign"],"permits":200,"message_id":"newsletter","request_id":"r1"}`
	growth, crm := s.as("g1.growth"), s.as("c1.crm")
	for _, team := range []*service{growth, crm} {
		got := team.permits(body)
		require.Equal(t, 200, got.Granted)
		require.False(t, got.Replayed)
		require.True(t, team.permits(body).Replayed)
		require.Equal(t, 100, team.permits(`{"pacers":["campaign"],"permits":200,"message_id":"newsletter"}`).Granted)
	}
	require.Equal(t, 100, growth.permits(`{"pacers":["twilio"],"permits":100}`).Granted)
	require.Equal(t, 0, crm.permits(`{"pacers":["twilio"],"permits":100}`).Granted,
		"a pacer that is not per message is everybody's")
}

// TestAPacerPerKey checks that each key has a log of its own, which all namespaces and messages share.
func TestAPacerPerKey(t *testing.T) {
	t.Parallel()
	s := newPaced(t, teams)
	growth, crm := s.as("g1.growth"), s.as("c1.crm")
	growth.answers(`{"pacers":["sender"],"permits":3,"max_wait":"1s","message_id":"a","key":"+6512345678"}`, `
		{"granted":2,"slots":[{"wait_ms":0,"every_ms":1000,"permits":2}],"refused":1,
		 "limited_by":{"pacer":"sender","limit":"rate"},"retry_after_ms":2000,
		 "pacers":[{"name":"sender","per":"key","key":"+6512345678","queue_ms":1000,"next_ms":2000}]}`)
	require.Zero(t, crm.permits(`{"pacers":["sender"],"permits":1,"message_id":"b","key":"+6512345678"}`).Granted)
	require.Equal(t, 1, crm.permits(`{"pacers":["sender"],"permits":1,"key":"+6512345679"}`).Granted, "another key")
	require.Equal(t, 1, crm.permits(`{"pacers":["sender"],"permits":1,"key":"A"}`).Granted)
	require.Equal(t, 1, crm.permits(`{"pacers":["sender"],"permits":1,"key":"a"}`).Granted, "byte by byte")
	crm.answers(`{"pacers":["sender"],"permits":0,"key":"+6512345678"}`, `
		{"granted":0,"slots":[],"refused":0,
		 "pacers":[{"name":"sender","per":"key","key":"+6512345678","queue_ms":1000,"next_ms":2000,"rate":"1/s"}]}`)

	const body = `{"pacers":["sender","campaign"],"permits":1,"message_id":"m","key":"k","request_id":"r"}`
	require.False(t, crm.permits(body).Replayed)
	require.True(t, crm.permits(body).Replayed)
	reused := crm.post("/v1/permits", strings.Replace(body, `"k"`, `"l"`, 1))
	require.Equal(t, http.StatusBadRequest, reused.status)
	require.Contains(t, string(reused.body), "key or share")
	require.Equal(t, 1, crm.permits(`{"pacers":["carrier"],"permits":1,"key":"k"}`).Granted, "other pacers ignore it")
}

// TestPacersOnBothStores checks that both stores give the same answers, except for times.
func TestPacersOnBothStores(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	for kind, open := range map[string]func(*testing.T) capping.Store{
		"embedded": func(t *testing.T) capping.Store { return openStore(t, time.Now) },
		"redis":    func(t *testing.T) capping.Store { return openRedis(t, time.Now, testkit.Namespace()) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			s := newServiceOver(t, store, clock, withPacers(t, store),
				func(cfg *server.Config) { cfg.Clock = time.Now })
			const body = `{"pacers":["campaign","carrier"],"permits":400,"max_wait":"30s","message_id":"m","request_id":"r"}`
			first := s.permits(body)
			require.Equal(t, 300, first.Granted)
			require.Equal(t, 100, first.Refused)
			require.Equal(t, []api.Slot{{EveryMS: api.Millis(4 * time.Millisecond), Permits: 300}}, first.Slots)
			require.Equal(t, &api.LimitedBy{Pacer: "campaign", Limit: "1m"}, first.LimitedBy)
			require.Equal(t, api.Millis(time.Minute), *first.RetryAfterMS)
			again := s.permits(body)
			require.True(t, again.Replayed)
			require.Equal(t, 300, again.Granted)
			require.Less(t, *again.RetryAfterMS, *first.RetryAfterMS)
			last := again.Slots[len(again.Slots)-1]
			require.Equal(t, again.Pacers[1].QueueMS, last.WaitMS+last.EveryMS*api.Millis(last.Permits-1),
				"the same slots, nearer by now")
			requireRefused(t, s.post("/v1/permits", strings.Replace(body, "400", "401", 1)), http.StatusBadRequest,
				"invalid_request", badBody{field: "request_id", message: `"r"`})

			require.Equal(t, 100, s.permits(`{"pacers":["twilio"],"permits":120}`).Granted)
			list := decodeAs[api.Pacers](t, s.get("/v1/pacers").body).Pacers
			require.Len(t, list, 5)
			require.Equal(t, 100, *list[0].Limits[1].Used)
			require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/pacers/twilio", "").status)
			require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/pacers/campaign", "").status)
			require.Equal(t, 0, *decodeAs[api.PacerState](t, s.get("/v1/pacers/twilio").body).Limits[1].Used)
			require.Equal(t, 300, s.permits(`{"pacers":["campaign"],"permits":400,"message_id":"m"}`).Granted)
		})
	}
}

// TestNobodyClosesAPacer checks on both stores that a call which would wait for a used-up day takes no slot of another
// pacer, and that calls get no slots beyond the max_wait of a pacer.
func TestNobodyClosesAPacer(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(*testing.T) capping.Store{
		"embedded": func(t *testing.T) capping.Store { return openStore(t, time.Now) },
		"redis":    func(t *testing.T) capping.Store { return openRedis(t, time.Now, testkit.Namespace()) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			s := newServiceOver(t, store, testkit.NewClock(), withPacers(t, store), func(cfg *server.Config) {
				cfg.Clock = time.Now
				cfg.Pacers.SetPolicy(&pacing.Policy{Pacers: []pacing.Pacer{
					{Name: "day", Limits: []pacing.Limit{{Max: 1, Window: 24 * time.Hour}}},
					{Name: "fcm", Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}},
					{Name: "marketing", Rate: pacing.Rate{Permits: 50, Per: time.Second}},
				}})
			})
			require.Equal(t, 1, s.permits(`{"pacers":["day"],"permits":1}`).Granted)
			const both = `{"pacers":["day","fcm"],"permits":1,"max_wait":"24h","request_id":"r"}`
			for range 2 {
				refused := s.permits(both)
				require.Zero(t, refused.Granted)
				require.Equal(t, &api.LimitedBy{Pacer: "day", Limit: "24h"}, refused.LimitedBy)
				require.Greater(t, time.Duration(*refused.RetryAfterMS), 23*time.Hour)
				require.Zero(t, *refused.Pacers[1].Used)
			}
			granted := s.permits(`{"pacers":["fcm"],"permits":100000}`)
			require.Equal(t, []api.Slot{{Permits: 100_000}}, granted.Slots)
			require.Equal(t, 1501, s.permits(`{"pacers":["marketing"],"permits":100000,"max_wait":"24h"}`).Granted,
				"half a minute of it")
		})
	}
}

func TestPacersTellWhatTheyHaveGivenOut(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	s.permits(`{"pacers":["twilio"],"permits":120,"max_wait":"1s"}`)
	s.permits(`{"pacers":["carrier"],"permits":2,"max_wait":"1s"}`)
	s.permits(`{"pacers":["campaign"],"permits":2,"message_id":"m"}`)
	const twilio = `{"name":"twilio","queue_ms":1000,"next_ms":1000,"used":100,"max":100,"window":"1s","max_wait":"30s",
		"limits":[{"used":100,"max":100,"window":"1s"},{"used":120,"max":250,"window":"24h"}]}`
	const carrier = `{"name":"carrier","queue_ms":4,"next_ms":8,"rate":"250/s","max_wait":"30s"}`
	const campaign = `{"name":"campaign","per":"message","queue_ms":0,"next_ms":0,"max_wait":"24h","limits":[{"max":300,"window":"1m"}]}`
	const sender = `{"name":"sender","per":"key","queue_ms":0,"next_ms":0,"rate":"1/s","max_wait":"30s"}`
	const thirds = `{"name":"thirds","queue_ms":0,"next_ms":0,"used":0,"max":2,"window":"1m","rate":"3/s","max_wait":"30s",
		"limits":[{"used":0,"max":2,"window":"1m"}]}`
	for range 2 {
		all := s.get("/v1/pacers")
		require.Equal(t, http.StatusOK, all.status)
		require.JSONEq(t, `{"pacers":[`+strings.Join([]string{twilio, carrier, campaign, sender, thirds}, ",")+
			`],"config_version":"policy-1"}`, string(all.body))
		require.JSONEq(t, twilio, string(s.get("/v1/pacers/twilio").body))
		require.JSONEq(t, campaign, string(s.get("/v1/pacers/campaign").body))
	}
}

// TestAPacerTellsWhatOneLogHasGivenOut reads the logs of a message and of a key. The reads take no permits, and need
// only the scope "read".
func TestAPacerTellsWhatOneLogHasGivenOut(t *testing.T) {
	t.Parallel()
	s := newPaced(t, withKeys)
	s.key = "x1.all"
	s.permits(`{"pacers":["campaign"],"permits":2,"message_id":"m&1"}`)
	s.permits(`{"pacers":["sender"],"permits":3,"key":"+65 1","max_wait":"30s"}`)
	const campaign = `{"name":"campaign","per":"message","message_id":"%s","queue_ms":0,"next_ms":0,"used":%d,"max":300,
		"window":"1m","max_wait":"24h","limits":[{"used":%[2]d,"max":300,"window":"1m"}]}`
	const sender = `{"name":"sender","per":"key","key":"%s","queue_ms":%d,"next_ms":%d,"rate":"1/s","max_wait":"30s"}`
	s.key = "r1.secret-of-support"
	for range 2 {
		require.JSONEq(t, fmt.Sprintf(campaign, "m&1", 2), string(s.get("/v1/pacers/campaign?message_id=m%261").body))
		require.JSONEq(t, fmt.Sprintf(campaign, "other", 0),
			string(s.get("/v1/pacers/campaign?message_id=other").body))
		require.JSONEq(t, fmt.Sprintf(campaign, "m&1", 0),
			string(s.get("/v1/pacers/campaign?message_id=m%261&namespace=growth").body))
		require.JSONEq(t, fmt.Sprintf(sender, "+65 1", 2000, 3000), string(s.get("/v1/pacers/sender?key=%2B65+1").body))
		require.JSONEq(t, fmt.Sprintf(sender, "-", 0, 0), string(s.get("/v1/pacers/sender?key=-").body))
	}
	long := strings.Repeat("x", 129)
	for query, rule := range map[string]string{
		"campaign?key=k":              `key: must be absent, because the pacer "campaign" has no separate log for`,
		"campaign?key=k&message_id=m": `key: must be absent, because the pacer "campaign" has no separate log for`,
		"campaign?namespace=growth":   `message_id: is required (1 to 128 bytes)`,
		"campaign?message_id=":        `message_id: must not be empty`,
		"campaign?message_id=" + long: `message_id: has 129 bytes and must have 1 to 128`,
		"sender?message_id=m":         `message_id: must be absent, because the pacer "sender" has no separate log`,
		"sender?namespace=n&key=k":    `namespace: must be absent, because the pacer "sender" has no separate log`,
		"sender?key=" + long:          `key: has 129 bytes and must have 1 to 128`,
		"sender?key=%ff":              `must be valid UTF-8`,
		"twilio?key=k":                `key: must be absent, because the pacer "twilio" has no separate log for`,
		"twilio?message_id=m":         `message_id: must be absent, because the pacer "twilio" has no separate log`,
		"twilio?id=m":                 `id: the parameter does not exist: this call has message_id, namespace, key`,
	} {
		r := s.get("/v1/pacers/" + query)
		require.Equal(t, http.StatusBadRequest, r.status, query)
		require.Contains(t, r.failure(t).Error.Message, rule)
	}
	require.Equal(t, http.StatusNotFound, s.get("/v1/pacers/none?key=k").status)
}

// TestAPacerShowsOnlyMessagesOfTheNamespace reads the log of a message with a key of the same and of another namespace.
func TestAPacerShowsOnlyMessagesOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := newPaced(t, func(cfg *server.Config) {
		growth, support := key("g1.growth", "growth", gate.ScopeFilter, gate.ScopeRead),
			key("s1.support", "care", gate.ScopeRead)
		growth.Namespace, support.Namespace = "growth", "care"
		cfg.Access = gate.Rules{Keys: append(testKeys(), growth, support)}
	})
	s.key = "g1.growth"
	s.permits(`{"pacers":["campaign"],"permits":2,"message_id":"m"}`)
	for _, read := range []struct {
		key, query string
		used       int
	}{
		{"g1.growth", "", 2}, {"g1.growth", "&namespace=growth", 2}, {"s1.support", "", 0},
		{"x1.all", "", 0}, {"x1.all", "&namespace=growth", 2}, {"x1.all", "&namespace=care", 0},
	} {
		s.key = read.key
		state := decodeAs[api.PacerState](t, s.get("/v1/pacers/campaign?message_id=m"+read.query).body)
		require.Equal(t, read.used, *state.Used, read)
	}
	s.key = "s1.support"
	require.Equal(t, http.StatusForbidden, s.get("/v1/pacers/campaign?message_id=m&namespace=growth").status)
}

// TestManyPacersAreListed checks that more pacers than one store call allows are read in several calls.
func TestManyPacersAreListed(t *testing.T) {
	t.Parallel()
	many := &pacing.Policy{Version: "policy-1"}
	for i := range 2*pacing.MaxPacers + 3 {
		many.Pacers = append(many.Pacers, pacing.Pacer{Name: fmt.Sprint("p", i),
			Per:    []pacing.Per{"", "", "", pacing.PerKey, pacing.PerMessage}[i%5],
			Limits: []pacing.Limit{{Max: 10 + i, Window: time.Minute}}})
	}
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	var pacers *pacing.Pacers
	s := newServiceOver(t, store, clock, withPacers(t, store), func(cfg *server.Config) {
		pacers = cfg.Pacers
		pacers.SetPolicy(many)
	})
	s.permits(`{"pacers":["p15"],"permits":7}`)
	list := decodeAs[api.Pacers](t, s.get("/v1/pacers").body)
	require.Len(t, list.Pacers, len(many.Pacers))
	for i, p := range list.Pacers {
		require.Equal(t, many.Pacers[i].Name, p.Name)
		require.EqualValues(t, many.Pacers[i].Per, p.Per)
		if p.Per != "" {
			require.Nil(t, p.Used)
			continue
		}
		want := 0
		if i == 15 {
			want = 7
		}
		require.Equal(t, want, *p.Used, p.Name)
		require.Equal(t, 10+i, p.Max)
	}
	pacers.SetPolicy(&pacing.Policy{Version: "policy-1"})
	require.JSONEq(t, `{"pacers":[],"config_version":"policy-1"}`, string(s.get("/v1/pacers").body))
}

func TestAPacerIsForgotten(t *testing.T) {
	t.Parallel()
	log := &journal{}
	s := newPaced(t, withKeys, func(cfg *server.Config) { cfg.Logger = slog.New(slog.NewJSONHandler(log, nil)) })
	s.key = "x1.all"
	s.permits(`{"pacers":["twilio"],"permits":100,"request_id":"r"}`)
	s.permits(`{"pacers":["campaign"],"permits":300,"message_id":"m"}`)
	require.Empty(t, log.lines(t, "audit"), "permits are what the service is for: metrics count them")
	for range 2 {
		for _, name := range []string{"twilio", "campaign"} {
			r := s.call(http.MethodDelete, "/v1/pacers/"+name, "")
			require.Equal(t, http.StatusNoContent, r.status)
			require.Empty(t, r.body)
		}
	}
	lines := log.lines(t, "audit")
	require.Len(t, lines, 4)
	delete(lines[0], "request_id")
	require.Equal(t, map[string]any{
		"level": "INFO", "msg": "audit", "action": "forget", "result": "done", "client": "root", "key": "x1",
		"address": "127.0.0.1", "pacer": "twilio",
	}, lines[0])
	require.True(t, s.permits(`{"pacers":["twilio"],"permits":100,"request_id":"r"}`).Replayed,
		"requests stay remembered")
	require.Equal(t, 100, s.permits(`{"pacers":["twilio"],"permits":100}`).Granted)
	require.Equal(t, 300, s.permits(`{"pacers":["campaign"],"permits":300,"message_id":"m"}`).Granted)
}

// TestAPacerThatLeftTheConfigurationIsForgotten checks that a log is deleted that would count again if the pacer came
// back.
func TestAPacerThatLeftTheConfigurationIsForgotten(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(*testing.T) capping.Store{
		"embedded": func(t *testing.T) capping.Store { return openStore(t, time.Now) },
		"redis":    func(t *testing.T) capping.Store { return openRedis(t, time.Now, testkit.Namespace()) },
	} {
		for _, forget := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", kind, forget), func(t *testing.T) {
				t.Parallel()
				leavesAndComesBack(t, open(t), forget)
			})
		}
	}
}

func leavesAndComesBack(t *testing.T, store capping.Store, forget bool) {
	const day, message = `{"pacers":["twilio"],"permits":250,"max_wait":"30s"}`,
		`{"pacers":["campaign"],"permits":250,"message_id":"m"}`
	var pacers *pacing.Pacers
	s := newServiceOver(t, store, testkit.NewClock(), withPacers(t, store), func(cfg *server.Config) {
		cfg.Clock, pacers = time.Now, cfg.Pacers
	})
	require.Equal(t, 250, s.permits(day).Granted)
	require.Equal(t, 250, s.permits(message).Granted)
	pacers.SetPolicy(&pacing.Policy{Version: "policy-2"})
	if forget {
		for _, name := range []string{"twilio", "campaign", "twilio"} {
			require.Equal(t, http.StatusNotFound, s.get("/v1/pacers/"+name).status)
			require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/pacers/"+name, "").status)
		}
	}
	pacers.SetPolicy(testPacers())
	if forget {
		require.Equal(t, 250, s.permits(message).Granted)
		require.Equal(t, 250, s.permits(day).Granted)
		return
	}
	require.Zero(t, s.permits(day).Granted, "its log counts for the day")
}

func TestSharesOfClients(t *testing.T) {
	t.Parallel()
	store := openStore(t, testkit.NewClockAt(startOfTest).Now)
	permits, ok := capping.As[pacing.Store](store)
	require.True(t, ok)
	shared := pacing.Pacer{Name: "hour", Limits: []pacing.Limit{{Max: 100, Window: time.Hour}},
		Shares: []pacing.Share{{Name: "otp", Percent: 20}, {Name: "alerts", Percent: 10}}}
	pacers := pacing.New(permits, &pacing.Policy{Version: "policy-1", Pacers: []pacing.Pacer{shared}})
	s := newServiceOver(t, store, testkit.NewClockAt(startOfTest), func(cfg *server.Config) { cfg.Pacers = pacers })
	granted := func(share string, permits int) {
		t.Helper()
		s.key = "o1.otp"
		require.Contains(t, string(s.get("/metrics").body), fmt.Sprintf(
			"capper_share_permits_granted_total{pacer=\"hour\",share=%q} %d\n", share, permits))
	}
	granted("otp", 0)
	s.key = ""
	require.Equal(t, 10, s.permits(`{"pacers":["hour"],"permits":10,"share":"alerts"}`).Granted, "there are no keys")
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: []gate.Key{key("c1.crm", "crm", gate.ScopeFilter),
		key("o1.otp", "otp", gate.ScopeFilter, gate.ScopeRead), key("b1.both", "both", gate.ScopeFilter)},
		Shares: map[string]gate.Shares{"otp": {Own: "otp"}, "both": {May: []string{"otp", "alerts"}}}}))
	s.key = "c1.crm"
	requireRefused(t, s.post("/v1/permits", `{"pacers":["hour"],"permits":1,"share":"otp"}`), http.StatusForbidden,
		"forbidden", badBody{field: "share", message: `the client "crm" may not use the share "otp": an operator can add ` +
			`the share to clients.crm.shares`})
	refused := s.permits(`{"pacers":["hour"],"permits":100}`)
	require.Equal(t, 70, refused.Granted)
	require.Equal(t, &api.LimitedBy{Pacer: "hour", Limit: api.LimitShare}, refused.LimitedBy)
	s.key = "o1.otp"
	require.Equal(t, 15, s.permits(`{"pacers":["hour"],"permits":15}`).Granted)
	require.Equal(t, []api.PacerShare{{Name: "otp", Percent: 20}, {Name: "alerts", Percent: 10}},
		decodeAs[api.PacerState](t, s.get("/v1/pacers/hour").body).Shares)
	s.key = "b1.both"
	require.Zero(t, s.permits(`{"pacers":["hour"],"permits":10,"share":"alerts"}`).Granted)
	require.Equal(t, 5, s.permits(`{"pacers":["hour"],"permits":10,"share":"otp"}`).Granted)
	for share, message := range map[string]string{`"sms"`: `got "sms" (shares: alerts, otp)`,
		`"a b"`: "is not the name", `7`: "share"} {
		requireRefused(t, s.post("/v1/permits", `{"pacers":["hour"],"permits":1,"share":`+share+`}`),
			http.StatusBadRequest, "invalid_request", badBody{field: "share", message: message})
	}
	granted("otp", 20)
	granted("alerts", 10)
	granted("", 70)
	shared.Shares = shared.Shares[:1]
	pacers.SetPolicy(&pacing.Policy{Version: "policy-2", Pacers: []pacing.Pacer{shared}})
	granted("otp", 20)
	require.NotContains(t, string(s.get("/metrics").body), `share="alerts"`)
	pacers.SetPolicy(&pacing.Policy{Version: "policy-3"})
	require.NotContains(t, string(s.get("/metrics").body), `capper_share_permits_granted_total{`)
}

func TestClientsAreBoundToPacers(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	keys := []gate.Key{key("c1.crm", "crm", gate.ScopeFilter), key("g1.growth", "growth", gate.ScopeFilter),
		key("o1.otp", "otp", gate.ScopeFilter, gate.ScopeRead)}
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: keys,
		Pacers: map[string][]string{"crm": {"twilio", "carrier"}, "growth": {"carrier"}}}))
	for _, c := range []struct {
		key, pacers, field, refused string
	}{
		{"c1.crm", `"twilio"`, "", ""},
		{"c1.crm", `"carrier","twilio"`, "", ""},
		{"c1.crm", `"twilio","thirds"`, "pacers[1]", `the client "crm" may not use the pacer "thirds": an operator ` +
			`can add the pacer to clients.crm.pacers`},
		{"g1.growth", `"twilio"`, "pacers[0]", `the client "growth" may not use the pacer "twilio"`},
		{"g1.growth", `"carrier"`, "", ""},
		{"o1.otp", `"twilio","carrier","thirds"`, "", ""},
	} {
		s.key = c.key
		for _, permits := range []string{"0", "1"} {
			r := s.post("/v1/permits", `{"pacers":[`+c.pacers+`],"permits":`+permits+`,"max_wait":"1m"}`)
			if c.refused == "" {
				require.Equal(t, http.StatusOK, r.status, string(r.body))
				continue
			}
			requireRefused(t, r, http.StatusForbidden, "forbidden", badBody{field: c.field, message: c.refused})
		}
	}
	s.key = "c1.crm"
	requireRefused(t, s.post("/v1/permits", `{"pacers":["nope"],"permits":1}`), http.StatusBadRequest,
		"invalid_request", badBody{field: "pacers[0]", message: "must be a configured pacer"})
	s.key = "o1.otp"
	require.Len(t, decodeAs[api.Pacers](t, s.get("/v1/pacers").body).Pacers, 5, "all may be read")
}

func TestPermitsRefusesLargeBodies(t *testing.T) {
	t.Parallel()
	r := newPaced(t).post("/v1/permits", `{"pacers":["twilio"],"permits":1`+strings.Repeat(" ", 64<<10)+`}`)
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large",
		badBody{message: "a call for permits needs only a number of permits and the names of 1 to 8 pacers"})
}

func TestUnknownPacersAreNotFound(t *testing.T) {
	t.Parallel()
	for _, s := range []*service{newPaced(t), newService(t)} {
		for _, path := range []string{"/v1/pacers/fcm", "/v1/pacers/Twilio", "/v1/pacers/twi%20lio", "/v1/pacers/%ff"} {
			r := s.get(path)
			require.Equal(t, http.StatusNotFound, r.status, path)
			require.Contains(t, r.failure(t).Error.Message, "does not exist")
		}
		for _, path := range []string{"/v1/pacers/twi%20lio", "/v1/pacers/%ff"} {
			r := s.call(http.MethodDelete, path, "")
			require.Equal(t, http.StatusNotFound, r.status, path)
			require.Contains(t, r.failure(t).Error.Message, "pacer must be 1 to 64 letters, digits")
		}
		for _, path := range []string{"/v1/pacers/", "/v1/pacers/a/b", "/v1/pacers/a%2Fb", "/v1/permits/x"} {
			require.Equal(t, "not_found", s.get(path).failure(t).Error.Code, path)
		}
		require.Contains(t, s.get("/v1/pacers/fcm").failure(t).Error.Message, `"fcm"`)
		requireRefused(t, s.post("/v1/permits", `{"pacers":["fcm"],"permits":1}`), http.StatusBadRequest,
			"invalid_request",
			badBody{field: "pacers[0]", message: `"fcm"`})
		require.Equal(t, http.StatusMethodNotAllowed, s.get("/v1/permits").status)
	}
	require.JSONEq(t, `{"pacers":[],"config_version":"policy-1"}`, string(newService(t).get("/v1/pacers").body))
}

func TestPermitsRefusesBodies(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	long := strings.Repeat("x", 129)
	for _, c := range []badBody{
		{"empty", ``, "", "empty"},
		{"array", `[]`, "", "not a JSON object"},
		{"trailing object", `{"pacers":["twilio"],"permits":1}{}`, "", "nothing may follow"},
		{"unknown field", `{"pacers":["twilio"],"permits":1,"wait":"2s"}`, "wait", "no such field"},
		{"a field of filter", `{"pacers":["twilio"],"permits":1,"channel":"sms"}`, "channel", "no such field"},
		{"other case", `{"Pacers":["twilio"],"permits":1}`, "Pacers", "lower case"},
		{"repeated", `{"pacers":["twilio"],"permits":1,"permits":2}`, "permits", "twice"},

		{"no pacers", `{"permits":1}`, "pacers", "is required"},
		{"pacers empty", `{"pacers":[],"permits":1}`, "pacers", "empty"},
		{"pacers null", `{"pacers":null,"permits":1}`, "pacers", "null is not an array"},
		{"pacers string", `{"pacers":"twilio","permits":1}`, "pacers", "not an array"},
		{"pacer null", `{"pacers":["twilio",null],"permits":1}`, "pacers[1]", "null is not a string"},
		{"pacer number", `{"pacers":[1],"permits":1}`, "pacers[0]", "1 is not a string"},
		{"pacer empty", `{"pacers":[""],"permits":1}`, "pacers[0]", "is not the name of a pacer"},
		{"pacer not UTF-8", "{\"pacers\":[\"a\xff\"],\"permits\":1}", "pacers[0]", "UTF-8"},
		{"pacer long", `{"pacers":["` + long + `"],"permits":1}`, "pacers[0]", "is not the name of a pacer"},
		{"pacer unknown", `{"pacers":["twilio","fcm"],"permits":1}`, "pacers[1]",
			`must be a configured pacer, got "fcm" (configured pacers: `},
		{"pacer twice", `{"pacers":["twilio","carrier","twilio"],"permits":1}`, "pacers[2]", `given twice: "twilio"`},
		{"many pacers", `{"pacers":["a","b","c","d","e","f","g","h","i"],"permits":1}`, "pacers",
			"must have at most 8 names, got 9"},
		{"pacers with a trailing comma", `{"pacers":["a",],"permits":1}`, "pacers[1]", "not a string"},
		{"pacers without a comma", `{"pacers":["a" "b"],"permits":1}`, "", "',' or ']'"},
		{"pacers cut off", `{"pacers":["a"`, "", "ends at byte 14"},

		{"no permits", `{"pacers":["twilio"]}`, "permits", "is required"},
		{"permits null", `{"pacers":["twilio"],"permits":null}`, "permits",
			"null is not a number of permits (0 to 100000)"},
		{"permits string", `{"pacers":["twilio"],"permits":"5"}`, "permits", `"5" is not`},
		{"permits negative", `{"pacers":["twilio"],"permits":-1}`, "permits", "-1 is not"},
		{"permits fraction", `{"pacers":["twilio"],"permits":1.5}`, "permits", "1.5 is not"},
		{"permits whole fraction", `{"pacers":["twilio"],"permits":1.0}`, "permits", "1.0 is not"},
		{"permits exponent", `{"pacers":["twilio"],"permits":1e3}`, "permits", "1e3 is not"},
		{"permits leading zero", `{"pacers":["twilio"],"permits":01}`, "permits", "01 is not"},
		{"permits too many", `{"pacers":["twilio"],"permits":100001}`, "permits", "100001 is not"},
		{"permits huge", `{"pacers":["twilio"],"permits":18446744073709551617}`, "permits",
			"18446744073709551617 is not"},
		{"permits missing value", `{"pacers":["twilio"],"permits":}`, "permits", "is not a number"},

		{"wait null", `{"pacers":["twilio"],"permits":1,"max_wait":null}`, "max_wait", "null is not a string"},
		{"wait number", `{"pacers":["twilio"],"permits":1,"max_wait":2}`, "max_wait",
			`2 is not a string: write a duration such as "2s"`},
		{"wait empty", `{"pacers":["twilio"],"permits":1,"max_wait":""}`, "max_wait", "0s to 24h"},
		{"wait without unit", `{"pacers":["twilio"],"permits":1,"max_wait":"2"}`, "max_wait",
			`such as 2s, got "2"`},
		{"wait negative", `{"pacers":["twilio"],"permits":1,"max_wait":"-1ms"}`, "max_wait",
			`must be a duration from 0s to 24h, such as 2s, got "-1ms"`},
		{"wait beyond a day", `{"pacers":["twilio"],"permits":1,"max_wait":"24h0m0.000001s"}`, "max_wait", "0s to 24h"},
		{"wait huge", `{"pacers":["twilio"],"permits":1,"max_wait":"99999999999999999999h"}`, "max_wait", "0s to 24h"},
		{"wait in words", `{"pacers":["twilio"],"permits":1,"max_wait":"two seconds"}`, "max_wait", "0s to 24h"},

		{"lease without a unit", `{"pacers":["twilio"],"permits":1,"request_id":"r","lease":"5"}`, "lease",
			`must be a duration from 1s to 1h, such as 2s, got "5"`},
		{"lease short", `{"pacers":["twilio"],"permits":1,"request_id":"r","lease":"999ms"}`, "lease", "from 1s to 1h"},
		{"lease long", `{"pacers":["twilio"],"permits":1,"request_id":"r","lease":"61m"}`, "lease", "from 1s to 1h"},
		{"lease number", `{"pacers":["twilio"],"permits":1,"request_id":"r","lease":5}`, "lease", "5 is not a string"},
		{"lease alone", `{"pacers":["twilio"],"permits":1,"lease":"5s"}`, "lease", "needs a request_id"},
		{"lease twice", `{"pacers":["twilio"],"permits":1,"lease":"5s","lease":"5s"}`, "lease", "twice"},

		{"request id empty", `{"pacers":["twilio"],"permits":1,"request_id":""}`, "request_id", "0 bytes and must have 1 to 128"},
		{"request id long", `{"pacers":["twilio"],"permits":1,"request_id":"` + long + `"}`, "request_id", "129 bytes"},
		{"request id null", `{"pacers":["twilio"],"permits":1,"request_id":null}`, "request_id",
			"null is not a string"},
		{"message id empty", `{"pacers":["twilio"],"permits":1,"message_id":""}`, "message_id", "0 bytes"},
		{"message id long", `{"pacers":["twilio"],"permits":1,"message_id":"` + long + `"}`, "message_id", "129 bytes"},
		{"message id missing", `{"pacers":["twilio","campaign"],"permits":1}`, "message_id",
			`the pacer "campaign" is per message`},
		{"key missing", `{"pacers":["twilio","sender"],"permits":1,"message_id":"m"}`, "key",
			`is required: the pacer "sender" is per key`},
		{"key empty", `{"pacers":["sender"],"permits":1,"key":""}`, "key", "has 0 bytes and must have 1 to 128"},
		{"key long", `{"pacers":["sender"],"permits":1,"key":"` + strings.Repeat("6", 129) + `"}`, "key",
			"has 129 bytes and must have 1 to 128"},
		{"key of another type", `{"pacers":["sender"],"permits":1,"key":65}`, "key", "65"},
		{"key twice", `{"pacers":["sender"],"permits":1,"key":"a","key":"b"}`, "key", "twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, s.with(t).post("/v1/permits", c.body), http.StatusBadRequest, "invalid_request", c)
		})
	}
}

func TestPermitsBodiesAreSmall(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	const start, end = `{"pacers":["twilio"],"permits":1`, `}`
	fitting := start + strings.Repeat(" ", 64<<10-len(start)-len(end)) + end
	require.Equal(t, http.StatusOK, s.post("/v1/permits", fitting).status)
	requireRefused(t, s.post("/v1/permits", fitting+" "), http.StatusRequestEntityTooLarge, "too_large",
		badBody{message: "65536 bytes"})
	bomb := s.request(http.MethodPost, "/v1/permits", gzipped(t, fitting+" "))
	bomb.Header.Set("Content-Encoding", "gzip")
	requireRefused(t, s.do(bomb), http.StatusRequestEntityTooLarge, "too_large", badBody{message: "65536 bytes"})
}

// failing is a store of pacers that can fail, or block calls until the test releases them.
type failing struct {
	pacing.Store
	err     error
	entered chan struct{}
	held    chan struct{}
}

func (f *failing) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if f.err != nil {
		return pacing.Grant{}, f.err
	}
	if f.held != nil {
		f.entered <- struct{}{}
		select {
		case <-f.held:
		case <-ctx.Done():
			return pacing.Grant{}, ctx.Err()
		}
	}
	return f.Store.TakePermits(ctx, ask)
}

func (f *failing) ForgetPacer(ctx context.Context, pacer, group string) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.ForgetPacer(ctx, pacer, group)
}

// newFailing returns a service whose pacers use the failing store.
func newFailing(t *testing.T, f *failing, change ...func(*server.Config)) *service {
	t.Helper()
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	f.Store, _ = capping.As[pacing.Store](store)
	return newServiceOver(t, store, clock,
		append([]func(*server.Config){func(cfg *server.Config) { cfg.Pacers = pacing.New(f, testPacers()) }},
			change...)...)
}

func TestWhatCouldNotBeDecidedIsNoGrant(t *testing.T) {
	t.Parallel()
	log := &journal{}
	f := &failing{err: errors.New("10.0.0.7: connection refused")}
	s := newFailing(t, f, func(cfg *server.Config) { cfg.Logger = slog.New(slog.NewJSONHandler(log, nil)) })
	calls := []reply{
		s.post("/v1/permits", `{"pacers":["twilio","carrier"],"permits":1,"request_id":"r"}`),
		s.post("/v1/permits", `{"pacers":["twilio"],"permits":0}`),
		s.get("/v1/pacers"), s.get("/v1/pacers/twilio"), s.call(http.MethodDelete, "/v1/pacers/twilio", ""),
	}
	for _, r := range calls {
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "1", r.header.Get("Retry-After"))
		require.Equal(t, "unavailable", r.failure(t).Error.Code)
		require.NotContains(t, string(r.body), "10.0.0.7", "the store's errors are for operators")
	}
	lines := log.lines(t, "call not answered")
	require.Len(t, lines, len(calls))
	require.Equal(t, calls[0].header.Get("X-Request-Id"), lines[0]["request_id"])
	require.Equal(t, "/v1/permits", lines[0]["route"])
	require.Equal(t, "/v1/pacers/{name}", lines[3]["route"])
	require.Equal(t, "failed", log.lines(t, "audit")[0]["result"])
	f.err = nil
	require.False(t, s.permits(`{"pacers":["twilio","carrier"],"permits":1,"request_id":"r"}`).Replayed)
	metrics := string(s.get("/metrics").body)
	require.Contains(t, metrics, `capper_permits_errors_total{pacer="twilio"} 2`)
	require.Contains(t, metrics, `capper_permits_errors_total{pacer="carrier"} 1`)
}

func TestPermitsWaitNoLongerThanTheCallTimeout(t *testing.T) {
	t.Parallel()
	f := &failing{entered: make(chan struct{}, 1), held: make(chan struct{})}
	s := newFailing(t, f, func(cfg *server.Config) { cfg.Bounds.CallTimeout = 50 * time.Millisecond })
	r := s.post("/v1/permits", `{"pacers":["twilio"],"permits":1}`)
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "the store could not answer in time: try again", r.failure(t).Error.Message)
}

// TestACallForPermitsGoesOnWhenItsCallerGoes checks that a caller who disconnects has taken its permits, and gets
// them by a repeated call.
func TestACallForPermitsGoesOnWhenItsCallerGoes(t *testing.T) {
	t.Parallel()
	f := &failing{entered: make(chan struct{}, 1), held: make(chan struct{})}
	s := newFailing(t, f)
	ctx, gone := context.WithCancel(t.Context())
	r := s.request(http.MethodPost, "/v1/permits", `{"pacers":["twilio"],"permits":5,"request_id":"r"}`).WithContext(
		ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		response, err := s.http.Client().Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
	})
	<-f.entered
	gone()
	ended.Wait()
	close(f.held)
	testkit.Eventually(t, func() bool {
		return strings.Contains(string(s.get("/metrics").body), `capper_permits_granted_total{pacer="twilio"} 5`)
	})
	go func() { <-f.entered }()
	require.True(t, s.permits(`{"pacers":["twilio"],"permits":5,"request_id":"r"}`).Replayed)
}

// TestPermitsAreBoundedAndCostOneUser checks that calls for permits use the shared budgets, and that each accepted
// one costs one user of the client's rate.
func TestPermitsAreBoundedAndCostOneUser(t *testing.T) {
	t.Parallel()
	f := &failing{entered: make(chan struct{}, 1), held: make(chan struct{})}
	s := newFailing(t, f, withKeys, func(cfg *server.Config) {
		cfg.Bounds = gate.Bounds{InFlightUsers: 100}
		cfg.Access = gate.Rules{Keys: testKeys(),
			Rates: map[string]capping.Rate{"engine": {UsersPerSecond: 1, Burst: 4}}}
	})
	engine := s.as("f1.secret-of-the-engine")
	first := make(chan *api.Permits)
	go func() { first <- engine.permits(`{"pacers":["twilio"],"permits":90}`) }()
	<-f.entered
	require.Contains(t, string(s.as("r1.secret-of-support").get("/v1/status").body), `"in_flight_users":90`)
	refused := engine.post("/v1/permits", `{"pacers":["twilio"],"permits":20}`)
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Equal(t, "overloaded", refused.failure(t).Error.Code)
	close(f.held)
	require.Equal(t, 90, (<-first).Granted)
	for range 3 {
		go func() { <-f.entered }()
		require.Equal(t, http.StatusOK,
			engine.post("/v1/permits", `{"pacers":["campaign"],"permits":20,"message_id":"m"}`).status)
	}
	require.Equal(t, http.StatusTooManyRequests, engine.post("/v1/permits", `{"pacers":["twilio"],"permits":1}`).status)
	require.Contains(t, string(s.as("r1.secret-of-support").get("/v1/status").body), `"in_flight_users":0`)
}

func TestPermitsAreCountedByPacer(t *testing.T) {
	t.Parallel()
	var pacers *pacing.Pacers
	s := newPaced(t, func(cfg *server.Config) { pacers = cfg.Pacers })
	requireMetrics := func(lines ...string) {
		t.Helper()
		metrics := string(s.get("/metrics").body)
		for _, line := range lines {
			require.Contains(t, metrics, "\n"+line+"\n")
		}
	}
	// The series exists from the start, so that the first increase is visible.
	for _, pacer := range []string{"twilio", "carrier", "campaign", "thirds"} {
		requireMetrics(
			`capper_permits_granted_total{pacer="`+pacer+`"} 0`, `capper_permits_due_total{pacer="`+pacer+`"} 0`,
			`capper_permits_refused_total{pacer="`+pacer+`"} 0`,
			`capper_permits_errors_total{pacer="`+pacer+`"} 0`,
			`capper_permits_wait_seconds_count{pacer="`+pacer+`"} 0`, `capper_pacer_queue_seconds{pacer="`+pacer+`"} 0`,
			`capper_pacer_used_ratio{pacer="`+pacer+`"} 0`,
		)
	}
	for range 2 {
		s.permits(`{"pacers":["carrier","twilio"],"permits":40,"max_wait":"100ms","request_id":"of-the-caller"}`)
	}
	s.permits(`{"pacers":["campaign"],"permits":150,"message_id":"promo-of-the-caller"}`)
	s.permits(`{"pacers":["campaign"],"permits":15,"message_id":"another-of-the-caller"}`)
	s.post("/v1/permits", `{"pacers":["pacer-of-the-caller"],"permits":1}`)
	s.permits(`{"pacers":["twilio"],"permits":0}`)
	requireMetrics(
		`capper_permits_granted_total{pacer="carrier"} 26`, `capper_permits_granted_total{pacer="twilio"} 26`,
		`capper_permits_granted_total{pacer="campaign"} 165`, `capper_permits_due_total{pacer="campaign"} 0`,
		`capper_permits_refused_total{pacer="carrier"} 14`, `capper_permits_refused_total{pacer="twilio"} 0`,
		`capper_permits_wait_seconds_count{pacer="carrier"} 1`, `capper_permits_wait_seconds_sum{pacer="carrier"} 0.1`,
		`capper_permits_wait_seconds_sum{pacer="campaign"} 0`,
		`capper_pacer_queue_seconds{pacer="carrier"} 0.1`, `capper_pacer_queue_seconds{pacer="twilio"} 0.1`,
		`capper_pacer_queue_seconds{pacer="campaign"} 0`,
		`capper_pacer_used_ratio{pacer="carrier"} 1`, `capper_pacer_used_ratio{pacer="twilio"} 0.26`,
		`capper_pacer_used_ratio{pacer="campaign"} 0.5`,
	)
	require.NotContains(t, string(s.get("/metrics").body), "of-the-caller")
	s.clock.Advance(60 * time.Millisecond)
	requireMetrics(`capper_pacer_queue_seconds{pacer="carrier"} 0.04`, `capper_pacer_used_ratio{pacer="carrier"} 1`)
	s.clock.Advance(time.Minute)
	requireMetrics(`capper_permits_due_total{pacer="carrier"} 26`, `capper_permits_due_total{pacer="campaign"} 165`)
	requireMetrics(`capper_pacer_queue_seconds{pacer="carrier"} 0`, `capper_pacer_used_ratio{pacer="carrier"} 0`,
		`capper_pacer_used_ratio{pacer="campaign"} 0`, `capper_pacer_used_ratio{pacer="twilio"} 0.104`)

	changed := testPacers()
	changed.Pacers[0].Name = "fcm"
	pacers.SetPolicy(changed)
	requireMetrics(`capper_pacer_allowed_per_second{pacer="fcm"} 100`, `capper_permits_granted_total{pacer="fcm"} 0`,
		`capper_permits_granted_total{pacer="carrier"} 26`)
	require.NotContains(t, string(s.get("/metrics").body), "twilio")
	s.permits(`{"pacers":["fcm"],"permits":1}`)
	requireMetrics(`capper_permits_granted_total{pacer="fcm"} 1`)
}

func TestAForgottenPacerStandsAtZero(t *testing.T) {
	t.Parallel()
	s := newPaced(t)
	metrics := func() string { return string(s.get("/metrics").body) }
	s.permits(`{"pacers":["carrier","twilio"],"permits":20,"max_wait":"100ms"}`)
	require.Contains(t, metrics(), `capper_pacer_used_ratio{pacer="twilio"} 0.2`)
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/pacers/twilio", "").status)
	for _, line := range []string{
		`capper_pacer_queue_seconds{pacer="twilio"} 0`, `capper_pacer_used_ratio{pacer="twilio"} 0`,
		`capper_permits_granted_total{pacer="twilio"} 20`, `capper_pacer_used_ratio{pacer="carrier"} 1`,
	} {
		require.Contains(t, metrics(), "\n"+line+"\n")
	}
	s.permits(`{"pacers":["twilio"],"permits":10}`)
	require.Contains(t, metrics(), `capper_pacer_used_ratio{pacer="twilio"} 0.1`)
}

// TestManySlotsComeWhole checks that irregular permits of two pacers give many slots, within the memory reserved for
// them.
func TestManySlotsComeWhole(t *testing.T) {
	t.Parallel()
	odd := &pacing.Policy{Pacers: []pacing.Pacer{
		{Name: "a", Limits: []pacing.Limit{{Max: 2, Window: 7001 * time.Microsecond},
			{Max: 97, Window: 400_009 * time.Microsecond}}, MaxWait: 24 * time.Hour},
		{Name: "b", Limits: []pacing.Limit{{Max: 3, Window: 11_003 * time.Microsecond}}, MaxWait: 24 * time.Hour},
	}}
	s := newPaced(t, func(cfg *server.Config) { cfg.Pacers.SetPolicy(odd) })
	got := s.permits(`{"pacers":["a","b"],"permits":100000,"max_wait":"24h"}`)
	require.Greater(t, len(got.Slots), 5_000)
	permits, before := 0, api.Millis(-1)
	for _, slot := range got.Slots {
		require.Greater(t, slot.WaitMS, before)
		permits, before = permits+slot.Permits, slot.WaitMS+slot.EveryMS*api.Millis(slot.Permits-1)
	}
	require.Equal(t, got.Granted, permits)
	require.Equal(t, 100_000, got.Granted+got.Refused)
}

// halfStore is a store that cannot reach the pacers of the group "sms".
type halfStore struct{ pacing.Store }

func (s halfStore) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if ask.Group() == "sms" {
		return pacing.Grant{}, errors.New("the node is down")
	}
	return s.Store.TakePermits(ctx, ask)
}

// TestPacersOfOtherGroupsAreListed checks that the list shows the other pacers if the store cannot read one group.
func TestPacersOfOtherGroupsAreListed(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	permits, ok := capping.As[pacing.Store](store)
	require.True(t, ok)
	limits := []pacing.Limit{{Max: 5, Window: time.Hour}}
	policy := &pacing.Policy{Version: "policy-1", Pacers: []pacing.Pacer{
		{Name: "down", Group: "sms", Limits: limits}, {Name: "up", Limits: limits}}}
	half := func(cfg *server.Config) { cfg.Pacers = pacing.New(halfStore{permits}, policy) }
	s := newServiceOver(t, store, clock, half)
	require.JSONEq(t, `{"pacers":[
		{"name":"down","group":"sms","unavailable":true,"queue_ms":0,"next_ms":0,"max_wait":"30s",
			"limits":[{"max":5,"window":"1h"}]},
		{"name":"up","queue_ms":0,"next_ms":0,"max_wait":"30s","used":0,"max":5,"window":"1h",
			"limits":[{"used":0,"max":5,"window":"1h"}]}],"config_version":"policy-1"}`,
		string(s.get("/v1/pacers").body))
	require.Equal(t, http.StatusServiceUnavailable, s.get("/v1/pacers/down").status)
	policy.Pacers = policy.Pacers[:1]
	s = newServiceOver(t, store, clock, half)
	require.Equal(t, http.StatusServiceUnavailable, s.get("/v1/pacers").status, "no pacer could be read")
}
