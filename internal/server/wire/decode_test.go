package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
)

func boundless(int64) error { return nil }

var testBounds = Bounds{IDs: 50, Bitmap: 5000, Reserve: boundless}

// seeds are the initial bodies for fuzzing.
var seeds = []string{
	`{"message_id":"m","user_ids":[1,2,3]}`,
	`{"message_id":"\u00e9\ud83d\ude00","channel":"push","user_ids":[ 4294967295 , 0 ],"enforce":false}`,
	`{"record":false,"detail":"counts","waves":true,"at":"2030-01-01T00:00:00Z","user_ids":[7]}`,
	`{"message_id":"m","users_bitmap":"OjAAAAEAAAAAAAIAEAAAAAcAKgBjAA=="}`,
	`{"message_id":"m","user_ids":["7",42,"\u0037","7",0]}`, `{"message_id":"m","user_ids":[1,"4294967296"]}`,
	`{"message_id":"m","user_ids":[1,null,-1,1.5,1e3,"x",4294967296,01]}`,
	`{"message_id":"m","audience":"active - vip","sample":{"percent":10.5,"salt":"a"},"part":{"of":12,"index":3},"generation":"g"}`,
	`{"record":false,"audience":"all","max_users":500,"cursor":"AVOr48Bg"}`,
	`{"message_id":"m","audience":"a","sample":{"percent":1e1,"percent":2,"salt":""}}`,
	`{"message_id":"m","audience":"a","sample":{"from":10,"to":20.5,"salt":"a"}}`,
	`{"message_id":"m","audience":"a","sample":{"to":1,"percent":2,"salt":"a"}}`,
	`{"message_id":"m","audience":"a","part":{"of":1,"index":1}}`, `{"message_id":"m","audience":"a","user_ids":[1]}`,
	`{"message_id":"m","cursor":"x","user_ids":[1]}`,
	`{"message_id":"m","message_id":"n"}`, `{"user_ids":[1]}{}`, `{"user_ids":[[]]}`, "{\"message_id\":\"\xff\"}", `{`,
	``,
}

// FuzzDecodeFilter compares the decoder with another one based on the tokens of encoding/json: both must accept the
// same bodies with the same content.
func FuzzDecodeFilter(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		got, err := DecodeFilter(body, testBounds)
		require.Equal(t, given, body, "the body was changed")
		want, valid := slowDecode(body)
		if err != nil {
			require.ErrorAs(t, err, new(*Failure))
			if want != nil && valid {
				t.Fatalf("refused %q: %v", body, err)
			}
			return
		}
		require.True(t, valid, "accepted %q", body)
		require.Equal(t, want, got)
	})
}

// slowDecode is the reference decoder for bodies without bitmaps. Bitmaps are compared only as strings. The result
// valid reports whether the body is accepted.
func slowDecode(body []byte) (r *FilterRequest, valid bool) {
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
	r = &FilterRequest{Enforce: true, Record: true}
	_, asked := members["audience"]
	if asked {
		r.Form, r.Query = InBitmaps, &api.AudienceQuery{}
	}
	for name, value := range members {
		if !r.set(name, value) {
			return nil, false
		}
	}
	_, bitmap := members["users_bitmap"]
	_, ids := members["user_ids"]
	_, at := members["at"]
	_, sample := members["sample"]
	_, part := members["part"]
	if sample || part {
		if _, err := DecodeFilter(body, testBounds); err != nil { // trusted for names that are given twice within these
			return nil, false
		}
	}
	if bitmap {
		got, err := DecodeFilter(body, testBounds) // trusted for what is in the bitmap
		if err != nil || ids || asked {
			return nil, false
		}
		r.Audience = got.Audience
	}
	ok := (bitmap != ids) != asked && !(asked && ids) && (r.MessageID != "" || !r.Record) && (r.Record || r.Enforce) &&
		!(at && r.Record)
	return r, ok
}

// set decodes one member of a body.
func (r *FilterRequest) set(name string, value any) (ok bool) {
	switch name {
	case "message_id":
		r.MessageID, ok = value.(string)
		return ok && r.MessageID != "" && len(r.MessageID) <= 128
	case "channel":
		r.Channel, ok = value.(string)
		return ok && r.Channel != ""
	case "at":
		r.At, ok = value.(string)
		return ok && r.At != ""
	case "detail":
		r.Counts = value == "counts"
		return r.Counts || value == "denials"
	case "enforce":
		r.Enforce, ok = value.(bool)
	case "record":
		r.Record, ok = value.(bool)
	case "waves":
		r.Waves, ok = value.(bool)
	case "users_bitmap":
		_, ok = value.(string)
	case "user_ids":
		return r.setIDs(value)
	default:
		return r.Query != nil && r.setQuery(name, value)
	}
	return ok
}

// setSample decodes a percentage or a range of the scale.
func (r *FilterRequest) setSample(inner map[string]any) bool {
	read := func(name string, to *float64) (given, ok bool) {
		value, given := inner[name]
		number, ok := value.(json.Number)
		n, err := number.Float64()
		*to = n
		return given, !given || ok && err == nil && n >= 0 && n <= 100
	}
	s := &api.Sample{}
	r.Query.Sample = s
	s.Salt, _ = inner["salt"].(string)
	percent, ok1 := read("percent", &s.Percent)
	from, ok2 := read("from", &s.From)
	to, ok3 := read("to", &s.To)
	members := 1
	for _, given := range []bool{percent, from, to} {
		if given {
			members++
		}
	}
	if len(inner) != members || !ok1 || !ok2 || !ok3 || s.Salt == "" || len(s.Salt) > 128 {
		return false
	}
	if percent {
		return !from && !to && s.Percent > 0
	}
	return to && s.From < s.To
}

// setQuery decodes one member of a body that selects users by an expression.
func (r *FilterRequest) setQuery(name string, value any) bool {
	q := r.Query
	text, isText := value.(string)
	inner, _ := value.(map[string]any)
	whole := func(value any, least, most int, to *int) bool {
		number, ok := value.(json.Number)
		n, err := strconv.Atoi(number.String())
		*to = n
		return ok && err == nil && number.String() == strconv.Itoa(n) && n >= least && n <= most
	}
	switch name {
	case "audience":
		q.Audience = text
		return text != ""
	case "cursor":
		q.Cursor = text
	case "generation":
		q.Generation = text
	case "max_users":
		return whole(value, 1, testBounds.Bitmap, &q.MaxUsers)
	case "sample":
		return r.setSample(inner)
	case "part":
		q.Part = &api.Part{}
		return len(inner) == 2 && whole(inner["of"], 1, 10_000, &q.Part.Of) && whole(inner["index"], 0, q.Part.Of-1,
			&q.Part.Index)
	default:
		return false
	}
	return isText && text != "" && len(text) <= 1024
}

func (r *FilterRequest) setIDs(value any) bool {
	list, ok := value.([]any)
	if !ok || len(list) == 0 || len(list) > testBounds.IDs {
		return false
	}
	r.Users = []capping.UserID{}
	for _, item := range list {
		number, ok := item.(json.Number)
		if text, quoted := item.(string); quoted {
			number, ok = json.Number(text), true
			r.Given = &Given{scheme: new(ids.Scheme), quoted: true}
		}
		id, err := strconv.ParseUint(number.String(), 10, 64)
		if !ok || err != nil || id > math.MaxUint32 || number.String() != strconv.FormatUint(id, 10) {
			return false
		}
		if slices.Contains(r.Users, capping.UserID(id)) {
			r.Duplicates++
			continue
		}
		r.Users = append(r.Users, capping.UserID(id))
	}
	return true
}

// slowObject decodes an object whose names must all be different.
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

// hasLoneSurrogate reports whether the body has escapes that encoding/json turns into U+FFFD.
func hasLoneSurrogate(body []byte) bool {
	var whole any
	if json.Unmarshal(body, &whole) != nil {
		return false
	}
	plain, err := json.Marshal(whole)
	return err == nil && bytes.Count(plain, []byte("\ufffd")) > bytes.Count(body, []byte("\ufffd"))+
		bytes.Count(bytes.ToLower(body), []byte(`\ufffd`))
}

// FuzzBitmapUsers checks that encoding the decoded users gives the same set.
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
		raw, err := roaring.BitmapOf(capping.AppendDense(nil, users)...).ToBytes()
		require.NoError(t, err)
		again, err := bitmapUsers("users_bitmap", base64.StdEncoding.AppendEncode(nil, raw), 100_000, boundless)
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
	bounds := Bounds{IDs: 100_000, Bitmap: 1_000_000, Reserve: boundless}
	b.ReportAllocs()
	for b.Loop() {
		_, err := DecodeFilter(body, bounds)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/user")
}
