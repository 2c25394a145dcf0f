package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/server"
	"capper/internal/server/gate"
)

// putTitle sends PUT /v1/messages/{id} with the body.
func (s *service) putTitle(path, body string) reply {
	s.t.Helper()
	r := s.request(http.MethodPut, path, body)
	r.Header.Set("Content-Type", "application/json")
	return s.do(r)
}

func (s *service) setTitle(id, body string) *api.MessageTitle {
	s.t.Helper()
	r := s.putTitle(messagePath(id), body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.MessageTitle](s.t, r.body)
}

func TestTitles(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		require.Equal(t, &api.MessageTitle{MessageID: "a/b", Title: "Early 🎉"},
			s.setTitle("a/b", `{"title": " Early 🎉 "}`))
		early := s.message("a/b")
		require.Equal(t, "Early 🎉", early.Title)
		require.Empty(t, early.Channels)
		require.Empty(t, s.messages("").Messages, "it has no calls")

		s.filter(fields{"message_id": "a/b", "channel": "push", "user_ids": span(0, 3)})
		s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(1000, 1200)})
		require.Equal(t, "Early 🎉", s.message("a/b").Channels[0].Title)
		require.Equal(t, int64(3), s.message("a/b").Channels[0].Allowed)
		s.setTitle("promo", `{"title": "Black Friday"}`)
		s.setTitle("promo", `{"title": "Black Friday"}`)
		list := s.messages("").Messages
		require.Len(t, list, 2)
		require.Equal(t, map[string]string{"a/b": "Early 🎉", "promo": "Black Friday"},
			map[string]string{list[0].MessageID: list[0].Title, list[1].MessageID: list[1].Title})
		for query, found := range map[string][]string{
			"?id=friday": {"promo"}, "?id=PROMO": {"promo"}, "?id=%F0%9F%8E%89": {"a/b"}, "?id=monday": nil,
			"?id=r&sort=asked": {"promo", "a/b"}, "?id=r&min_asked=100": {"promo"}, "?id=friday&channel=email": nil,
		} {
			require.Equal(t, found, names(s.messages(query)), query)
		}
		s.setTitle("promo", `{"title": ""}`)
		require.Empty(t, s.message("promo").Title)
		require.Empty(t, s.messages("?id=friday").Messages)
		require.NotContains(t, string(s.get("/v1/messages/promo").body), "title")
		s.setTitle("nobody", `{"title": ""}`)
		require.Equal(t, http.StatusNotFound, s.get("/v1/messages/nobody").status)
	}, counted(t))
}

func TestTitlesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, counted(t))
	for body, field := range map[string]string{
		`{}`: "title", `{"title": null}`: "title", `{"title": 1}`: "title", `{"title": "a", "title": "b"}`: "title",
		`{"title": "a", "channel": "push"}`: "channel", `{"title": "a\nb"}`: "title", `{"title": "a\u0000"}`: "title",
		`{"title": "\u202efdp.exe"}`: "title", `{"title": "a\u2028b"}`: "title", `{"title": "\u0085x"}`: "title",
		`{"title": "` + strings.Repeat("é", 201) + `"}`: "title",
	} {
		r := s.putTitle("/v1/messages/promo", body)
		require.Equal(t, http.StatusBadRequest, r.status, body)
		require.Equal(t, field, r.failure(t).Error.Field, body)
	}
	require.Equal(t, http.StatusBadRequest, s.putTitle("/v1/messages/promo", `x`).status)
	require.Equal(t, http.StatusBadRequest, s.putTitle("/v1/messages/promo?namespace=all%20messages",
		`{"title": "a"}`).status, "no key has this namespace")
	require.Equal(t, http.StatusBadRequest, s.putTitle("/v1/messages/"+strings.Repeat("x", 129),
		`{"title": "a"}`).status)
	require.Equal(t, http.StatusNotFound, s.get("/v1/messages/promo").status)
	s.setTitle("promo", `{"title": "`+strings.Repeat("é", 200)+`"}`)

	for n := 0; ; n++ { // a burst of titles for messages without calls, then two more a second
		require.Less(t, n, 1000)
		r := s.putTitle(messagePath(strings.Repeat("x", 1+n%100)+string(rune('a'+n/100))), `{"title": "a"}`)
		if r.status != http.StatusOK {
			requireRefused(t, r, http.StatusTooManyRequests, api.CodeRateLimited, badBody{message: "too many messages"})
			require.Equal(t, "1", r.header.Get("Retry-After"))
			break
		}
	}
	s.filter(fields{"message_id": "large", "user_ids": span(0, 200)})
	s.setTitle("large", `{"title": "a"}`)
	s.setTitle("promo", `{"title": "b"}`)
	s.clock.Advance(time.Second)
	s.setTitle("later", `{"title": "a"}`)
}

// TestTitlesOfNamespaces checks that a key gives titles to messages of its own namespace alone.
func TestTitlesOfNamespaces(t *testing.T) {
	t.Parallel()
	rules := gate.Rules{Keys: []gate.Key{key("read.secret", "reader", gate.ScopeRead), key("all.secret", "all",
		gate.ScopeFilter, gate.ScopeRead), key("ops.secret", "ops", gate.ScopeFilter, gate.ScopeAdmin)}}
	for _, namespace := range []string{"growth", "crm"} {
		k := key(namespace+".secret", namespace, gate.ScopeFilter, gate.ScopeRead)
		k.Namespace = namespace
		rules.Keys = append(rules.Keys, k)
	}
	s := newService(t, counted(t), func(cfg *server.Config) { cfg.Access = rules })
	for _, name := range []string{"all", "growth", "crm"} {
		s.as(name + ".secret").filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(0, 100)})
	}
	require.Equal(t, http.StatusForbidden, s.as("read.secret").putTitle("/v1/messages/promo", `{"title": "a"}`).status)
	require.Equal(t, "growth", s.as("growth.secret").setTitle("promo", `{"title": "Spring of growth"}`).Namespace)
	require.Equal(t, http.StatusForbidden, s.as("growth.secret").putTitle("/v1/messages/promo?namespace=crm",
		`{"title": "a"}`).status)
	requireRefused(t, s.as("all.secret").putTitle("/v1/messages/promo?namespace=crm", `{"title": "a"}`),
		http.StatusForbidden, "forbidden", badBody{message: `lacks the scope "admin"`})
	require.Equal(t, http.StatusOK, s.as("ops.secret").putTitle("/v1/messages/promo?namespace=crm",
		`{"title": "Autumn"}`).status)
	require.Equal(t, "Spring of growth", s.as("growth.secret").message("promo").Title)
	require.Equal(t, "Autumn", s.as("crm.secret").message("promo").Title)
	require.Empty(t, s.as("all.secret").message("promo").Title)
	require.Len(t, s.as("all.secret").messages("?id=spring").Messages, 1)
	require.Empty(t, s.as("crm.secret").messages("?id=spring").Messages)
}
