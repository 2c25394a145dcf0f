package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/server/gate"
)

func (s *service) check(path string, body any) *api.SendsCheck {
	s.t.Helper()
	r := s.post(path, body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.SendsCheck](s.t, r.body)
}

// TestChecksRecordedSends uses users 0 to 99, who are new and may each receive 1 send a day.
func TestChecksRecordedSends(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *service) {
		s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(0, 50)})
		ask := func(users ...int) *api.SendsCheck {
			return s.check("/v1/sends/check", fields{"message_id": "promo", "channel": "push", "user_ids": users})
		}
		found := ask(7, 42, 7)
		require.Equal(t, api.SendsCheckSummary{Requested: 3, Recorded: 2, Duplicates: 1}, found.Summary)
		require.Empty(t, found.Missing)
		require.Equal(t, s.clock.Now().UTC(), found.Time)

		require.Equal(t, http.StatusOK, s.post("/v1/release",
			fields{"message_id": "promo", "user_ids": []int{42}}).status)
		found = ask(7, 42, 60)
		require.Equal(t, api.SendsCheckSummary{Requested: 3, Recorded: 1, Missing: 2}, found.Summary)
		var missing []uint32
		for _, place := range found.Missing {
			missing = append(missing, place.UserIDs...)
			require.Equal(t, place.Partition != nil, place.Node != "", "Redis tells both, the embedded store neither")
		}
		require.ElementsMatch(t, []uint32{42, 60}, missing)
		found = s.check("/v1/sends/check", fields{"message_id": "promo", "user_ids": []int{7}})
		require.Equal(t, 1, found.Summary.Missing, "a send without a channel is another one")
		bitmap := s.check("/v1/sends/check", fields{"message_id": "promo", "channel": "push",
			"users_bitmap": bitmapText(t, 7, 60)})
		require.Equal(t, 1, bitmap.Summary.Missing)
		require.Equal(t, []uint32{60}, bitmap.Missing[0].UserIDs)
	})
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for body, field := range map[string]string{
		`{"user_ids":[1]}`: "message_id", `{"message_id":"m"}`: "user_ids",
		`{"message_id":"m","user_ids":[1],"channel":"pigeon"}`: "channel",
		`{"message_id":"m","audience":"all"}`:                  "audience",
		`{"message_id":"m","user_ids":[1],"enforce":false}`:    "enforce",
	} {
		r := s.post("/v1/sends/check", body)
		require.Equal(t, http.StatusBadRequest, r.status, body)
		require.Equal(t, field, decodeAs[api.Error](t, r.body).Error.Field, body)
	}
	keys := []gate.Key{key("g1.growth", "growth", gate.ScopeRead), key("f1.filter", "filter", gate.ScopeFilter)}
	keys[0].Namespace = "growth"
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: keys}))
	const body = `{"message_id":"m","user_ids":[1]}`
	require.Equal(t, http.StatusForbidden, s.as("f1.filter").post("/v1/sends/check", body).status)
	require.Equal(t, http.StatusForbidden, s.as("g1.growth").post("/v1/sends/check?namespace=other", body).status)
	require.Equal(t, http.StatusOK, s.as("g1.growth").post("/v1/sends/check?namespace=growth", body).status)
}
