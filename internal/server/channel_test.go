package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARequiredChannel checks that calls which decide or record sends must name a channel when the policy requires
// it. Other calls need none.
func TestARequiredChannel(t *testing.T) {
	t.Parallel()
	s := newService(t)
	optional := testPolicy()
	required := testPolicy()
	required.RequireChannel = true
	const one = `{"user_id":1,"at":"2037-11-20T09:00:00Z"`
	calls := []struct{ path, body, field string }{
		{"/v1/filter", `{"message_id":"m","user_ids":[1]}`, "channel"},
		{"/v1/filter", `{"message_id":"m","enforce":false,"user_ids":[1]}`, "channel"},
		{"/v1/filter", `{"record":false,"user_ids":[1]}`, "channel"},
		{"/v1/forecast", `{"user_ids":[1]}`, "channel"},
		{"/v1/sends", `{"sends":[` + one + `,"channel":"push"},` + one + `}]}`, "sends[1].channel"},
		{"/v1/sends", `{"message_id":"m","sends":[` + one + `}]}`, "sends[0].channel"},
	}
	s.capper.SetPolicy(optional)
	for _, c := range calls {
		require.Equal(t, http.StatusOK, s.post(c.path, c.body).status, "%s %s", c.path, c.body)
	}
	s.capper.SetPolicy(required)
	for _, c := range calls {
		refused := s.post(c.path, c.body)
		require.Equal(t, http.StatusBadRequest, refused.status, "%s %s", c.path, c.body)
		require.Equal(t, c.field, refused.failure(t).Error.Field)
		require.Contains(t, refused.failure(t).Error.Message,
			"is required by the configuration (configured channels: email, push, sms)")
	}
	for path, body := range map[string]string{
		"/v1/filter": `{"message_id":"m","channel":"","user_ids":[1]}`, "/v1/forecast": `{"channel":"","user_ids":[1]}`,
		"/v1/sends": `{"sends":[` + one + `,"channel":""}]}`,
	} {
		s.capper.SetPolicy(optional)
		hint := s.post(path, body).failure(t).Error.Message
		require.Contains(t, hint, "must not be empty: leave the field out for a send without a channel", path)
		s.capper.SetPolicy(required)
		refused := s.post(path, body).failure(t).Error.Message
		require.Contains(t, refused, "must not be empty, because the configuration requires a channel", path)
		require.NotContains(t, refused, "leave", path)
	}
	preview := s.post("/v1/audience/count", `{"audience":"all","channel":""}`)
	require.Equal(t, http.StatusBadRequest, preview.status)
	require.Equal(t, "channel", preview.failure(t).Error.Field)
	for path, body := range map[string]string{
		"/v1/filter":   `{"message_id":"m","channel":"push","user_ids":[1]}`,
		"/v1/forecast": `{"channel":"push","user_ids":[1]}`,
		"/v1/sends":    `{"channel":"push","sends":[` + one + `}]}`, "/v1/release": `{"message_id":"m","user_ids":[1]}`,
		"/v1/sends/check": `{"message_id":"m","user_ids":[1]}`,
	} {
		require.NotEqual(t, http.StatusBadRequest, s.post(path, body).status, path)
	}
	require.Contains(t, string(s.get("/v1/limits").body), `"require_channel":true`)
}
