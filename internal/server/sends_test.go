package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/server/gate"
)

func (s *service) importSends(body any) *api.ImportAnswer {
	s.t.Helper()
	r := s.post("/v1/sends", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.ImportAnswer](s.t, r.body)
}

// TestImportedSendsCount uses users 0 to 99, who are new and may each receive 1 send a day and 3 a week.
func TestImportedSendsCount(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		at := func(ago time.Duration) time.Time { return s.clock.Now().Add(-ago) }
		const day = 24 * time.Hour
		body := api.ImportRequest{MessageID: "promo", Channel: "push", Sends: []api.ImportedSend{
			{UserID: 7, At: at(day - time.Millisecond)},
			{UserID: 8, At: at(day)},
			{UserID: 9, At: at(3 * day)}, {UserID: 9, At: at(2 * day), MessageID: "next"}, {UserID: 9, At: at(4 * day),
				Channel: "email"},
			{UserID: 10, At: at(7 * day)}, {UserID: 10, At: at(9000 * day)},
			{UserID: 11, At: at(3 * day)}, {UserID: 11, At: at(2 * day)}, // the same send
		}}
		require.Equal(t, &api.ImportAnswer{Unavailable: []uint32{}, Summary: api.ImportSummary{Requested: 9, Added: 6,
			Known: 1, Expired: 2}}, s.importSends(body))
		require.Equal(t, api.ImportSummary{Requested: 9, Known: 7, Expired: 2}, s.importSends(body).Summary)

		d := s.filter(fields{"message_id": "another", "channel": "push", "user_ids": span(7, 12)})
		require.Equal(t, []uint32{8, 10, 11}, d.Allowed)
		require.Equal(t, "daily", d.Denied[0].Limit)
		require.Equal(t, s.clock.Now().Add(time.Millisecond).Format(api.Milliseconds), *d.Denied[0].RetryAt)
		require.Equal(t, "weekly", d.Denied[1].Limit)

		// An imported send is the send of its message: a filter call for it is allowed again, and it counts once.
		d = s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": []int{7, 8, 12}})
		require.Equal(t, []uint32{7, 8, 12}, d.Allowed)
		require.Equal(t, []uint32{7, 8}, d.Replayed)

		e := s.explain(11)
		require.Len(t, e.Sends, 2)
		require.Equal(t, "promo", *e.Sends[0].MessageID)
		require.True(t, e.Sends[0].At.Equal(at(3*day)), "the first that came is the send")
		require.Equal(t, http.StatusOK,
			s.post("/v1/release", fields{"message_id": "promo", "user_ids": []int{11}}).status)
		require.Len(t, s.explain(11).Sends, 1)
	})
}

func (s *service) explain(user int) *api.Explanation {
	s.t.Helper()
	r := s.get(fmt.Sprint("/v1/users/", user))
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.Explanation](s.t, r.body)
}

// TestImportWithoutMessages checks that a send without a message id is identified by user, channel and millisecond.
func TestImportWithoutMessages(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		const body = `{"sends":[{"user_id":150,"at":"2037-11-20T09:00:00.001Z"},{"at":"2037-11-20T17:00:00.0019+08:00","user_id":150},
			{"user_id":150,"at":"2037-11-20T09:00:00.002Z"},{"user_id":150,"at":"2037-11-20T09:00:00.001Z","channel":"sms"}]}`
		require.Equal(t, api.ImportSummary{Requested: 4, Added: 3, Known: 1}, s.importSends(body).Summary)
		require.Equal(t, api.ImportSummary{Requested: 4, Known: 4}, s.importSends(body).Summary)
		require.Len(t, s.explain(150).Sends, 3)
		require.Len(t, s.filter(fields{"message_id": "m", "user_ids": []int{150}}).Denied, 1)
	})
}

func TestImportedSendsAreOfANamespaceAndCounted(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		keys := []gate.Key{key("g1.growth", "growth", gate.ScopeFilter, gate.ScopeRead),
			key("f1.filter", "filter", gate.ScopeFilter, gate.ScopeRead), key("a1.ops", "ops", gate.ScopeAdmin)}
		keys[0].Namespace = "growth"
		require.NoError(t, s.server.SetAccess(gate.Rules{Keys: keys}))
		require.Equal(t, http.StatusForbidden, s.as("f1.filter").post("/v1/sends", `{}`).status)
		body := api.ImportRequest{MessageID: "promo", Channel: "push"}
		for user := range uint32(300) {
			body.Sends = append(body.Sends, api.ImportedSend{UserID: user, At: s.clock.Now().Add(-48 * time.Hour)})
		}
		for range 2 {
			require.Equal(t, http.StatusOK, s.as("a1.ops").post("/v1/sends?namespace=growth", body).status)
		}
		require.Equal(t, int64(300), s.as("g1.growth").message("promo").Channels[0].Allowed)
		require.Len(t, s.as("g1.growth").filter(fields{"message_id": "promo", "channel": "push",
			"user_ids": span(0, 10)}).Replayed, 10)
		require.Empty(t, s.as("f1.filter").filter(fields{"message_id": "promo", "channel": "push",
			"user_ids": span(0, 10)}).Replayed)
	}, counted(t))
}

func TestImportRefusesBodies(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *server.Config) { c.Bounds = gate.Bounds{JSONUsers: 3} })
	one := `{"user_id":1,"at":"2037-11-20T09:00:00Z"}`
	send := func(send string) string { return `{"sends":[` + one + `,` + send + `]}` }
	for _, test := range []badBody{
		{"empty", ``, "", "empty"},
		{"no sends", `{"message_id":"m"}`, "sends", "at least one send"},
		{"no send", `{"sends":[]}`, "sends", "at least one send"},
		{"null", `{"sends":null}`, "sends", "null is not an array"},
		{"a number", send(`7`), "sends[1]", "7 is not an object"},
		{"no user", send(`{"at":"2037-11-20T09:00:00Z"}`), "sends[1].user_id", "is required"},
		{"no time", send(`{"user_id":1}`), "sends[1].at", "is required"},
		{"nothing", send(`{}`), "sends[1].user_id", "is required"},
		{"user null", send(`{"user_id":null,"at":"2037-11-20T09:00:00Z"}`), "sends[1].user_id",
			"null is not a user id"},
		{"user fraction", send(`{"user_id":1.5,"at":"2037-11-20T09:00:00Z"}`), "sends[1].user_id",
			"1.5 is not a user id"},
		{"user text", send(`{"user_id":"01","at":"2037-11-20T09:00:00Z"}`), "sends[1].user_id", `"01" is not a user id`},
		{"user twice", send(`{"user_id":1,"user_id":1,"at":"2037-11-20T09:00:00Z"}`), "sends[1].user_id", "twice"},
		{"unknown", send(`{"user_id":1,"when":1}`), "sends[1].when", "no such field"},
		{"time null", send(`{"user_id":1,"at":null}`), "sends[1].at", "null is not a string"},
		{"time number", send(`{"user_id":1,"at":1732093964}`), "sends[1].at", "is not a string"},
		{"time without zone", send(`{"user_id":1,"at":"2037-11-20T09:00:00"}`), "sends[1].at", "RFC 3339"},
		{"time with a space", send(`{"user_id":1,"at":"2037-11-20 09:00:00Z"}`), "sends[1].at", "RFC 3339"},
		{"time with a comma", send(`{"user_id":1,"at":"2037-11-20T09:00:00,5Z"}`), "sends[1].at", "RFC 3339"},
		{"no such day", send(`{"user_id":1,"at":"2037-11-31T09:00:00Z"}`), "sends[1].at", "RFC 3339"},
		{"no such zone", send(`{"user_id":1,"at":"2037-11-20T09:00:00+24:00"}`), "sends[1].at", "RFC 3339"},
		{"future", send(`{"user_id":1,"at":"2037-11-20T09:13:00Z"}`), "sends[1].at", "is in the future"},
		{"unknown channel", send(`{"user_id":1,"at":"2037-11-20T09:00:00Z","channel":"pigeon"}`), "sends[1].channel",
			`"pigeon" is not a configured channel`},
		{"empty channel", send(`{"user_id":1,"at":"2037-11-20T09:00:00Z","channel":""}`), "sends[1].channel", "empty"},
		{"empty message", send(`{"user_id":1,"at":"2037-11-20T09:00:00Z","message_id":""}`), "sends[1].message_id",
			"0 bytes"},
		{"long message", `{"message_id":"` + strings.Repeat("x", 129) + `","sends":[` + one + `]}`, "message_id",
			"129 bytes"},
		{"users", `{"user_ids":[1],"sends":[` + one + `]}`, "user_ids", "its fields are message_id, channel, sends"},
		{"after it", `{"sends":[` + one + `]}{}`, "", "nothing may follow"},
		{"cut off", `{"sends":[` + one, "", "ends at byte"},
	} {
		r := s.post("/v1/sends", test.body)
		require.Equal(t, http.StatusBadRequest, r.status, test.name)
		f := decodeAs[failed](t, r.body)
		require.Equal(t, test.field, f.Error.Field, test.name)
		require.Contains(t, f.Error.Message, test.message, test.name)
	}
	r := s.post("/v1/sends", `{"sends":[`+strings.Repeat(one+",", 3)+one+`]}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, r.status, string(r.body))
	require.Empty(t, s.explain(1).Sends)
}

// TestManySendsOfOneUser checks that a call with very many sends of one user needs no quadratic time.
func TestManySendsOfOneUser(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		const sends, room = 20_000, 2 * capping.LogBound
		body := api.ImportRequest{}
		for i := range sends {
			at := s.clock.Now().Add(-time.Duration(sends-i) * time.Millisecond)
			one := api.ImportedSend{UserID: 150, At: at, Channel: []string{"push", "email"}[i%2]}
			if i%3 > 0 {
				one.MessageID = fmt.Sprint("m", i)
			}
			body.Sends = append(body.Sends, one)
		}
		require.Equal(t, api.ImportSummary{Requested: sends, Added: room, Known: sends - room},
			s.importSends(body).Summary)
		require.Equal(t, api.ImportSummary{Requested: sends, Known: sends}, s.importSends(body).Summary)
		require.Len(t, s.explain(150).Sends, room)
	}, counted(t))
}
