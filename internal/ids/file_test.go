package ids_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
)

const fileText = `{"kind": "uuid", "key": "2b7e151628aed2a6abf7158809cf4f3c"}` + "\n"

func TestFilesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	f := ids.File{Kind: ids.UUID, Key: testKey(t)}
	require.Equal(t, fileText, string(f.Encode()))
	require.Equal(t, "51b11a30", f.Scheme().Check())
	for _, raw := range []string{fileText, strings.TrimSpace(fileText),
		"\n{\t\"key\":\"2b7e151628aed2a6abf7158809cf4f3c\",\"kind\":\"uuid\"}  "} {
		read, err := ids.ParseFile([]byte(raw))
		require.NoError(t, err)
		require.Equal(t, f, read)
	}
}

func TestOtherFilesAreRejected(t *testing.T) {
	t.Parallel()
	const key = `"key": "2b7e151628aed2a6abf7158809cf4f3c"`
	for raw, want := range map[string]string{
		"":                         "decode JSON: unexpected EOF",
		fileText[:20]:              "decode JSON: unexpected EOF",
		fileText[:len(fileText)-2]: "decode JSON: unexpected EOF",
		fileText + "x":             "must be one JSON object, but more text follows the object",
		fileText + fileText:        "must be one JSON object, but more text follows the object",
		`["uuid"]`:                 "must be a JSON object",
		`null`:                     "must be a JSON object",
		`{` + key + `}`:            "kind: is missing",
		`{"kind": "uuid"}`:         "key: is missing",
		`{"Kind": "uuid"}`:         `"Kind": the name of a field must be 'kind' or 'key'`,
		`{"kind": "uuid", "a": 1}`: `"a": the name of a field must be 'kind' or 'key'`,
		`{"kind": "uuid", "kind": "uuid", ` + key + `}`: "kind: the field must occur only once",
		`{"kind": 2, ` + key + `}`:                      "kind: must be a string, got 2",
		`{"kind": null, ` + key + `}`:                   "kind: must be a string, got <nil>",
		`{"kind": "dense", ` + key + `}`:                `kind: must be uint64, uuid or text, got "dense"`,
		`{"kind": "UUID", ` + key + `}`:                 `kind: must be uint64, uuid or text, got "UUID"`,
		`{"kind": "uuid", "key": ""}`: "key: must have 32 hexadecimal digits, " +
			"got 0",
		`{"kind": "uuid", "key": "2b7e"}`: "key: must have 32 hexadecimal digits, " +
			"got 4",
		`{"kind": "uuid", "key": "2B7E"}`: `key: must consist of hexadecimal digits in ` +
			`lower case, got "2B7E"`,
		`{"kind": "uuid", "key": "xy"}`: `key: must consist of hexadecimal digits in ` +
			`lower case, got "xy"`,
		`{"kind": "uuid", "key": "` + strings.Repeat("0", 32) + `"}`: "key: must not be 32 zeros",
		strings.Repeat(" ", 5000):                                    "must be a file of at most 4096 bytes, got 5000",
	} {
		_, err := ids.ParseFile([]byte(raw))
		require.EqualError(t, err, want, raw)
	}
	_, err := ids.ParseFile([]byte(`{"kind" "uuid"}`))
	require.ErrorContains(t, err, "decode JSON: invalid character")
}

func TestKeysAreRandom(t *testing.T) {
	t.Parallel()
	one, two := ids.NewKey(), ids.NewKey()
	require.NotEqual(t, one, two)
	parsed, err := ids.ParseKey(one.String())
	require.NoError(t, err)
	require.Equal(t, one, parsed)
}

// FuzzParseFile holds that every file that is read is the same when written and read again.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(fileText))
	f.Add([]byte(`{"kind": "text", "kind": "text"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := ids.ParseFile(raw)
		if err != nil {
			return
		}
		again, err := ids.ParseFile(file.Encode())
		require.NoError(t, err)
		require.Equal(t, file, again)
	})
}
