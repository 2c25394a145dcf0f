package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
)

// FuzzDecodePermits compares the decoder with another one based on the tokens of encoding/json: both must accept the
// same bodies with the same content.
func FuzzDecodePermits(f *testing.F) {
	for _, seed := range append([]string{
		`{"pacers":["carrier","campaign"],"permits":500,"max_wait":"2s","request_id":"w3-1182","message_id":"promo-7"}`,
		`{"pacers":["a"],"permits":0}`, `{"pacers":["a"],"permits":1,"share":"otp"}`, `{"pacers":[],"permits":1}`,
		`{"pacers":["a","a"],"permits":100000,"max_wait":"24h0m0s"}`,
		`{"permits":-1,"pacers":["a b"],"max_wait":"-1s"}`, `{"pacers":["\u0061"],"permits":1e3}`,
		`{"pacers":["a"],"permits":100001,"max_wait":"25h"}`,
		`{"pacers":["a","b","c","d","e","f","g","h","i"],"permits":1}`, `{"pacers":["a",],"permits":01}`,
		`{"pacers":[["a"]],"permits":1}`,
		`{"pacers":["a"],"permits":1,"max_wait":"1.5us","max_wait":"0"}`,
		`{"pacers":null,"permits":null,"request_id":""}`,
	}, seeds...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		got, err := DecodePermits(body)
		require.Equal(t, given, body, "the body was changed")
		want, valid := slowPermits(body)
		if err != nil {
			require.ErrorAs(t, err, new(*Failure))
			require.False(t, valid, "refused %q: %v", body, err)
			return
		}
		require.True(t, valid, "accepted %q", body)
		require.Equal(t, want, got)
	})
}

// slowPermits is the reference decoder. The result valid reports whether the body is accepted.
func slowPermits(body []byte) (r *PermitsRequest, valid bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	members, err := slowObject(decoder)
	if err != nil || !utf8.Valid(body) || hasLoneSurrogate(body) {
		return nil, false
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, false
	}
	r = &PermitsRequest{}
	for name, value := range members {
		if !r.set(name, value) {
			return nil, false
		}
	}
	_, pacers := members["pacers"]
	_, permits := members["permits"]
	return r, pacers && permits
}

// set decodes one member of a body.
func (r *PermitsRequest) set(name string, value any) (ok bool) {
	text, isText := value.(string)
	switch name {
	case "pacers":
		return r.setPacers(value)
	case "permits":
		number, ok := value.(json.Number)
		n, err := strconv.Atoi(number.String())
		r.Permits = n
		return ok && err == nil && n >= 0 && n <= api.MaxPermits && number.String() == strconv.Itoa(n)
	case "max_wait":
		wait, err := time.ParseDuration(text)
		r.MaxWait = wait
		return isText && err == nil && wait >= 0 && wait <= api.MaxWait
	case "request_id":
		r.RequestID = text
	case "message_id":
		r.MessageID = text
	case "key":
		r.Key = text
	case "share":
		r.Share = text
		return isText && capping.IsName(text)
	default:
		return false
	}
	return isText && text != "" && len(text) <= 128
}

func (r *PermitsRequest) setPacers(value any) bool {
	list, ok := value.([]any)
	for _, item := range list {
		name, ok := item.(string)
		if !ok || !capping.IsName(name) {
			return false
		}
		r.Pacers = append(r.Pacers, name)
	}
	return ok && len(list) > 0 && len(list) <= api.MaxPacers
}

func BenchmarkDecodePermits(b *testing.B) {
	body := []byte(`{"pacers":["carrier","campaign"],"permits":100,"max_wait":"2s","request_id":"w3-1182","message_id":"promo-7"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodePermits(body); err != nil {
			b.Fatal(err)
		}
	}
}
