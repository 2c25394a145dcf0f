package client

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"capper/client/api"
)

// answers are answers to filter calls: as services write them, with other keys, spaces or escapes, and with faults.
var answers = []string{
	`{"allowed":[1,20,4294967295],"replayed":[1],"denied":[{"user_id":7,"segment":"vip","limit":"daily","max":2,` +
		`"timezone":"Asia/Tokyo","retry_at":"2026-11-29T00:48:57.006Z"},{"user_id":8,"segment":"vip",` +
		`"limit":"suppressed","set":"opted-out","max":0,"retry_at":null}],"unavailable":[],"waves":[{"from":` +
		`"2026-11-29T00:00:00Z","ready_at":"2026-11-29T00:48:57.006Z","user_ids":[7]}],"summary":{"requested":5,` +
		`"allowed":3,"denied":{"daily":1,"suppressed":1},"unavailable":0,"duplicates":0,"replayed":1,"segments":` +
		`{"vip":{"requested":2,"allowed":0}}},"generation":"20261128T004955.097Z-704173d0","config_version":"687b"}`,
	`{"allowed":["86b46588-27a8-4bfd-a7f5-f869667d21a3","a@x.com","é","\u00e9","a\"b"],"replayed":[],"denied":[{` +
		`"user_id":"b","segment":"default","limit":"weekly","max":3,"retry_at":"2026-11-29T00:48:57.006+09:00"}],` +
		`"unavailable":["z"],"summary":{"requested":7},"generation":"g, [\"{","config_version":"c"}` + "\n",
	`{"allowed":[],"replayed":[],"unavailable":[],"summary":{}}`,
	`{"allowed":null,"denied":null}`, `{}`, ` { "allowed" : [ 1 ] } `, `{"allowed":[1],"allowed":[2,3]}`,
	`{"Allowed":[1],"allowed":[2]}`, `{"new":{"a":[1,{"b":"]"}]},"allowed":[1],"more":[]}`,
	`{"denied":[{"USER_ID":1,"max":2}]}`, `{"denied":[{"user_id":1,"new":[1]}]}`, `{"denied":[{}]}`,
	`{"allowed":[4294967296]}`, `{"allowed":[01]}`, `{"allowed":[-1]}`, `{"allowed":[1.0]}`, `{"allowed":[1e2]}`,
	`{"allowed":["a",1]}`, "{\"allowed\":[\"\xff\"]}", "{\"allowed\":[\"\x01\"]}", `{"allowed":[1,]}`, `{"allowed":[1]`,
	`{"allowed":[1]}x`, "\v{}", `{"allowed":[1],}`, `{,"allowed":[1]}`, `{"a":}`, `{"a":]}`, `{"a"}`, `[]`, `null`, ``, `"`,
	`{"denied":[{"user_id":1,"max":9999999999999999999,"retry_at":"soon"}]}`, `{"denied":[{"retry_at":12}]}`,
	`{"denied":[{"user_id":1,"segment":"a","segment":"b","retry_at":"2026-11-29T00:48:57Z","retry_at":null}]}`,
}

// The client decodes what encoding/json decodes, and reports what encoding/json reports.
func FuzzAnswersOfFilterCalls(f *testing.F) {
	for _, answer := range answers {
		f.Add([]byte(answer))
		for n := 1; n < len(answer); n += max(1, len(answer)/20) {
			f.Add([]byte(answer[:n]))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids, strings := new(filteredIDs), new(filteredStrings)
		same(t, text, ids, &ids.FilterIDs, new(api.FilterIDs))
		same(t, text, strings, &strings.FilterStrings, new(api.FilterStrings))
	})
}

// same compares an answer that decodes itself with one that encoding/json decodes.
func same(t *testing.T, text []byte, own json.Unmarshaler, got, want any) {
	t.Helper()
	gotErr, wantErr := decode(text, own), json.Unmarshal(text, want)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, but %v by encoding/json", text, gotErr, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %+v, but %+v by encoding/json", text, got, want)
	}
}

// Answers of services are read directly, and not by encoding/json.
func TestAnswersOfServicesAreReadDirectly(t *testing.T) {
	var ids lists[uint32, api.Denial]
	if _, ok := ids.read([]byte(answers[0]), (*cursor).id, (*cursor).denial); !ok || len(ids.denied) != 2 {
		t.Errorf("%d denials were read of 2: %s", len(ids.denied), answers[0])
	}
	var texts lists[string, api.DenialOfID]
	plain := strings.ReplaceAll(answers[1], `,"\u00e9","a\"b"`, "")
	if _, ok := texts.read([]byte(plain), (*cursor).text, (*cursor).denialOfID); !ok || len(texts.denied) != 1 {
		t.Errorf("%d denials were read of 1: %s", len(texts.denied), plain)
	}
}

func BenchmarkAnswerOfAFilterCall(b *testing.B) {
	var denials []string
	for i := range 10_000 {
		denials = append(denials, fmt.Sprintf(`{"user_id":"86b46588-27a8-4bfd-a7f5-f8696%07x","segment":"active",`+
			`"limit":"daily","max":2,"retry_at":"2026-11-29T00:48:57.006Z"}`, i))
	}
	answer := []byte(`{"allowed":[],"replayed":[],"denied":[` + strings.Join(denials, ",") + `],"unavailable":[],` +
		`"summary":{"requested":10000,"denied":{"daily":10000}},"generation":"g","config_version":"c"}`)
	read := func(b *testing.B, unmarshal func() error) {
		b.SetBytes(int64(len(answer)))
		for b.Loop() {
			if err := unmarshal(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("here", func(b *testing.B) { read(b, func() error { return decode(answer, new(filteredStrings)) }) })
	b.Run("encoding/json", func(b *testing.B) {
		read(b, func() error { return json.Unmarshal(answer, new(api.FilterStrings)) })
	})
}
