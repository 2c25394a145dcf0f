package server_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/server/gate"
)

// TestPermitsCostTheRate checks that a call for any number of permits costs one user of the client's rate.
func TestPermitsCostTheRate(t *testing.T) {
	t.Parallel()
	s := newPaced(t, withRate(1, 3))
	s.key = "f1.secret-of-the-engine"
	bulk := fields{"pacers": []string{"twilio"}, "permits": 100_000, "max_wait": "1h"}
	for left := range 3 {
		r := s.post("/v1/permits", bulk)
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		require.Equal(t, fmt.Sprint(2-left), r.header.Get("RateLimit-Remaining"))
	}
	refused := s.post("/v1/permits", bulk)
	requireRefused(t, refused, http.StatusTooManyRequests, "rate_limited",
		badBody{message: "users exceed the rate"})
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.Equal(t, http.StatusTooManyRequests, s.post("/v1/filter", `{"message_id":"m","user_ids":[1]}`).status,
		"one rate for all calls")
	s.clock.Advance(time.Second)
	require.Equal(t, http.StatusBadRequest, s.post("/v1/permits", `{"pacers":["nobody"],"permits":1}`).status)
	require.Equal(t, http.StatusOK, s.post("/v1/permits", bulk).status, "a call that is refused costs nothing")
	s.key = "x1.all"
	require.Equal(t, http.StatusOK, s.post("/v1/permits", bulk).status, "other clients have their own")
}

// TestCountsCostTheRate checks that a count costs a part of the rate, and that a total costs less than a count by
// sets.
func TestCountsCostTheRate(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t, func(cfg *server.Config) {
		cfg.Access = gate.Rules{Keys: testKeys(),
			Rates: map[string]capping.Rate{"support": {UsersPerSecond: 5, Burst: 100}}}
	})
	s.key = "r1.secret-of-support"
	left := 100
	for body, price := range map[string]int{ // of about 2,100 users
		`{"audience": "active"}`:                                                   3,
		`{"audience": "active", "detail": "sets"}`:                                 3,
		`{"audience": "active", "detail": "total"}`:                                1,
		`{"audience": "all", "sample": {"percent": 50, "salt": "a"}}`:              11,
		`{"audience": "vip", "detail": "total", "channel": "email"}`:               1 + 9,
		`{"audience": "nosuch"}`:                                                   0,
		`{"audience": ""}`:                                                         0,
		`{"audience": "active", "detail": "some"}`:                                 0,
		`{"audience": "active", "detail": "total", "part": {"of": 1, "index": 0}}`: 1,
	} {
		r := s.post("/v1/audience/count", body)
		if price > 0 {
			left -= price
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			require.Equal(t, fmt.Sprint(left), r.header.Get("RateLimit-Remaining"), body)
		}
	}
	total := decodeAs[api.AudienceCount](t, s.post("/v1/audience/count", `{"audience": "vip", "detail": "total"}`).body)
	require.Equal(t, &api.AudienceCount{Generation: total.Generation, Users: 9, Segments: map[string]uint64{},
		Sets: map[string]uint64{}}, total)
	requireRefused(t, s.post("/v1/audience/count", `{"audience": "active", "detail": "some"}`), http.StatusBadRequest,
		"invalid_request",
		badBody{field: "detail", message: `"some" must be "sets" or "total"`})
	require.Equal(t, 1, s.post("/v1/audience/count", `{"audience": ""}`).failure(t).Error.Column)
	large := s.post("/v1/audience/count", `{"audience": "`+strings.Repeat(" ", 70_000)+`active"}`)
	requireRefused(t, large, http.StatusRequestEntityTooLarge, "too_large", badBody{message: "65536 bytes"})
	require.NotContains(t, large.failure(t).Error.Message, "split the batch")
}

// TestACountIsAlwaysPossible checks that a client whose burst is below the price can still count.
func TestACountIsAlwaysPossible(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t, func(cfg *server.Config) {
		cfg.Access = gate.Rules{Keys: testKeys(), Rates: map[string]capping.Rate{"support": {UsersPerSecond: 1}}}
	})
	s.key = "r1.secret-of-support"
	require.Equal(t, http.StatusOK, s.post("/v1/audience/count", `{"audience": "active"}`).status)
	require.Equal(t, http.StatusTooManyRequests, s.post("/v1/audience/count", `{"audience": "active"}`).status)
}

func inNamespace(k gate.Key, namespace string) gate.Key {
	k.Namespace = namespace
	return k
}

// TestAdminWithANamespaceIsRefused checks that a key with a namespace cannot have the scope admin, which covers all
// namespaces.
func TestAdminWithANamespaceIsRefused(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]gate.Scope{{gate.ScopeAdmin}, {gate.ScopeFilter, gate.ScopeAdmin}} {
		_, err := gate.New(gate.Rules{Keys: []gate.Key{inNamespace(key("b1.x", "beta", scopes...), "beta")}})
		require.ErrorContains(t, err, `namespace: must be absent for a key with the scope admin`)
		require.ErrorContains(t, err, `got "beta"`)
	}
	_, err := gate.New(gate.Rules{Keys: []gate.Key{inNamespace(key("b1.x", "beta", gate.ScopeFilter,
		gate.ScopeRead), "beta"), key("a1.x", "ops", gate.ScopeAdmin)}})
	require.NoError(t, err)
}

// TestImportsIntoANamespace checks that only an admin without a namespace may import into any namespace.
func TestImportsIntoANamespace(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *server.Config) {
		cfg.Access = gate.Rules{Keys: []gate.Key{key("a1.x", "ops", gate.ScopeAdmin, gate.ScopeRead),
			inNamespace(key("b1.x", "beta", gate.ScopeFilter), "beta")}}
	})
	s.key = "a1.x"
	body := fields{"sends": []fields{{"user_id": 700, "at": startOfTest.Add(-time.Hour), "message_id": "m",
		"channel": "push"}}}
	require.Equal(t, http.StatusOK, s.post("/v1/sends?namespace=beta", body).status)
	sends := decodeAs[api.Explanation](t, s.get("/v1/users/700").body).Sends
	require.Equal(t, []string{"beta", "m"}, []string{*sends[0].Namespace, *sends[0].MessageID})
	requireRefused(t, s.post("/v1/sends?namespace=a%20b", body), http.StatusBadRequest, "invalid_request",
		badBody{field: "namespace"})
	s.key = "b1.x"
	require.Equal(t, []uint32{700}, s.filter(`{"message_id":"m","channel":"push","user_ids":[700]}`).Replayed,
		"it is beta's own send")
}

// held is an audit with the given records.
type held struct{ list []*audit.Record }

func (h held) Records(context.Context, archive.Query) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		for _, one := range h.list {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// TestDecisionsHideWhoAskedElsewhere checks that a key with a namespace does not see clients and keys of other
// namespaces.
func TestDecisionsHideWhoAskedElsewhere(t *testing.T) {
	t.Parallel()
	var records held
	for _, namespace := range []string{"alpha", "beta", ""} {
		records.list = append(records.list, &audit.Record{
			Kind: audit.Filter, At: capping.InstantOf(startOfTest.Add(-time.Hour)),
			Message: capping.Message{Namespace: namespace, ID: "m"}, Channel: push,
			Client: "eng-" + namespace, Key: "key-" + namespace, Generation: "g", Config: "c",
			Groups: []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(500)}},
		})
	}
	s := newService(t, func(cfg *server.Config) {
		cfg.Records = records
		cfg.Access = gate.Rules{Keys: []gate.Key{
			inNamespace(key("a1.x", "a-eng", gate.ScopeRead), "alpha"),
			inNamespace(key("b1.x", "b-eng", gate.ScopeRead), "beta"), key("o1.x", "ops", gate.ScopeRead),
		}}
	})
	for id, want := range map[string][]string{
		"a1.x": {"alpha eng-alpha/key-alpha", "beta /", " /"}, "b1.x": {"alpha /", "beta eng-beta/key-beta", " /"},
		"o1.x": {"alpha eng-alpha/key-alpha", "beta eng-beta/key-beta", " eng-/key-"},
	} {
		s.key = id
		var got []string
		for _, d := range decodeAs[api.Decisions](t, s.get("/v1/users/500/decisions?since=2h").body).Decisions {
			got = append(got, d.Namespace+" "+d.Client+"/"+d.Key)
		}
		require.Equal(t, want, got, id)
	}
}
