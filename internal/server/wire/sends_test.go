package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
)

// FuzzDecodeImport compares the decoder with another one based on the tokens of encoding/json: both must accept the
// same bodies with the same content.
func FuzzDecodeImport(f *testing.F) {
	for _, seed := range []string{
		`{"sends":[{"user_id":1,"at":"2026-11-20T09:00:00.5Z"}]}`,
		`{"sends":[{"user_id":4294967295,"at":"2026-11-20T09:00:00+08:00","channel":"push","message_id":"\u00e9"}],"message_id":"m","channel":"sms"}`,
		`{"channel":"push","sends":[{"at":"1999-01-01T00:00:00Z","user_id":0}, { "user_id" : 2 ,"at":"2026-11-20T09:00:00.123456789-00:30"}]}`,
		`{"sends":[{"user_id":1,"user_id":2,"at":"2026-11-20T09:00:00Z"}]}`, `{"sends":[{}]}`, `{"sends":[1]}`,
		`{"sends":[{"user_id":"7","at":"2026-11-20T09:00:00Z"},{"at":"2026-11-20T09:00:00Z","user_id":"\u0038"}]}`,
		`{"sends":[{"user_id":"007","at":"2026-11-20T09:00:00Z"}]}`, `{"sends":[{"user_id":"","at":""}]}`,
		`{"sends":[null]}`, `{"sends":[{"at":"2026-11-20T9:00:00Z"}]}`,
		`{"sends":[{"user_id":1,"at":"2026-11-20T09:00:00Z","channel":null}]}`, `{"sends":[]}`, `{"sends":`, ``,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	latest := now.Add(time.Second)
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		got, err := DecodeImport(body, testBounds, now, latest)
		require.Equal(t, given, body, "the body was changed")
		want, valid := slowImport(body, now, latest)
		if err != nil {
			require.ErrorAs(t, err, new(*Failure))
			require.False(t, valid, "refused %q: %v", body, err)
			return
		}
		require.True(t, valid, "accepted %q", body)
		require.Len(t, got.Sends, len(want))
		strings := false
		for i, send := range got.Sends {
			strings, want[i].quoted = strings || want[i].quoted, false
			require.Equal(t, want[i], slowSend{send.User, send.At, got.Channels[send.Channel],
				got.Messages[send.Message], false})
		}
		require.Equal(t, strings, got.Given != nil)
	})
}

// slowSend is a send with its names.
type slowSend struct {
	user             capping.UserID
	at               capping.Instant
	channel, message string
	quoted           bool // the id is a string
}

// slowImport is the reference decoder.
func slowImport(body []byte, now, latest time.Time) (sends []slowSend, valid bool) {
	if !utf8.Valid(body) || hasLoneSurrogate(body) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	top := map[string]json.RawMessage{}
	if !slowMembers(decoder, top) {
		return nil, false
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, false
	}
	var message, channel string
	var list []json.RawMessage
	for name, value := range top {
		ok := false
		switch name {
		case "message_id":
			ok = slowName(value, 128, &message)
		case "channel":
			ok = slowName(value, math.MaxInt, &channel)
		case "sends":
			ok = value[0] == '[' && json.Unmarshal(value, &list) == nil
		}
		if !ok {
			return nil, false
		}
	}
	for _, one := range list {
		send, ok := slowOne(one, message, channel, now, latest)
		if !ok {
			return nil, false
		}
		sends = append(sends, send)
	}
	return sends, len(sends) > 0 && len(sends) <= testBounds.IDs
}

func slowOne(one json.RawMessage, message, channel string, now, latest time.Time) (slowSend, bool) {
	send := slowSend{channel: channel, message: message}
	members := map[string]json.RawMessage{}
	if !slowMembers(json.NewDecoder(bytes.NewReader(one)), members) || members["user_id"] == nil ||
		members["at"] == nil {
		return send, false
	}
	for name, value := range members {
		ok := false
		switch name {
		case "message_id":
			ok = slowName(value, 128, &send.message)
		case "channel":
			ok = slowName(value, math.MaxInt, &send.channel)
		case "user_id":
			text := string(value)
			if send.quoted = value[0] == '"'; send.quoted && json.Unmarshal(value, &text) != nil {
				return send, false
			}
			id, err := strconv.ParseUint(text, 10, 32)
			send.user, ok = capping.UserID(uint32(id)), err == nil && text == strconv.FormatUint(id, 10)
		case "at":
			text := ""
			if ok = slowName(value, math.MaxInt, &text) && rfc3339.MatchString(text); ok {
				at, err := time.Parse(time.RFC3339, text)
				ok = err == nil && capping.InstantOf(at) <= capping.InstantOf(latest)
				send.at = capping.InstantOf(at)
			}
		}
		if !ok {
			return send, false
		}
	}
	ahead := send.at > capping.InstantOf(now)
	if ahead {
		send.at = capping.InstantOf(now)
	}
	return send, !ahead || send.message != "" // the time distinguishes it from other sends
}

func slowName(value json.RawMessage, most int, to *string) bool {
	return value[0] == '"' && json.Unmarshal(value, to) == nil && *to != "" && len(*to) <= most
}

// slowMembers decodes an object whose names must all be different.
func slowMembers(decoder *json.Decoder, members map[string]json.RawMessage) bool {
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil || members[name.(string)] != nil {
			return false
		}
		members[name.(string)] = value
	}
	_, err := decoder.Token()
	return err == nil
}

func BenchmarkDecodeImport(b *testing.B) {
	body := []byte(`{"message_id":"m","channel":"push","sends":[`)
	for i := range 50_000 {
		body = append(strconv.AppendUint(append(body, `{"user_id":`...), uint64(uint32(i)*2654435769), 10),
			`,"at":"2026-11-20T09:00:00.123Z"},`...)
	}
	body = append(body[:len(body)-1], "]}"...)
	bounds := Bounds{IDs: 100_000, Reserve: boundless}
	b.ReportAllocs()
	for b.Loop() {
		_, err := DecodeImport(body, bounds, time.Now(), time.Now())
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/send")
}

// TestASendThatIsAheadNeedsAMessage checks that a send with a future time needs a message id. It counts as now, so
// each retry would otherwise be another send.
func TestASendThatIsAheadNeedsAMessage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	read := func(body string) (*ImportRequest, error) {
		return DecodeImport([]byte(body), testBounds, now, now.Add(time.Second))
	}
	_, err := read(`{"sends": [{"user_id": 1, "at": "2026-11-22T12:00:00Z"}, {"user_id": 1, "at": "2026-11-22T12:00:00.950Z"}]}`)
	require.ErrorContains(t, err, "sends[1].at")
	require.ErrorContains(t, err, "a send without a message_id is identified by its time")
	for _, body := range []string{
		`{"message_id": "a", "sends": [{"user_id": 1, "at": "2026-11-22T12:00:00.950Z"}]}`,
		`{"sends": [{"user_id": 1, "at": "2026-11-22T12:00:00.950Z", "message_id": "a"}]}`,
	} {
		got, err := read(body)
		require.NoError(t, err)
		require.Equal(t, capping.InstantOf(now), got.Sends[0].At)
	}
}

// TestImportsTakeIDsOfEveryKind checks that an import keeps the images of the users, and names unavailable users as the
// request does, each id once.
func TestImportsTakeIDsOfEveryKind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const ann = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"
	for _, c := range []struct {
		kind      ids.Kind
		given     string // JSON of three ids; the first one and the last one are one user
		first     string // text of the first id
		all, some string // answers about both users, and about the first one
	}{
		{ids.Dense, `7 8 7`, "7", `[7,8]`, `[7]`},
		{ids.Dense, `7 "8" 7`, "7", `["7","8"]`, `["7"]`},
		{ids.Uint64, `7 9007199254740992 7`, "7", `[7,9007199254740992]`, `[7]`},
		{ids.Uint64, `"7" 18446744073709551615 "7"`, "7", `["7","18446744073709551615"]`, `["7"]`},
		{ids.UUID, `"018F3C4E7A1B7C3D9E5F0123456789AB" "00000000-0000-0000-0000-000000000000" "{` + ann + `}"`, ann,
			`["` + ann + `","00000000-0000-0000-0000-000000000000"]`, `["` + ann + `"]`},
		{ids.Text, `"\u0061@x" "A\"@x" "a@x"`, "a@x", `["a@x","A\"@x"]`, `["a@x"]`},
	} {
		bounds := testBounds
		scheme := ids.New(c.kind, ids.Key{1})
		if c.kind != ids.Dense {
			bounds.Scheme = scheme
		}
		given := strings.Fields(c.given)
		body := ""
		for _, id := range given {
			body += `,{"at":"2026-11-20T09:00:00Z","user_id":` + id + `}`
		}
		r, err := DecodeImport([]byte(`{"sends":[`+body[1:]+`]}`), bounds, now, now)
		require.NoError(t, err, c.given)
		image, err := scheme.Parse([]byte(c.first))
		require.NoError(t, err)
		require.Equal(t, capping.UserID(image), r.Sends[0].User, c.given)
		require.Equal(t, r.Sends[0].User, r.Sends[2].User, c.given)
		users := []capping.UserID{r.Sends[0].User, r.Sends[1].User}
		slices.Sort(users)
		for want, unavailable := range map[string][]capping.UserID{`[]`: {}, c.all: users, c.some: {r.Sends[0].User}} {
			answer, err := json.Marshal(r.Answer(unavailable, api.ImportSummary{Requested: 3}))
			require.NoError(t, err)
			require.JSONEq(t, `{"unavailable":`+want+
				`,"summary":{"requested":3,"added":0,"known":0,"expired":0,"unavailable":0}}`, string(answer))
		}
	}
}

// TestImportsRefuseOtherIDs checks that the failure of an import names the send, the id and the rule.
func TestImportsRefuseOtherIDs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for kind, refused := range map[ids.Kind]map[string]string{
		ids.Uint64: {`"007"`: `"007" begins with 0`, `18446744073709551616`: "is above 18446744073709551615",
			`-1`: "-1 is not a uint64 id", `1.5`: "1.5 is not a uint64 id", `null`: "null is not a uint64 id",
			`""`: "is empty"},
		ids.UUID: {`7`: "7 is not a string: ids of the kind uuid are strings", `"7"`: `"7" has 1 hexadecimal digit`,
			`["018f3c4e-7a1b-7c3d-9e5f-0123456789ab"]`: "an array is not a string"},
		ids.Text: {`7`: "7 is not a string: ids of the kind text are strings", `""`: "is empty",
			`"a\u0000"`: "has the control character U+0000", `"\ud800"`: "the escape at byte"},
	} {
		bounds := testBounds
		bounds.Scheme = ids.New(kind, ids.Key{1})
		good := map[ids.Kind]string{ids.Uint64: `"7"`, ids.UUID: `"018f3c4e-7a1b-7c3d-9e5f-0123456789ab"`,
			ids.Text: `"a"`}[kind]
		for id, want := range refused {
			_, err := DecodeImport([]byte(`{"sends":[{"at":"2026-11-20T09:00:00Z","user_id":`+good+
				`},{"at":"2026-11-20T09:00:00Z","user_id":`+id+`}]}`), bounds, now, now)
			require.ErrorContains(t, err, want)
			require.Equal(t, "sends[1].user_id", FailureOf(err).Field, id)
		}
	}
}
