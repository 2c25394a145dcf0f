package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/messages"
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
			requireRefused(t, r, http.StatusTooManyRequests, api.CodeRateLimited, badBody{message: "too many new"})
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

// TestTitlesInAnswersAboutUsers checks the titles of a user's sends and decisions. A key with a namespace sees the ids
// of other teams' messages and not their titles.
func TestTitlesInAnswersAboutUsers(t *testing.T) {
	rules := gate.Rules{Keys: []gate.Key{key("all.secret", "all", gate.ScopeFilter, gate.ScopeRead)}}
	for _, namespace := range []string{"growth", "crm"} {
		k := key(namespace+".secret", namespace, gate.ScopeFilter, gate.ScopeRead)
		k.Namespace = namespace
		rules.Keys = append(rules.Keys, k)
	}
	onBothStores(t, func(t *testing.T, s *service) {
		all, growth, crm := s.as("all.secret"), s.as("growth.secret"), s.as("crm.secret")
		for _, team := range []*service{all, growth, crm} {
			for _, id := range []string{"promo", "plain", "promo"} { // the last one is a replay
				team.filter(fields{"message_id": id, "channel": "email", "user_ids": []uint32{100}})
			}
			team.clock.Advance(48 * time.Hour)
		}
		all.setTitle("promo", `{"title": "Spring of all"}`)
		growth.setTitle("promo", `{"title": "Spring of growth"}`)
		require.Equal(t, http.StatusOK, all.get("/v1/messages/promo?users=true").status) // flushes the audit
		for team, titles := range map[*service]map[string]string{
			all:    {"": "Spring of all", "growth": "Spring of growth"},
			growth: {"growth": "Spring of growth"},
			crm:    {},
		} {
			told := decodeAs[api.Explanation](t, team.get("/v1/users/100").body)
			require.NotEmpty(t, told.Sends)
			for _, send := range told.Sends {
				require.Equal(t, map[bool]string{true: titles[*send.Namespace]}[*send.MessageID == "promo"], send.Title)
			}
			past := decodeAs[api.Decisions](t, team.get("/v1/users/100/decisions?since=30d").body)
			require.Len(t, past.Decisions, 9)
			for _, d := range past.Decisions {
				require.Equal(t, map[bool]string{true: titles[d.Namespace]}[d.MessageID == "promo"], d.Title, "%+v", d)
			}
		}
	}, counted(t), readAudit(t), func(cfg *server.Config) { cfg.Access = rules })
}

// TestTitlesOfAStoreThatIsAway checks that an answer from the audit has no titles, and is otherwise complete.
func TestTitlesOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	s := newService(t, readAudit(t), func(cfg *server.Config) {
		store, _ := capping.As[messages.Store](cfg.Capper.Store())
		var err error
		cfg.MessageCounts, err = messages.NewCounter(untitled{store}, nil, nil)
		require.NoError(t, err)
	})
	s.filter(fields{"message_id": "promo", "channel": "email", "user_ids": []uint32{100}})
	s.setTitle("promo", `{"title": "Spring"}`)
	require.Equal(t, http.StatusOK, s.get("/v1/messages/promo?users=true").status)
	past := decodeAs[api.Decisions](t, s.get("/v1/users/100/decisions").body)
	require.Len(t, past.Decisions, 1)
	require.Empty(t, past.Decisions[0].Title)
}

// untitled does not answer for titles.
type untitled struct{ messages.Store }

func (untitled) Title(context.Context, capping.Message) (string, error) {
	return "", errors.New("the store is away")
}
