package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRepeatedNames checks that an object with a repeated member name is rejected, in any spelling,
// and that the same word elsewhere is no name.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	for row, reason := range map[string]string{
		`{"user_id":1,"user_id":2}`:                                  `field "user_id" is given twice`,
		`{"user_id":1,"x":{},"\u0075ser_id":2}`:                      `field "user_id" is given twice`,
		`{"user_id":null,"user_id":2}`:                               `field "user_id" is given twice`,
		`{"\u0075ser_id":1,"\u0075ser_id":2}`:                        `field "user_id" is given twice`,
		`{"x":{"user_id":1,"user_id":2},"user_id":3}`:                "",
		`{"user_id":3,"x":"user_id","user_ids":["user_id","\"",{}]}`: "",
		`{"user_id":3,"":1,"":[]}`:                                   "",
		`{"x":{"user_id":1}}`:                                        `field "user_id" is missing`,
		`{"user_id":3,"x":[}`:                                        "line is not a JSON object",
		`{"user_id":3}{"user_id":4}`:                                 "line is not a JSON object",
		`[{"user_id":3}]`:                                            "line is not a JSON object",
		`{"USER_ID":3}`:                                              `field "user_id" is missing`,
	} {
		got := parse(row, NDJSON("user_id", "", nil))
		if reason == "" {
			require.Equal(t, []uint32{3}, got.IDs, row)
			continue
		}
		require.Len(t, got.Bad, 1, row)
		require.Equal(t, reason, got.Bad[0].Reason, row)
	}
}
