package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/server"
	"capper/internal/server/gate"
)

// counted adds a counter of messages to the service.
func counted(t testing.TB) func(*server.Config) {
	return func(cfg *server.Config) {
		store, ok := capping.As[messages.Store](cfg.Capper.Store())
		require.True(t, ok)
		var err error
		cfg.MessageCounts, err = messages.NewCounter(store, nil, nil)
		require.NoError(t, err)
	}
}

func (s *service) messages(query string) *api.Messages {
	s.t.Helper()
	r := s.get("/v1/messages" + query)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.Messages](s.t, r.body)
}

// messagePath returns the path of a message, with the id as one element.
func messagePath(id string) string { return "/v1/messages/" + url.PathEscape(id) }

func (s *service) message(id string) *api.MessageChannels {
	s.t.Helper()
	r := s.get(messagePath(id))
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.MessageChannels](s.t, r.body)
}

// TestMessagesAreCounted uses the users of testPolicy: 0 to 99 are new, 100 to 199 active, and so on.
func TestMessagesAreCounted(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(0, 200)})
		s.clock.Advance(time.Minute)
		s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(50, 150)})
		s.filter(fields{"message_id": "next", "channel": "push", "user_ids": span(0, 100)})
		s.filter(fields{"message_id": "next", "record": false, "user_ids": span(0, 100)})

		list := s.messages("").Messages
		require.Len(t, list, 2)
		require.Equal(t, "next", list[0].MessageID, "called last")
		require.Equal(t, map[string]int64{"daily": 100}, list[0].Denied)
		require.Zero(t, list[0].Allowed)
		promo := list[1]
		require.Equal(t, int64(200), promo.Allowed)
		require.Equal(t, int64(300), promo.Asked)
		require.Equal(t, int64(100), promo.Replayed)
		require.Equal(t, int64(2), promo.Calls)
		require.Equal(t, map[string]api.MessageSegment{"new": {Asked: 150, Allowed: 150},
			"active": {Asked: 150, Allowed: 150}}, promo.Segments)
		require.Equal(t, time.Minute, promo.LastCall.Sub(promo.FirstCall))
		require.Equal(t, promo, s.message("promo").Channels[0])

		s.post("/v1/release", fields{"message_id": "promo", "channel": "push", "user_ids": span(0, 30)})
		require.Equal(t, int64(30), s.message("promo").Channels[0].Released)
		require.Empty(t, s.messages("?since=2037-11-21T00:00:00Z").Messages)
		require.Empty(t, s.messages("?since=30s&channel=email").Messages)
		first := s.messages("?max=1")
		require.Len(t, first.Messages, 1)
		require.True(t, first.More)
	}, counted(t))
}

func TestMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, counted(t))
	for query, field := range map[string]string{
		"?since=yesterday": "since", "?since=-1h": "since", "?since=65536d": "since", "?until=8d": "since",
		"?max=0": "max", "?max=1001": "max", "?max=x": "max", "?channel=fax": "channel",
		"?until=soon": "until", "?min_asked=-1": "min_asked", "?min_asked=x": "min_asked",
		"?sort=name": "sort", "?cursor=x": "cursor", "?cursor=": "cursor", "?cursor=AAAA": "cursor",
		"?sort=asked&cursor=AAAAAAAAAAAAAWE": "cursor", "?cursor=AP__________AWE": "cursor",
		"?cursor=AAAAAAAAAAAAAYA": "cursor", "?id=%FF": "id", "?id=" + strings.Repeat("x", 201): "id",
		"?user=1": "user", "?namespace=%FF": "namespace",
	} {
		r := s.get("/v1/messages" + query)
		require.Equal(t, http.StatusBadRequest, r.status, query)
		require.Equal(t, field, r.failure(t).Error.Field)
	}
	require.Equal(t, `since: "65536d" must be a time (RFC 3339), a date or an age up to 65535d such as 36h or 7d`,
		s.get("/v1/messages?since=65536d").failure(t).Error.Message)
	require.Equal(t, http.StatusNotFound, s.get("/v1/messages/nobody").status)
	require.Equal(t, http.StatusNotFound, s.get("/v1/messages/").status)
	require.Equal(t, http.StatusBadRequest, s.get("/v1/messages/"+strings.Repeat("x", 129)).status)
	require.Equal(t, http.StatusBadRequest, s.get("/v1/messages/%FFgrowth%FFpromo").status,
		"it would be a message of a namespace")
	require.Equal(t, http.StatusMethodNotAllowed, s.post("/v1/messages/promo", fields{}).status)
	require.Equal(t, http.StatusConflict, s.post("/v1/messages/promo/release", fields{}).status, "there is no audit")
}

func TestMessagesOfAnyID(t *testing.T) {
	t.Parallel()
	s := newService(t, counted(t))
	for i, id := range []string{
		"a/b", "/", "//", "a/", "../../etc/passwd", ".", "%2F", "%", "a b+c", "x?y=1#z", "release", "x/release", "{id}",
		":id", "*",
		"\x00", "\r\n", "🎉", "<script>alert(1)</script>", `"quoted"`, strings.Repeat("é", 64),
	} {
		s.filter(fields{"message_id": id, "user_ids": span(uint32(1000*i+400), uint32(1000*i+500))})
		found := s.message(id)
		require.Equal(t, id, found.MessageID)
		require.Len(t, found.Channels, 1)
		require.Equal(t, int64(100), found.Channels[0].Allowed, "%q", id)
	}
}

// TestMessagesOfNamespaces uses one store, a key without a namespace and keys of two namespaces.
func TestMessagesOfNamespaces(t *testing.T) {
	t.Parallel()
	rules := gate.Rules{}
	for _, namespace := range []string{"", "growth", "crm"} {
		rules.Keys = append(rules.Keys, key("key"+namespace+".secret", "client"+namespace, gate.ScopeFilter,
			gate.ScopeRead))
		rules.Keys[len(rules.Keys)-1].Namespace = namespace
	}
	rules.Keys = append(rules.Keys, key("ops.secret", "ops", gate.ScopeFilter, gate.ScopeAdmin))
	audit := &grants{}
	s := newService(t, counted(t), func(cfg *server.Config) { cfg.Access, cfg.Audit = rules, audit })
	as := func(namespace string) *service { return s.as("key" + namespace + ".secret") }
	for i, namespace := range []string{"", "growth", "crm"} {
		as(namespace).filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(uint32(1000*i+400),
			uint32(1000*i+500))})
	}
	require.Len(t, as("").messages("").Messages, 3)
	require.Len(t, as("").messages("?namespace=growth").Messages, 1)
	for _, namespace := range []string{"growth", "crm"} {
		list := as(namespace).messages("").Messages
		require.Len(t, list, 1)
		require.Equal(t, namespace, list[0].Namespace)
		require.Equal(t, namespace, as(namespace).message("promo").Namespace)
		require.Len(t, as(namespace).messages("?namespace="+namespace).Messages, 1)
	}
	require.Empty(t, as("").message("promo").Namespace)
	for _, path := range []string{"/v1/messages?namespace=crm", "/v1/messages/promo?namespace=crm"} {
		require.Equal(t, http.StatusForbidden, as("growth").get(path).status, path)
	}
	require.Equal(t, http.StatusForbidden, as("growth").post("/v1/messages/promo/release?namespace=crm",
		fields{}).status)

	audit.users = bitmap.Range(400, 5000) // a release covers one namespace's messages
	given := as("growth").post("/v1/messages/promo/release", fields{})
	require.Equal(t, int64(100), decodeAs[api.ReleasedMessage](t, given.body).Released)
	require.Equal(t, capping.Message{Namespace: "growth", ID: "promo"}, *audit.asked.Load())
	for namespace, released := range map[string]int64{"": 0, "growth": 100, "crm": 0} {
		require.Equal(t, released, as(namespace).message("promo").Channels[0].Released, "%q", namespace)
	}
	for _, other := range []string{"crm", "none"} {
		requireRefused(t, as("").post("/v1/messages/promo/release?namespace="+other, fields{}), http.StatusForbidden,
			"forbidden",
			badBody{message: `lacks the scope "admin"`})
	}
	require.Zero(t, as("crm").message("promo").Channels[0].Released)
	s.as("ops.secret").post("/v1/messages/promo/release?namespace=crm", fields{})
	require.Equal(t, int64(100), as("crm").message("promo").Channels[0].Released)
}

// grants is an audit that holds the users.
type grants struct {
	users *bitmap.Bitmap
	asked atomic.Pointer[capping.Message]
}

func (*grants) Flush(context.Context) error { return nil }

func (g *grants) Grants(_ context.Context, message capping.Message, channel capping.Channel) ([]archive.Grants, error) {
	g.asked.Store(&message)
	return []archive.Grants{{Channel: max(channel, 1), Users: g.users, Unknown: bitmap.Of()}}, nil
}

// TestMessagesAreReleased checks that every user's slot is released, in as many steps as needed.
func TestMessagesAreReleased(t *testing.T) {
	audit := &grants{users: bitmap.Range(400, 150_400)}
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(fields{"message_id": "promo/1", "channel": "push", "users_bitmap": bitmapText(t, audit.users.IDs()...),
			"detail": "counts"})
		counts := s.message("promo/1").Channels[0]
		require.Greater(t, counts.Allowed, int64(100_000))
		release := func() *api.ReleasedMessage {
			r := s.post(messagePath("promo/1")+"/release", fields{"channel": "push"})
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			return decodeAs[api.ReleasedMessage](t, r.body)
		}
		first := release()
		require.Equal(t, int64(150_000), first.Found)
		require.Equal(t, counts.Allowed, first.Released)
		require.Equal(t, first.Found-first.Released, first.Absent)
		require.Zero(t, first.Missing)
		require.Zero(t, first.Unavailable)
		require.Equal(t, counts.Allowed, s.message("promo/1").Channels[0].Released)
		require.Zero(t, release().Released, "twice is once")
	}, counted(t), func(cfg *server.Config) { cfg.Audit = audit })
}

// TestABlastIsFoundAmongManyMessages sends one blast, and then more small messages than a list may name.
func TestABlastIsFoundAmongManyMessages(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(fields{"message_id": "Million", "channel": "push", "users_bitmap": bitmapText(t, span(400, 20_400)...),
			"detail": "counts"})
		s.clock.Advance(time.Minute)
		for n := range 1050 { // a burst of 1,000 is counted, and two more a second
			s.clock.Advance(time.Second)
			s.filter(fields{"message_id": fmt.Sprint("order-", n), "channel": "email", "user_ids": []int{n}})
		}
		require.NotContains(t, names(s.messages("?max=1000")), "Million")
		require.Equal(t, "Million", s.messages("?sort=asked&max=1").Messages[0].MessageID)
		for _, query := range []string{"?id=milli", "?min_asked=20000", "?channel=push", "?until=1080s&since=2h",
			"?sort=asked&min_asked=100&max=1000"} {
			page := s.messages(query)
			require.Equal(t, []string{"Million"}, names(page), query)
			require.Nil(t, page.Next, query)
		}
		require.Empty(t, s.messages("?id=Millions").Messages)
		require.Empty(t, s.messages("?min_asked=20001").Messages)
		for _, sort := range []string{"last_call", "asked"} {
			seen := map[string]bool{}
			for query, pages := "?max=400&sort="+sort, 1; ; pages++ {
				page := s.messages(query)
				require.Equal(t, page.More, page.Next != nil)
				for _, name := range names(page) {
					require.False(t, seen[name], name)
					seen[name] = true
				}
				if page.Next == nil {
					require.Equal(t, 3, pages)
					break
				}
				query = "?max=400&sort=" + sort + "&cursor=" + *page.Next
			}
			require.Len(t, seen, 1051)
		}
	}, counted(t))
}

func names(page *api.Messages) (list []string) {
	for _, one := range page.Messages {
		list = append(list, one.MessageID)
	}
	return list
}
