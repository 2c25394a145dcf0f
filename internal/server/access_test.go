package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// key returns the configured form of the key text.
func key(text, client string, scopes ...gate.Scope) gate.Key {
	sum := sha256.Sum256([]byte(text))
	id, _, _ := strings.Cut(text, ".")
	return gate.Key{ID: id, Client: client, SHA256: hex.EncodeToString(sum[:]), Scopes: scopes}
}

func testKeys() []gate.Key {
	return []gate.Key{
		key("f1.secret-of-the-engine", "engine", gate.ScopeFilter),
		key("f2.next-secret-of-the-engine", "engine", gate.ScopeFilter),
		key("r1.secret-of-support", "support", gate.ScopeRead),
		key("a1.secret-of-the-admin", "admin", gate.ScopeAdmin),
		key("x1.all", "root", gate.ScopeFilter, gate.ScopeRead, gate.ScopeAdmin),
	}
}

func withKeys(cfg *server.Config) { cfg.Access = gate.Rules{Keys: testKeys()} }

// anyScope stands for the scopes of a call that every key may make.
const anyScope gate.Scope = "any"

func TestEveryCallNeedsItsScope(t *testing.T) {
	t.Parallel()
	s := newPaced(t, withKeys)
	calls := []struct {
		method, path, body string
		scope              gate.Scope
	}{
		{http.MethodPost, "/v1/permits", `{"pacers":["twilio"],"permits":1}`, gate.ScopeFilter},
		{http.MethodPost, "/v1/permits/return", `{"pacers":["twilio"],"permits":1,"request_id":"r"}`, gate.ScopeFilter},
		{http.MethodGet, "/v1/pacers", "", gate.ScopeRead},
		{http.MethodGet, "/v1/pacers/twilio", "", gate.ScopeRead},
		{http.MethodDelete, "/v1/pacers/twilio", "", gate.ScopeAdmin},
		{http.MethodPost, "/v1/filter", `{"message_id":"m","user_ids":[1]}`, gate.ScopeFilter},
		{http.MethodPost, "/v1/release", `{"message_id":"m","user_ids":[1]}`, gate.ScopeFilter},
		{http.MethodGet, "/v1/users/1", "", gate.ScopeRead},
		{http.MethodGet, "/v1/ids", "", anyScope},
		{http.MethodGet, "/v1/limits", "", gate.ScopeRead},
		{http.MethodGet, "/v1/status", "", gate.ScopeRead},
		{http.MethodGet, "/metrics", "", gate.ScopeRead},
		{http.MethodDelete, "/v1/users/1", "", gate.ScopeAdmin},
		{http.MethodGet, "/healthz", "", ""},
		{http.MethodGet, "/readyz", "", ""},
		{http.MethodGet, "/openapi.yaml", "", ""},
	}
	scopeOf := map[string]gate.Scope{
		"f1.secret-of-the-engine": gate.ScopeFilter, "f2.next-secret-of-the-engine": gate.ScopeFilter,
		"r1.secret-of-support": gate.ScopeRead, "a1.secret-of-the-admin": gate.ScopeAdmin,
	}
	for _, c := range calls {
		t.Run(c.method+c.path, func(t *testing.T) {
			s := s.with(t)
			for text, scope := range scopeOf {
				s.key = text
				r := s.call(c.method, c.path, c.body)
				if scope == c.scope || c.scope == anyScope || c.scope == "" {
					require.Equal(t, 2, r.status/100, "%s: %s", text, r.body)
					continue
				}
				require.Equal(t, http.StatusForbidden, r.status)
				require.Equal(t, "forbidden", r.failure(t).Error.Code)
				require.Contains(t, r.failure(t).Error.Message, string(c.scope))
			}
			s.key = "x1.all"
			require.Equal(t, 2, s.call(c.method, c.path, c.body).status/100)
			s.key = ""
			if c.scope != "" {
				require.Equal(t, http.StatusUnauthorized, s.call(c.method, c.path, c.body).status)
			}
		})
	}
}

// TestEnforceFalseNeedsTheScopeExempt checks that a call with enforce false needs the scope exempt for every form of
// users. Without the scope nothing is recorded.
func TestEnforceFalseNeedsTheScopeExempt(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *server.Config) {
		cfg.Access = gate.Rules{Keys: append(testKeys(),
			key("t1.orders", "orders", gate.ScopeFilter, gate.ScopeExempt))}
	})
	audience := []fields{{"user_ids": []uint32{7, 300}}, {"users_bitmap": bitmapText(t, 7, 300)}, {"audience": "all"}}
	for i, users := range audience {
		body := fields{"message_id": fmt.Sprint("order-", i), "enforce": false}
		maps.Copy(body, users)
		for _, text := range []string{"f1.secret-of-the-engine", "x1.all"} {
			s.key = text
			refused := s.post("/v1/filter", body)
			require.Equal(t, http.StatusForbidden, refused.status, "%s", refused.body)
			failed := refused.failure(t).Error
			require.Equal(t, "enforce", failed.Field)
			id, _, _ := strings.Cut(text, ".")
			require.Contains(t, failed.Message,
				fmt.Sprintf(`requires the scope "exempt", which the API key %q lacks`, id))
			require.Contains(t, failed.Message, "server.api_keys")
		}
		if users["audience"] != nil { // this service has no generation for audiences
			continue
		}
		s.key = "t1.orders"
		require.Equal(t, http.StatusOK, s.post("/v1/filter", body).status)
		body["enforce"] = true
		s.key = "f1.secret-of-the-engine"
		require.Equal(t, http.StatusOK, s.post("/v1/filter", body).status, "the default needs no such right")
	}
	s.key = "r1.secret-of-support"
	shown := string(s.get("/metrics").body)
	require.Contains(t, shown, `capper_client_exempt_calls_total{client="engine",result="refused"} 3`)
	require.Contains(t, shown, `capper_client_exempt_calls_total{client="orders",result="accepted"} 2`)
	require.Contains(t, shown, `capper_client_exempt_calls_total{client="orders",result="refused"} 0`)
	require.NotContains(t, shown, `capper_client_exempt_calls_total{client="support"`)
}

func TestWrongKeysAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys)
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Bearer r1", "Bearer r1.", "Bearer r1.wrong", "Bearer .secret-of-support",
		"Bearer zz.secret-of-support", "Bearer f1.secret-of-support", "Basic cjE6c2VjcmV0", "r1.secret-of-support",
		"Bearer " + testKeys()[2].SHA256, "Bearer r1." + testKeys()[2].SHA256,
	} {
		r := s.request(http.MethodGet, "/v1/limits", "")
		r.Header["Authorization"] = []string{header}
		answer := s.do(r)
		require.Equal(t, http.StatusUnauthorized, answer.status, "%q", header)
		require.Equal(t, "unauthorized", answer.failure(t).Error.Code)
		require.Contains(t, answer.header.Get("WWW-Authenticate"), "Bearer")
		require.NotContains(t, string(answer.body), "secret-of")
	}
	r := s.request(http.MethodGet, "/v1/limits", "")
	r.Header.Set("Authorization", "bearer r1.secret-of-support")
	require.Equal(t, http.StatusOK, s.do(r).status, "the scheme has no case")
	oversized := s.request(http.MethodPost, "/v1/filter", strings.Repeat(" ", 1<<20))
	require.Equal(t, http.StatusUnauthorized, s.do(oversized).status, "the key is asked for before the body is read")
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys)
	s.key = "f2.next-secret-of-the-engine"
	const body = `{"message_id":"m","user_ids":[1]}`
	require.Equal(t, http.StatusOK, s.post("/v1/filter", body).status, "two keys of a client live at once")
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: testKeys()[:1]}))
	require.Equal(t, http.StatusUnauthorized, s.post("/v1/filter", body).status)

	bad := gate.Rules{Keys: []gate.Key{
		key("k1.a", "c", gate.ScopeRead), key("k1.b", "c", gate.ScopeRead), key("k2.c", "c", gate.ScopeRead),
		key("k3.c", "d"), key("k4.c", "d", "root"), key("k5.c", "", gate.ScopeRead),
		{ID: "k6", Client: "e", SHA256: "00ff", Scopes: []gate.Scope{gate.ScopeRead}},
		key("k7.c", "c", gate.ScopeRead), key("k8.c", "f", gate.ScopeRead, gate.ScopeExempt),
	}, Rate: capping.Rate{Burst: 5}, Rates: map[string]capping.Rate{"c": {UsersPerSecond: -1}}}
	err := s.server.SetAccess(bad)
	for _, fault := range []string{
		`api key 1 (id "k1"): must be unique: "k1" is given twice`,
		`api key 3 (id "k3"): scopes: must name a scope of filter, read, admin, lists, exempt`,
		`api key 4 (id "k4"): scopes[0]: must be one of filter, read, admin, lists, exempt, got "root"`,
		`api key 8 (id "k8"): scopes: must include filter together with exempt`, `api key 5 (id "k5"): client: is required`,
		`api key 6 (id "k6"): sha256: must be the 64 hex digits of a SHA-256`,
		`api key 2 (id "k2"): must be at most two keys of one client, for rotation; "c" has more`,
		`default rate: a rate limit with 0 users per second must also have a burst of 0`, `rate of client "c"`,
	} {
		require.ErrorContains(t, err, fault)
	}
	require.Equal(t, http.StatusUnauthorized, s.post("/v1/filter", body).status)
	s.key = "f1.secret-of-the-engine"
	require.Equal(t, http.StatusOK, s.post("/v1/filter", body).status, "a faulty set of keys is refused whole")
}

func withRate(perSecond, burst int) func(*server.Config) {
	return func(cfg *server.Config) {
		cfg.Access = gate.Rules{
			Keys:  testKeys(),
			Rates: map[string]capping.Rate{"engine": {UsersPerSecond: perSecond, Burst: burst}},
		}
	}
}

func TestRateLimitIsPerClient(t *testing.T) {
	t.Parallel()
	s := newService(t, withRate(100, 1000))
	s.key = "f1.secret-of-the-engine"
	ask := func(users uint32) reply {
		return s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, users)})
	}
	budget := func(r reply) []string {
		h := r.header
		require.Equal(t, h.Get("RateLimit-Limit"), h.Get("X-RateLimit-Limit"))
		require.Equal(t, h.Get("RateLimit-Remaining"), h.Get("X-RateLimit-Remaining"))
		require.Equal(t, h.Get("RateLimit-Reset"), h.Get("X-RateLimit-Reset"))
		return []string{h.Get("RateLimit-Limit"), h.Get("RateLimit-Remaining"), h.Get("RateLimit-Reset")}
	}
	first := ask(700)
	require.Equal(t, http.StatusOK, first.status)
	require.Equal(t, []string{"1000", "300", "7"}, budget(first))
	refused := ask(301)
	require.Equal(t, http.StatusTooManyRequests, refused.status)
	require.Equal(t, "rate_limited", refused.failure(t).Error.Code)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.Equal(t, []string{"1000", "300", "7"}, budget(refused), "a refusal costs nothing")
	require.Equal(t, http.StatusOK, ask(300).status)
	wait := ask(250)
	require.Equal(t, "3", wait.header.Get("Retry-After"), "2.5 s, rounded up")
	s.clock.Advance(2500*time.Millisecond - time.Nanosecond)
	require.Equal(t, http.StatusTooManyRequests, ask(250).status)
	s.clock.Advance(time.Nanosecond)
	require.Equal(t, http.StatusOK, ask(250).status)

	s.key = "f2.next-secret-of-the-engine"
	require.Equal(t, http.StatusTooManyRequests, ask(1).status, "both keys of a client share its budget")
	require.Equal(t, http.StatusTooManyRequests, s.post("/v1/release", `{"message_id":"m","user_ids":[1]}`).status)
	s.key = "x1.all"
	other := ask(1000)
	require.Equal(t, http.StatusOK, other.status, "other clients have their own")
	require.Empty(t, other.header.Get("RateLimit-Limit"))
	s.key = "f1.secret-of-the-engine"
	large := ask(1001)
	require.Equal(t, http.StatusRequestEntityTooLarge, large.status, "more than the burst would never pass")
	require.Equal(t, "user_ids", large.failure(t).Error.Field)
	require.Contains(t, large.failure(t).Error.Message, "split the batch into parts of at most 1000 users")
}

// TestRateLimitUnderConcurrency checks that concurrent calls together get exactly the burst.
func TestRateLimitUnderConcurrency(t *testing.T) {
	t.Parallel()
	s := newService(t, withRate(10, 50))
	s.key = "f1.secret-of-the-engine"
	var mu sync.Mutex
	statuses := map[int]int{}
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			r := s.post("/v1/filter", fields{"message_id": fmt.Sprint(i), "user_ids": span(0, 3)})
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
		})
	}
	calls.Wait()
	require.Equal(t, map[int]int{http.StatusOK: 16, http.StatusTooManyRequests: 24}, statuses)
}

// brokenLimiter behaves like a limiter on an unreachable Redis.
type brokenLimiter struct {
	asked atomic.Int64
	well  atomic.Bool
}

func (l *brokenLimiter) Take(ctx context.Context, _ string, _ capping.Rate, _ int) (capping.RateState, error) {
	l.asked.Add(1)
	if l.well.Load() {
		return capping.RateState{Allowed: true}, nil
	}
	<-ctx.Done()
	return capping.RateState{}, ctx.Err()
}

func TestABrokenLimiterIsReplacedForAWhile(t *testing.T) {
	t.Parallel()
	broken := &brokenLimiter{}
	s := newService(t, withRate(10, 50), func(cfg *server.Config) { cfg.Limiter = broken })
	s.key = "f1.secret-of-the-engine"
	require.Equal(t, http.StatusOK, s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 50)}).status)
	for range 20 {
		require.Equal(t, http.StatusTooManyRequests,
			s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 1)}).status)
	}
	require.EqualValues(t, 1, broken.asked.Load(), "calls do not wait for it one by one")
	s.key = "r1.secret-of-support"
	require.Regexp(t, `"state":"degraded","error":"rate limits of clients are checked by each instance alone.*deadline exceeded"`, string(s.get("/v1/status").body))
	require.Contains(t, string(s.get("/metrics").body), "\ncapper_rate_fallbacks_total 21\n")
	s.key = "f1.secret-of-the-engine"
	s.clock.Advance(time.Second)
	require.Equal(t, http.StatusOK, s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 10)}).status)
	require.EqualValues(t, 2, broken.asked.Load())
	broken.well.Store(true)
	s.clock.Advance(time.Second)
	require.Equal(t, http.StatusOK, s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 10)}).status)
	s.key = "r1.secret-of-support"
	require.Contains(t, string(s.get("/v1/status").body), `"state":"ok"`)
}

// heldStore is a store whose filter calls wait until the test releases them.
type heldStore struct {
	capping.Store
	entered chan int
	held    chan struct{}
	caller  atomic.Pointer[capping.Caller] // of the latest call
}

func (h *heldStore) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	caller := capping.CallerOf(ctx)
	h.caller.Store(&caller)
	h.entered <- len(b.Users)
	select {
	case <-h.held:
		return h.Store.Filter(ctx, b, verdicts)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newHeldService(t *testing.T, bounds gate.Bounds) (*service, *heldStore) {
	t.Helper()
	clock := testkit.NewClockAt(startOfTest)
	held := &heldStore{Store: openStore(t, clock.Now), entered: make(chan int, 100), held: make(chan struct{})}
	return newServiceOver(t, held, clock, func(cfg *server.Config) { cfg.Bounds = bounds }), held
}

func TestUsersInFlightAreBounded(t *testing.T) {
	t.Parallel()
	s, held := newHeldService(t, gate.Bounds{InFlightUsers: 100})
	first := make(chan reply, 1)
	go func() { first <- s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 90)}) }()
	require.Equal(t, 90, <-held.entered)
	require.Contains(t, string(s.get("/v1/status").body), `"in_flight_users":90`)
	refused := s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 11)})
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Equal(t, "overloaded", refused.failure(t).Error.Code)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	close(held.held)
	require.Equal(t, http.StatusOK, (<-first).status)
	require.Equal(t, http.StatusOK, s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 200)}).status,
		"a batch beyond the bound passes alone")
	require.Contains(t, string(s.get("/v1/status").body), `"in_flight_users":0`)
}

// TestBytesInFlightAreBounded checks that a body counts only while it is read and decoded.
func TestBytesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	s, held := newHeldService(t, gate.Bounds{InFlightBytes: 24 << 10, BodyBytes: 64 << 10})
	answers := make(chan reply, 2)
	for range 2 {
		go func() { answers <- s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(1000, 1300)}) }()
		<-held.entered
	}
	refused := s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(1000, 7000)})
	require.Equal(t, http.StatusServiceUnavailable, refused.status, "announced: refused by the header")
	require.Equal(t, "overloaded", refused.failure(t).Error.Code)
	chunked := s.request(http.MethodPost, "/v1/filter", `{"message_id":"m","user_ids":[1]`+strings.Repeat(" ", 30<<10)+
		"}")
	chunked.ContentLength = -1
	require.Equal(t, http.StatusServiceUnavailable, s.do(chunked).status, "not announced: refused as it comes")
	close(held.held)
	require.Equal(t, http.StatusOK, (<-answers).status)
	require.Equal(t, http.StatusOK, (<-answers).status)
	require.Equal(t, http.StatusOK,
		s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(1000, 1150)}).status)
}

// TestUndecidedUsersAreUnavailable checks that users whom the store does not decide in time are unavailable, with
// status 200. The caller's rule is then the same for one user and for all.
func TestUndecidedUsersAreUnavailable(t *testing.T) {
	t.Parallel()
	s, held := newHeldService(t, gate.Bounds{CallTimeout: time.Second})
	answer := s.filter(`{"message_id": "m", "user_ids": [9, 7, 300]}`)
	require.Equal(t, []uint32{9, 7, 300}, answer.Unavailable)
	require.Empty(t, answer.Allowed)
	require.Empty(t, answer.Denied)
	require.Equal(t, 3, answer.Summary.Unavailable)
	require.Equal(t, map[string]segmentCounts{"new": {2, 0}, "blocked": {1, 0}}, answer.Summary.Segments)
	close(held.held)
	decided := func(body any) (answer *filtered) { // within its time limit, which a busy machine may miss
		testkit.Eventually(t, func() bool { answer = s.filter(body); return answer.Summary.Unavailable == 0 })
		return answer
	}
	require.Equal(t, []uint32{9, 7}, decided(`{"message_id": "m", "user_ids": [9, 7, 300]}`).Allowed)
	bitmaps := decided(fields{"message_id": "m", "users_bitmap": bitmapText(t, 7, 9)})
	require.Equal(t, []uint32{7, 9}, bitmapOf(t, bitmaps.ReplayedBitmap))
}

// TestACallThatHasNotBegunEndsWithItsCaller checks that the store begins no call whose caller has disconnected: such a
// caller may have repeated the call, and a late attempt must not undo what came after the answer.
func TestACallThatHasNotBegunEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	s, held := newHeldService(t, gate.Bounds{})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	request := s.request(http.MethodPost, "/v1/filter", `{"message_id": "m", "user_ids": [7]}`).WithContext(ctx)
	go func() {
		_, err := s.http.Client().Do(request)
		gone <- err
	}()
	<-held.entered
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	<-held.caller.Load().Gone
	close(held.held)
	require.Equal(t, []uint32{7}, s.filter(`{"message_id": "m", "user_ids": [7]}`).Allowed)
}

// TestACallWhoseCallerLeftDuringAPauseIsNotBegun checks that a service that was paused begins no call that it finds
// together with the end of its connection.
func TestACallWhoseCallerLeftDuringAPauseIsNotBegun(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.filter(`{"message_id": "sent", "channel": "push", "user_ids": [7]}`)
	l, err := s.server.Listen("127.0.0.1:0")
	require.NoError(t, err)
	const calls = 50
	for i := range calls {
		body := fmt.Sprintf(`{"message_id": "m%d", "user_ids": [%d]}`, i, i)
		path := "/v1/filter"
		if i%2 == 1 {
			path, body = "/v1/release", `{"message_id": "sent", "channel": "push", "user_ids": [7]}`
		}
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", path, len(body), body)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	s.serve(l, nil) // the process goes on after its pause
	testkit.Eventually(t, func() bool {
		metrics := string(s.get("/metrics").body)
		return strings.Contains(metrics, `capper_http_request_seconds_count{route="/v1/filter"} 26`) &&
			strings.Contains(metrics, `capper_http_request_seconds_count{route="/v1/release"} 25`)
	})
	for i := 0; i < calls; i += 2 {
		answer := s.filter(fields{"message_id": fmt.Sprint("m", i), "user_ids": []int{i}})
		require.Equal(t, []uint32{uint32(i)}, answer.Allowed)
	}
	require.Equal(t, []uint32{7}, s.filter(`{"message_id": "sent", "channel": "push", "user_ids": [7]}`).Replayed)
}

func TestAdminHasItsOwnListener(t *testing.T) {
	t.Parallel()
	s := newPaced(t, withKeys, func(cfg *server.Config) { cfg.AdminSeparate = true })
	s.key = "x1.all"
	require.Equal(t, http.StatusNotFound, s.get("/metrics").status)
	require.Equal(t, http.StatusMethodNotAllowed, s.call(http.MethodDelete, "/v1/users/1", "").status)
	require.Equal(t, http.StatusMethodNotAllowed, s.call(http.MethodDelete, "/v1/pacers/twilio", "").status)
	require.Equal(t, http.StatusNotFound, s.get("/debug/pprof/").status)
	require.Equal(t, http.StatusOK, s.get("/v1/users/1").status)
	require.Equal(t, http.StatusOK, s.get("/v1/pacers/twilio").status)

	admin := *s
	admin.http = httptest.NewServer(s.server.Admin())
	t.Cleanup(admin.http.Close)
	require.Equal(t, http.StatusNoContent, admin.call(http.MethodDelete, "/v1/users/1", "").status)
	require.Equal(t, http.StatusNoContent, admin.call(http.MethodDelete, "/v1/pacers/twilio", "").status)
	require.Equal(t, http.StatusOK, admin.get("/v1/pacers").status)
	require.Equal(t, http.StatusNotFound, admin.post("/v1/permits", `{"pacers":["twilio"],"permits":1}`).status)
	require.Equal(t, http.StatusOK, admin.get("/healthz").status)
	require.Equal(t, http.StatusNotFound, admin.post("/v1/filter", `{"message_id":"m","user_ids":[1]}`).status)
	admin.key = ""
	require.Equal(t, http.StatusOK, admin.get("/metrics").status, "open on loopback")
	for _, profile := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline"} {
		response, err := admin.http.Client().Get(admin.http.URL + profile)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	require.Equal(t, http.StatusUnauthorized, admin.call(http.MethodDelete, "/v1/users/1", "").status)

	// Through an address other than loopback, every call needs a key.
	recorder := httptest.NewRecorder()
	s.server.Admin().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil))
	require.Equal(t, http.StatusUnauthorized, recorder.Code)
}
