package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/server/gate"
)

// badBody is an invalid body with the text of its refusal.
type badBody struct {
	name, body     string
	field, message string // message: a part of the text
}

func TestFilterRefusesBodies(t *testing.T) {
	t.Parallel()
	s := newService(t)
	long := strings.Repeat("x", 129)
	cases := []badBody{
		{"empty", ``, "", "empty"},
		{"spaces", " \n\t", "", "empty"},
		{"null", `null`, "", "is not a JSON object: it begins with \"n\""},
		{"array", `[]`, "", "is not a JSON object: it begins with \"[\""},
		{"byte order mark", "\ufeff{}", "", "a JSON object"},
		{"cut off", `{"message_id":"m","user_ids":[1,2`, "", "ends at byte 33"},
		{"cut off in a string", `{"message_id":"m`, "", "ends at byte"},
		{"trailing object", `{"message_id":"m","user_ids":[1]}{}`, "", "nothing may follow"},
		{"trailing comma", `{"message_id":"m","user_ids":[1],}`, "", "a field name"},
		{"trailing garbage", `{"message_id":"m","user_ids":[1]} x`, "", "nothing may follow"},
		{"single quotes", `{'message_id':'m'}`, "", "a field name"},
		{"comment", `{/**/"message_id":"m","user_ids":[1]}`, "", "a field name"},
		{"no colon", `{"message_id" "m"}`, "", "':'"},
		{"unknown field", `{"message_id":"m","user_ids":[1],"dry_run":true}`, "dry_run", "no such field"},
		{"other case", `{"Message_ID":"m","user_ids":[1]}`, "Message_ID", "lower case"},
		{"repeated", `{"message_id":"m","user_ids":[1],"message_id":"n"}`, "message_id", "twice"},
		{"repeated with an escape", `{"message_id":"m","user_ids":[1],"message\u005fid":"n"}`, "message_id", "twice"},
		{"repeated ids", `{"message_id":"m","user_ids":[1],"user_ids":[2]}`, "user_ids", "twice"},

		{"no message id", `{"user_ids":[1]}`, "message_id", "is required"},
		{"message id empty", `{"message_id":"","user_ids":[1]}`, "message_id", "0 bytes"},
		{"message id long", `{"message_id":"` + long + `","user_ids":[1]}`, "message_id", "129 bytes"},
		{"message id null", `{"message_id":null,"user_ids":[1]}`, "message_id", "null is not a string"},
		{"message id number", `{"message_id":5,"user_ids":[1]}`, "message_id", "5 is not a string"},
		{"message id object", `{"message_id":{"a":1},"user_ids":[1]}`, "message_id", "an object is not a string"},
		{"message id not UTF-8", "{\"message_id\":\"a\xffb\",\"user_ids\":[1]}", "message_id", "UTF-8"},
		{"message id half a pair", `{"message_id":"\ud83d","user_ids":[1]}`, "message_id", "escape"},
		{"message id bad pair", `{"message_id":"\ud83d\u0041","user_ids":[1]}`, "message_id", "escape"},
		{"message id bad escape", `{"message_id":"\x41","user_ids":[1]}`, "message_id", "escape"},
		{"message id short escape", `{"message_id":"\u00","user_ids":[1]}`, "message_id", "escape"},
		{"message id line end", "{\"message_id\":\"a\nb\",\"user_ids\":[1]}", "", "control"},
		{"message id line end after an escape", "{\"message_id\":\"\\ta\nb\",\"user_ids\":[1]}", "", "control"},

		{"no users", `{"message_id":"m"}`, "user_ids", "exactly one of user_ids, users_bitmap and audience"},
		{"both kinds", `{"message_id":"m","user_ids":[1],"users_bitmap":"` + bitmapText(t, 1) + `"}`, "users_bitmap",
			"exactly one"},
		{"both kinds, one empty", `{"message_id":"m","users_bitmap":"` + bitmapText(t, 1) + `","user_ids":[]}`,
			"user_ids", "exactly one"},
		{"empty batch", `{"message_id":"m","user_ids":[]}`, "user_ids", "empty"},
		{"ids null", `{"message_id":"m","user_ids":null}`, "user_ids", "null is not an array"},
		{"ids string", `{"message_id":"m","user_ids":"1,2"}`, "user_ids", "not an array"},
		{"ids object", `{"message_id":"m","user_ids":{"0":1}}`, "user_ids", "an object is not an array"},
		{"ids number", `{"message_id":"m","user_ids":7}`, "user_ids", "7 is not an array"},
		{"id null", `{"message_id":"m","user_ids":[1,null]}`, "user_ids[1]", "null is not a user id"},
		{"id negative", `{"message_id":"m","user_ids":[7,42,99,-1]}`, "user_ids[3]",
			"-1 is not a user id (0 to 4294967295)"},
		{"id minus zero", `{"message_id":"m","user_ids":[-0]}`, "user_ids[0]", "-0 is not"},
		{"id plus", `{"message_id":"m","user_ids":[+1]}`, "user_ids[0]", "+1 is not"},
		{"id too large", `{"message_id":"m","user_ids":[4294967296]}`, "user_ids[0]", "4294967296 is not"},
		{"id far too large", `{"message_id":"m","user_ids":[99999999999999999999999]}`, "user_ids[0]",
			"is not a user id"},
		{"id beyond 2^64", `{"message_id":"m","user_ids":[18446744073709551617]}`, "user_ids[0]", "is not a user id"},
		{"id fraction", `{"message_id":"m","user_ids":[1.5]}`, "user_ids[0]", "1.5 is not"},
		{"id whole fraction", `{"message_id":"m","user_ids":[1.0]}`, "user_ids[0]", "1.0 is not"},
		{"id exponent", `{"message_id":"m","user_ids":[1e3]}`, "user_ids[0]", "1e3 is not"},
		{"id capital exponent", `{"message_id":"m","user_ids":[1E3]}`, "user_ids[0]", "1E3 is not"},
		{"id leading zero", `{"message_id":"m","user_ids":[007]}`, "user_ids[0]", "007 is not"},
		{"id string", `{"message_id":"m","user_ids":["x7"]}`, "user_ids[0]", `"x7" is not a user id (0 to 4294967295)`},
		{"id string beyond", `{"message_id":"m","user_ids":[1,"4294967296"]}`, "user_ids[1]", `"4294967296" is not`},
		{"id string with a leading zero", `{"message_id":"m","user_ids":["07"]}`, "user_ids[0]", `"07" is not`},
		{"id string empty", `{"message_id":"m","user_ids":["7",""]}`, "user_ids[1]", `"" is not`},
		{"id null beside a string", `{"message_id":"m","user_ids":["7",null]}`, "user_ids[1]", "null is not a user id"},
		{"id fraction beside a string", `{"message_id":"m","user_ids":["7",1.5]}`, "user_ids[1]", "1.5 is not"},
		{"id string cut off", `{"message_id":"m","user_ids":["7`, "", "ends a string"},
		{"id bool", `{"message_id":"m","user_ids":[true]}`, "user_ids[0]", "true is not"},
		{"id array", `{"message_id":"m","user_ids":[[1]]}`, "user_ids[0]", "an array is not"},
		{"id NaN", `{"message_id":"m","user_ids":[NaN]}`, "user_ids[0]", "NaN is not"},
		{"ids with a trailing comma", `{"message_id":"m","user_ids":[1,]}`, "", "a user id"},
		{"ids with two commas", `{"message_id":"m","user_ids":[1,,2]}`, "", "a user id"},
		{"ids without a comma", `{"message_id":"m","user_ids":[1 2]}`, "", "',' or ']'"},

		{"channel unknown", `{"message_id":"m","channel":"fax","user_ids":[1]}`, "channel",
			`"fax" is not a configured channel (configured channels: email, push, sms)`},
		{"channel other case", `{"message_id":"m","channel":"Push","user_ids":[1]}`, "channel", "is not a configured channel"},
		{"channel empty", `{"message_id":"m","channel":"","user_ids":[1]}`, "channel", "empty"},
		{"channel null", `{"message_id":"m","channel":null,"user_ids":[1]}`, "channel", "null is not a string"},
		{"enforce string", `{"message_id":"m","user_ids":[1],"enforce":"false"}`, "enforce", `"false" is neither`},
		{"enforce null", `{"message_id":"m","user_ids":[1],"enforce":null}`, "enforce", "null is neither"},
		{"enforce number", `{"message_id":"m","user_ids":[1],"enforce":0}`, "enforce", "0 is neither"},
		{"enforce nearly", `{"message_id":"m","user_ids":[1],"enforce":falsey}`, "", "',' or '}'"},
		{"record null", `{"message_id":"m","user_ids":[1],"record":null}`, "record", "null is neither"},
		{"neither enforced nor recorded", `{"message_id":"m","user_ids":[1],"record":false,"enforce":false}`, "enforce",
			"record"},
		{"detail unknown", `{"message_id":"m","user_ids":[1],"detail":"full"}`, "detail", `"full" must be`},
		{"waves number", `{"message_id":"m","user_ids":[1],"waves":1}`, "waves", "1 is neither"},
		{"at with record", `{"message_id":"m","user_ids":[1],"at":"2037-11-21T09:00:00Z"}`, "at",
			"requires record false"},
		{"at past", `{"record":false,"user_ids":[1],"at":"2037-11-20T09:11:44.119Z"}`, "at",
			"more than a minute in the past"},
		{"at no time", `{"record":false,"user_ids":[1],"at":"tomorrow"}`, "at", "RFC 3339"},
		{"at without zone", `{"record":false,"user_ids":[1],"at":"2037-11-21T09:00:00"}`, "at", "RFC 3339"},
		{"at one digit", `{"record":false,"user_ids":[1],"at":"2037-11-21T9:00:00Z"}`, "at", "RFC 3339"},
		{"at number", `{"record":false,"user_ids":[1],"at":1795251164}`, "at", "not a string"},
		{"at empty", `{"record":false,"user_ids":[1],"at":""}`, "at", "empty"},
		{"at too late", `{"record":false,"user_ids":[1],"at":"2999-01-01T00:00:00Z"}`, "at", "too late"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, s.with(t).post("/v1/filter", c.body), http.StatusBadRequest, "invalid_request", c)
		})
	}
}

func requireRefused(t *testing.T, r reply, status int, code string, c badBody) {
	t.Helper()
	require.Equal(t, status, r.status, string(r.body))
	f := r.failure(t)
	require.Equal(t, code, f.Error.Code)
	require.Equal(t, c.field, f.Error.Field)
	require.Contains(t, f.Error.Message, c.message)
	if c.field != "" {
		require.True(t, strings.HasPrefix(f.Error.Message, c.field+": "), f.Error.Message)
	}
}

func TestReleaseRefusesBodies(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, c := range []badBody{
		{"no message id", `{"user_ids":[1]}`, "message_id", "is required"},
		{"no users", `{"message_id":"m"}`, "user_ids", "exactly one of user_ids, users_bitmap and audience"},
		{"a field of filter", `{"message_id":"m","user_ids":[1],"waves":true}`, "waves", "no such field"},
		{"id null", `{"message_id":"m","user_ids":[null]}`, "user_ids[0]", "null is not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, s.with(t).post("/v1/release", c.body), http.StatusBadRequest, "invalid_request", c)
		})
	}
}

// rawBitmap returns a serialized bitmap with an array container, a run container and a bitset container.
func rawBitmap(t *testing.T) []byte {
	t.Helper()
	b := roaring.BitmapOf(1, 5, 9)
	b.AddRange(65536, 70000)
	for user := uint32(131072); user < 196608; user += 2 {
		b.Add(user)
	}
	b.RunOptimize()
	raw, err := b.ToBytes()
	require.NoError(t, err)
	return raw
}

func TestFilterRefusesBitmaps(t *testing.T) {
	t.Parallel()
	s := newService(t)
	raw := rawBitmap(t)
	changed := func(at int, to ...byte) string {
		b := bytes.Clone(raw)
		copy(b[at:], to)
		return base64.StdEncoding.EncodeToString(b)
	}
	unsorted := binary.LittleEndian.AppendUint32(nil, 12346)
	unsorted = append(unsorted, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 9, 0, 3, 0)
	text := base64.StdEncoding.EncodeToString(raw)
	cases := map[string]string{
		"not base64": "!!!!",
		"url alphabet": strings.NewReplacer("+", "-", "/",
			"_").Replace(base64.StdEncoding.EncodeToString([]byte{0xfb, 0xff, 0xfe})),
		"no padding":          strings.TrimRight(base64.StdEncoding.EncodeToString(append(bytes.Clone(raw), 0)), "="),
		"line ends":           text[:8] + `\n` + text[8:],
		"empty string":        "",
		"truncated":           base64.StdEncoding.EncodeToString(raw[:len(raw)-3]),
		"trailing bytes":      base64.StdEncoding.EncodeToString(append(bytes.Clone(raw), 0, 0, 0)),
		"wrong cookie":        changed(0, 0xff, 0xff),
		"too many containers": changed(2, 0xff, 0xff),
		"spare run flag":      changed(4, raw[4]|8),
		"array out of order":  base64.StdEncoding.EncodeToString(unsorted),
		"text":                base64.StdEncoding.EncodeToString([]byte("[1, 2, 3]")),
	}
	for name, bitmap := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.with(t).post("/v1/filter", `{"message_id":"m","users_bitmap":"`+bitmap+`"}`)
			requireRefused(t, r, http.StatusBadRequest, "invalid_request", badBody{field: "users_bitmap"})
		})
	}
	empty, err := roaring.New().ToBytes()
	require.NoError(t, err)
	r := s.post("/v1/filter", fields{"message_id": "m", "users_bitmap": empty})
	requireRefused(t, r, http.StatusBadRequest, "invalid_request", badBody{field: "users_bitmap", message: "empty"})
}

// TestFilterTakesManyRunsInLinearTime sends a body whose check by the library takes a minute.
func TestFilterTakesManyRunsInLinearTime(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const containers = 80
	raw := binary.LittleEndian.AppendUint32(nil, 12347|(containers-1)<<16)
	raw = append(raw, bytes.Repeat([]byte{0xff}, (containers+7)/8)...)
	for key := range containers {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(key))
		raw = binary.LittleEndian.AppendUint16(raw, 32767)
	}
	offset := len(raw) + 4*containers
	for range containers {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(offset))
		offset += 2 + 4*32768
	}
	for range containers {
		raw = binary.LittleEndian.AppendUint16(raw, 32768)
		for start := range 32768 {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(2*start))
		}
	}
	r := s.post("/v1/filter", fields{"message_id": "m", "users_bitmap": raw})
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large", badBody{field: "users_bitmap",
		message: "2621440 users"})
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *server.Config) {
		cfg.Bounds = gate.Bounds{JSONUsers: 10, BitmapUsers: 20, BodyBytes: 4096}
	})
	tooMany := s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 11)})
	requireRefused(t, tooMany, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "user_ids", message: "10 ids"})
	require.Equal(t, http.StatusOK, s.post("/v1/filter", fields{"message_id": "m", "user_ids": span(0, 10)}).status)
	tooMany = s.post("/v1/filter", fields{"message_id": "m", "users_bitmap": bitmapText(t, span(0, 21)...)})
	requireRefused(t, tooMany, http.StatusRequestEntityTooLarge, "too_large", badBody{field: "users_bitmap",
		message: "21 users: at most 20"})
	require.Equal(t, http.StatusOK,
		s.post("/v1/filter", fields{"message_id": "m", "users_bitmap": bitmapText(t, span(0, 20)...)}).status)

	padded := `{"message_id":"m","user_ids":[1]` + strings.Repeat(" ", 4096) + `}`
	declared := s.post("/v1/filter", padded)
	requireRefused(t, declared, http.StatusRequestEntityTooLarge, "too_large", badBody{message: "4096 bytes"})
	chunked := s.request(http.MethodPost, "/v1/filter", padded)
	chunked.ContentLength = -1
	requireRefused(t, s.do(chunked), http.StatusRequestEntityTooLarge, "too_large", badBody{message: "4096 bytes"})

	bomb := s.request(http.MethodPost, "/v1/filter", gzipped(t, `{"message_id":"m","user_ids":[1]`+
		strings.Repeat(" ", 1<<20)+`}`))
	bomb.Header.Set("Content-Encoding", "gzip")
	require.Less(t, bomb.ContentLength, int64(4096))
	requireRefused(t, s.do(bomb), http.StatusRequestEntityTooLarge, "too_large",
		badBody{message: "100 times as large as its compressed form"})
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const body = `{"message_id":"m","user_ids":[1]}`
	call := func(contentType, encoding, body string) reply {
		r := s.request(http.MethodPost, "/v1/filter", body)
		r.Header.Set("Content-Type", contentType)
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		return s.do(r)
	}
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
		"application/json; charset=latin1", ";"} {
		requireRefused(t, call(contentType, "", body), http.StatusUnsupportedMediaType, "unsupported_media_type",
			badBody{message: "application/json"})
	}
	for _, contentType := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON"} {
		require.Equal(t, http.StatusOK, call(contentType, "", body).status, contentType)
	}
	for _, encoding := range []string{"br", "deflate", "gzip, gzip", "zstd"} {
		requireRefused(t, call("application/json", encoding, body), http.StatusUnsupportedMediaType,
			"unsupported_media_type", badBody{message: "Content-Encoding"})
	}
	for _, encoding := range []string{"gzip", "GZIP", "GZip"} {
		require.Equal(t, http.StatusOK, call("application/json", encoding, gzipped(t, body)).status, encoding)
	}
	for _, encoding := range []string{"identity", "Identity"} {
		require.Equal(t, http.StatusOK, call("application/json", encoding, body).status, encoding)
	}
	requireRefused(t, call("application/json", "gzip", body), http.StatusBadRequest, "invalid_request",
		badBody{message: "gzip"})
	cut := gzipped(t, body)
	requireRefused(t, call("application/json", "gzip", cut[:len(cut)-6]), http.StatusBadRequest, "invalid_request",
		badBody{message: "the gzip body ends early"})
}

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for path, status := range map[string]int{
		"/": 404, "/v1": 404, "/v1/filters": 404, "/v1/users/": 404, "/v1/users": 404, "/v1/filter": 405,
		"/v1/status?x=1": 400, "/v1/users/-1": 400, "/v1/users/01": 400, "/v1/users/4294967296": 400,
		"/v1/users/1.0": 400, "/v1/users/abc": 400, "/v1/users/1/x": 404, "/debug/pprof/": 404,
	} {
		r := s.get(path)
		require.Equal(t, status, r.status, "%s: %s", path, r.body)
		require.NotEmpty(t, r.failure(t).Error.Message)
	}
	unnamed := s.get("/v1/decisions")
	require.Equal(t, "message_id: is required (1 to 128 bytes)", unnamed.failure(t).Error.Message)
	wrong := s.call(http.MethodPut, "/v1/filter", `{}`)
	require.Equal(t, http.StatusMethodNotAllowed, wrong.status)
	require.Equal(t, "method_not_allowed", wrong.failure(t).Error.Code)
	require.Contains(t, wrong.header.Get("Allow"), http.MethodPost)
}
