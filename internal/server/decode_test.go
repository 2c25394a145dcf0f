package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

func boundless(int64) error { return nil }

var testBounds = Bounds{JSONUsers: 50, BitmapUsers: 5000}.withDefaults()

// seeds are bodies to start fuzzing from.
var seeds = []string{
	`{"message_id":"m","user_ids":[1,2,3]}`,
	`{"message_id":"\u00e9\ud83d\ude00","channel":"push","user_ids":[ 4294967295 , 0 ],"enforce":false}`,
	`{"record":false,"detail":"counts","waves":true,"at":"2030-01-01T00:00:00Z","user_ids":[7]}`,
	`{"message_id":"m","users_bitmap":"OjAAAAEAAAAAAAIAEAAAAAcAKgBjAA=="}`,
	`{"message_id":"m","user_ids":[1,null,-1,1.5,1e3,"x",4294967296,01]}`,
	`{"message_id":"m","message_id":"n"}`, `{"user_ids":[1]}{}`, `{"user_ids":[[]]}`, "{\"message_id\":\"\xff\"}", `{`, ``,
}

// FuzzDecodeFilter compares the decoder with one made of encoding/json's
// tokens: both accept the same bodies, and read the same from them.
func FuzzDecodeFilter(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		got, err := decodeFilter(body, testBounds, boundless)
		require.Equal(t, given, body, "the body was changed")
		want, valid := slowDecode(body)
		if err != nil {
			require.ErrorAs(t, err, new(*failure))
			if want != nil && valid {
				t.Fatalf("refused %q: %v", body, err)
			}
			return
		}
		require.True(t, valid, "accepted %q", body)
		require.Equal(t, want, got)
	})
}

// slowDecode is a second opinion, for bodies without bitmaps; those are
// compared only as far as they are strings. valid: the body is accepted.
func slowDecode(body []byte) (r *filterRequest, valid bool) {
	if !utf8.Valid(body) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	members, err := slowObject(decoder)
	if err != nil || hasLoneSurrogate(body) {
		return nil, false
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, false
	}
	r = &filterRequest{enforce: true, record: true}
	for name, value := range members {
		if !r.set(name, value) {
			return nil, false
		}
	}
	_, bitmap := members["users_bitmap"]
	_, ids := members["user_ids"]
	_, at := members["at"]
	if bitmap {
		got, err := decodeFilter(body, testBounds, boundless) // trusted for what is in the bitmap
		if err != nil || ids {
			return nil, false
		}
		r.audience = got.audience
	}
	ok := bitmap != ids && (r.messageID != "" || !r.record) && (r.record || r.enforce) && !(at && r.record)
	return r, ok
}

// set takes one member of a body.
func (r *filterRequest) set(name string, value any) (ok bool) {
	switch name {
	case "message_id":
		r.messageID, ok = value.(string)
		return ok && r.messageID != "" && len(r.messageID) <= 128
	case "channel":
		r.channel, ok = value.(string)
		return ok && r.channel != ""
	case "at":
		r.at, ok = value.(string)
		return ok && r.at != ""
	case "detail":
		r.counts = value == "counts"
		return r.counts || value == "denials"
	case "enforce":
		r.enforce, ok = value.(bool)
	case "record":
		r.record, ok = value.(bool)
	case "waves":
		r.waves, ok = value.(bool)
	case "users_bitmap":
		_, ok = value.(string)
	case "user_ids":
		return r.setIDs(value)
	}
	return ok
}

func (r *filterRequest) setIDs(value any) bool {
	list, ok := value.([]any)
	if !ok || len(list) == 0 || len(list) > testBounds.JSONUsers {
		return false
	}
	r.users = []capping.UserID{}
	for _, item := range list {
		number, ok := item.(json.Number)
		id, err := strconv.ParseUint(number.String(), 10, 64)
		if !ok || err != nil || id > math.MaxUint32 || number.String() != strconv.FormatUint(id, 10) {
			return false
		}
		if slices.Contains(r.users, uint32(id)) {
			r.duplicates++
			continue
		}
		r.users = append(r.users, uint32(id))
	}
	return true
}

// slowObject reads an object whose names are all different.
func slowObject(decoder *json.Decoder) (map[string]any, error) {
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("%v: %w", open, err)
	}
	members := map[string]any{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		if _, repeated := members[name.(string)]; repeated {
			return nil, fmt.Errorf("%v twice", name)
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		members[name.(string)] = value
	}
	_, err := decoder.Token()
	return members, err
}

// hasLoneSurrogate reports escapes that encoding/json turns into U+FFFD.
func hasLoneSurrogate(body []byte) bool {
	var whole any
	if json.Unmarshal(body, &whole) != nil {
		return false
	}
	plain, err := json.Marshal(whole)
	return err == nil && bytes.Count(plain, []byte("\ufffd")) > bytes.Count(body, []byte("\ufffd"))+bytes.Count(bytes.ToLower(body), []byte(`\ufffd`))
}

// FuzzBitmapUsers checks that what is read from a bitmap is written as the same
// set.
func FuzzBitmapUsers(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte("OjAAAAEAAAAAAAIAEAAAAAcAKgBjAA=="))
	f.Add([]byte("OzAAAAEAAA8AAQAAAA8A"))
	f.Fuzz(func(t *testing.T, text []byte) {
		users, err := bitmapUsers("users_bitmap", text, 100_000, boundless)
		if err != nil || len(users) == 0 {
			return
		}
		require.True(t, ascending(users))
		written, _ := appendBase64Bitmap(nil, nil, users)
		again, err := bitmapUsers("users_bitmap", written[1:len(written)-1], 100_000, boundless)
		require.NoError(t, err)
		require.Equal(t, users, again)
	})
}

func BenchmarkDecodeFilter(b *testing.B) {
	body := []byte(`{"message_id":"m","user_ids":[`)
	for i := range 100_000 {
		body = append(strconv.AppendUint(body, uint64(uint32(i)*2654435769>>4), 10), ',')
	}
	body = append(body[:len(body)-1], "]}"...)
	bounds := Bounds{}.withDefaults()
	b.ReportAllocs()
	for b.Loop() {
		_, err := decodeFilter(body, bounds, boundless)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/user")
}
