package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// TestChecksSendsOfImages names users by their images, as the audit does.
func TestChecksSendsOfImages(t *testing.T) {
	t.Parallel()
	for kind, user := range importedUsers {
		s := newIDService(t, kind, nil)
		filterAs[api.FilterStrings](s, fields{"message_id": "promo", "channel": "push",
			"user_ids": []string{user.one, user.two}})
		image := func(id string) string {
			found, err := scheme(t, kind).Parse([]byte(id))
			require.NoError(t, err)
			return fmt.Sprintf("%016x", found)
		}
		one, two, three := image(user.one), image(user.two), image(user.three)
		check := func(images ...string) reply {
			return s.post("/v1/sends/check", fields{"message_id": "promo", "channel": "push", "images": images})
		}
		r := check(three, strings.ToUpper(one), two, three)
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		found := decodeAs[api.SendsCheckStrings](t, r.body)
		require.Equal(t, []api.MissingStrings{{UserIDs: []string{"image:" + three}}}, found.Missing)
		require.Equal(t, api.SendsCheckSummary{Requested: 4, Recorded: 2, Missing: 1, Duplicates: 1}, found.Summary)

		for _, c := range []struct{ body, field, message string }{
			{`{"message_id":"m","images":[]}`, "images", "the batch is empty"},
			{`{"message_id":"m","images":"` + one + `"}`, "images", "is not an array of id images"},
			{`{"message_id":"m","images":[7]}`, "images[0]", "7 is not a string"},
			{`{"message_id":"m","images":["` + one + `","` + one[1:] + `"]}`, "images[1]", "16 hexadecimal digits"},
			{`{"message_id":"m","images":["image:` + one + `"]}`, "images[0]", "16 hexadecimal digits"},
			{`{"message_id":"m","images":["g` + one[1:] + `"]}`, "images[0]", "16 hexadecimal digits"},
			{`{"message_id":"m","images":["` + one + `" "` + two + `"]}`, "", "expected"},
			{`{"message_id":"m","images":["` + one + `"],"user_ids":["x"]}`, "user_ids", "are both given"},
			{`{"message_id":"m","user_ids":["` + user.three + `"],"images":["` + one + `"]}`, "images", "are both given"},
		} {
			requireRefused(t, s.post("/v1/sends/check", c.body), http.StatusBadRequest, "invalid_request",
				badBody{field: c.field, message: c.message})
		}
		requireRefused(t, s.post("/v1/filter", `{"message_id":"m","images":["`+one+`"]}`), http.StatusBadRequest,
			"invalid_request", badBody{field: "images", message: "no such field; its fields are message_id, "})
	}
	requireRefused(t, newService(t).post("/v1/sends/check", `{"message_id":"m","images":["0000000000000007"]}`),
		http.StatusBadRequest, "invalid_request", badBody{field: "images", message: "this deployment's ids are dense"})
}
