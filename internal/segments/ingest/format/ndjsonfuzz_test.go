package format

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzNDJSON checks that the id of an object is the value that encoding/json finds under exactly that
// name.
func FuzzNDJSON(f *testing.F) {
	f.Add(`{"user_id": 1, "x": [{"user_id": 2}, "}"], "y": "\"user_id\": 3"}`)
	f.Add(`{"x":null,"\u0075ser_id":"12"}`)
	f.Add(`{"user_id":1e3}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, row string) {
		if strings.ContainsAny(row, "\n") {
			return
		}
		got := parse(row, NDJSON("user_id", "", nil))
		if strings.TrimRight(row, "\r") == "" {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(row), &object) != nil || object == nil {
			require.Empty(t, got.IDs)
			require.EqualValues(t, 1, got.BadLines)
			return
		}
		value := string(object["user_id"])
		if unquoted := strings.Trim(value, `"`); value != "" && value == `"`+unquoted+`"` {
			value = unquoted
		}
		id, ok := PlainID(value)
		if strings.ContainsAny(value, " \t\r") {
			return // spaces inside a JSON string: a matter of taste, not of JSON
		}
		if len(got.IDs) == 1 {
			require.True(t, ok, "value %q", value)
			require.Equal(t, id, got.IDs[0])
			return
		}
		require.EqualValues(t, 1, got.BadLines)
		require.True(t, !ok || strings.Count(row, "user_id")+strings.Count(row, `\`) > 1, "%q was refused", row)
	})
}
