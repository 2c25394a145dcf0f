package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/server"
	"capper/internal/testkit"
)

// importedUsers has three ids of each kind, and the first of them in another spelling if there is one.
var importedUsers = map[ids.Kind]struct{ one, two, three, spelt string }{
	ids.Uint64: {"18446744073709551615", "7", "0", "18446744073709551615"},
	ids.UUID:   {ann, ben, dan, "{" + strings.ToUpper(ann) + "}"},
	ids.Text:   {"a@x.com", `a"b\c`, "007", "a@x.com"},
}

// TestImportedSendsOfEveryKindCount uses limits of 1 send a day and 3 a week.
func TestImportedSendsOfEveryKindCount(t *testing.T) {
	t.Parallel()
	for kind, user := range importedUsers {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s := newIDService(t, kind, nil)
			at := func(ago time.Duration) time.Time { return s.clock.Now().Add(-ago) }
			const day = 24 * time.Hour
			body := api.ImportRequestStrings{MessageID: "promo", Channel: "push", Sends: []api.ImportedSendOfID{
				{UserID: user.one, At: at(day - time.Millisecond)},
				{UserID: user.spelt, At: at(time.Hour)}, // the same send
				{UserID: user.spelt, At: at(3 * day), MessageID: "next", Channel: "email"},
				{UserID: user.two, At: at(day)},
				{UserID: user.three, At: at(9000 * day)},
			}}
			first := s.post("/v1/sends", body)
			require.Equal(t, http.StatusOK, first.status, string(first.body))
			require.Equal(t, &api.ImportAnswerStrings{Unavailable: []string{},
				Summary: api.ImportSummary{Requested: 5, Added: 3, Known: 1, Expired: 1}},
				decodeAs[api.ImportAnswerStrings](t, first.body))
			again := s.post("/v1/sends", body)
			require.Equal(t, api.ImportSummary{Requested: 5, Known: 4, Expired: 1},
				decodeAs[api.ImportAnswerStrings](t, again.body).Summary)

			answer := filterAs[api.FilterStrings](s, fields{"message_id": "m", "channel": "push",
				"user_ids": []string{user.one, user.two, user.three}})
			require.Equal(t, []string{user.two, user.three}, answer.Allowed)
			require.Equal(t, user.one, answer.Denied[0].UserID)
			e := decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+url.PathEscape(user.one)).body)
			require.Len(t, e.Sends, 2)
			require.Equal(t, "next", *e.Sends[0].MessageID)
			require.True(t, e.Sends[0].At.Equal(at(3*day)))
			require.True(t, e.Sends[1].At.Equal(at(day-time.Millisecond)))

			check := func(field string, users any) *api.SendsCheckStrings {
				r := s.post("/v1/sends/check", fields{"message_id": "promo", "channel": "push", field: users})
				require.Equal(t, http.StatusOK, r.status, string(r.body))
				return decodeAs[api.SendsCheckStrings](t, r.body)
			}
			found := check("user_ids", []string{user.three, user.one, user.spelt, user.two})
			require.Equal(t, []api.MissingStrings{{UserIDs: []string{user.three}}}, found.Missing)
			require.Equal(t, []string{}, found.Unavailable)
			require.Equal(t, api.SendsCheckSummary{Requested: 4, Recorded: 2, Missing: 1, Duplicates: 1},
				found.Summary)
			if kind != ids.Text {
				found = check("users_packed",
					packedText(t, scheme(t, kind), user.two, user.three, user.one, user.three))
				require.Equal(t, []api.MissingStrings{{UserIDs: []string{user.three}}}, found.Missing)
				require.Equal(t, api.SendsCheckSummary{Requested: 4, Recorded: 2, Missing: 1, Duplicates: 1},
					found.Summary)
			}
			requireRefused(t, s.post("/v1/sends/check", fields{"message_id": "m", "users_bitmap": bitmapText(t, 1)}),
				http.StatusBadRequest, "invalid_request",
				badBody{field: "users_bitmap", message: "this deployment's ids are " + kind.String() + ": use"})
		})
	}
}

// unsure is a store whose merges have unknown results while it fails.
type unsure struct {
	capping.Store
	fails bool
}

// Merge implements capping.Merger.
func (u *unsure) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	if u.fails {
		return errors.New("the store is away")
	}
	return u.Store.(capping.Merger).Merge(ctx, m, merged)
}

// TestImportsNameUsersOfUnknownResults lets the store fail, and checks that an answer names the users as the call did.
func TestImportsNameUsersOfUnknownResults(t *testing.T) {
	t.Parallel()
	for kind, user := range importedUsers {
		sch, clock := scheme(t, kind), testkit.NewClockAt(startOfTest)
		store := &unsure{Store: openStoreOf(t, sch, clock.Now)}
		s := newIDServiceOver(t, sch, store, clock, nil, func(cfg *server.Config) { cfg.Bounds.JSONUsers = 3 })
		send := func(id string) api.ImportedSendOfID { return api.ImportedSendOfID{UserID: id, At: s.clock.Now()} }
		body := api.ImportRequestStrings{MessageID: "m", Sends: []api.ImportedSendOfID{send(user.two), send(user.spelt),
			send(user.one)}}
		require.Equal(t, api.ImportSummary{Requested: 3, Added: 2, Known: 1},
			decodeAs[api.ImportAnswerStrings](t, s.post("/v1/sends", body).body).Summary)
		body.Sends = append(body.Sends, send(user.three))
		requireRefused(t, s.post("/v1/sends", body), http.StatusRequestEntityTooLarge, "too_large",
			badBody{field: "sends", message: "has more than 3 sends: split the batch"})
		image, err := sch.Parse([]byte(user.one))
		require.NoError(t, err)
		named := send("")
		named.Image = fmt.Sprintf("%016x", image)
		known := s.post("/v1/sends", api.ImportRequestStrings{MessageID: "m", Sends: []api.ImportedSendOfID{named}})
		require.Equal(t, api.ImportSummary{Requested: 1, Known: 1},
			decodeAs[api.ImportAnswerStrings](t, known.body).Summary)
		store.fails = true
		body.Sends = append(body.Sends[:1:1], named)
		r := s.post("/v1/sends", body)
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		answer := decodeAs[api.ImportAnswerStrings](t, r.body)
		require.Equal(t, []string{user.two, "image:" + named.Image}, answer.Unavailable, kind)
		require.Equal(t, api.ImportSummary{Requested: 2, Unavailable: 2}, answer.Summary)
		for message, bad := range map[string]api.ImportedSendOfID{
			`sends[0].image: "5F1C0B7E22A94D31" is not an id image: an id image has 16 hexadecimal digits`: {
				Image: "5F1C0B7E22A94D31", At: s.clock.Now()},
			"sends[0].image: must not be combined with user_id": {UserID: user.one, Image: named.Image,
				At: s.clock.Now()},
			"sends[0].user_id: is required": {At: s.clock.Now()},
		} {
			r := s.post("/v1/sends", api.ImportRequestStrings{Sends: []api.ImportedSendOfID{bad}})
			require.Equal(t, http.StatusBadRequest, r.status)
			require.Contains(t, string(r.body), strings.ReplaceAll(message, `"`, `\"`))
		}
	}
}
