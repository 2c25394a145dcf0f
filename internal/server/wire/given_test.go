package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
)

// testScheme returns the scheme of a kind with a fixed key.
func testScheme(kind ids.Kind) *ids.Scheme { return ids.New(kind, ids.Key{1, 2, 3}) }

// givenBounds are testBounds for the ids of a scheme.
func givenBounds(scheme *ids.Scheme) Bounds {
	bounds := Bounds{IDs: 1_000_000, Bitmap: 1_000_000, Reserve: boundless}
	if scheme.Kind() != ids.Dense {
		bounds.Scheme = scheme
	}
	return bounds
}

// id returns the canonical text of an id of a kind. Different numbers are different ids.
func id(kind ids.Kind, n uint64) string {
	switch kind {
	case ids.UUID:
		var packed [16]byte
		binary.BigEndian.PutUint64(packed[:], n*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(packed[8:], n)
		return string(testScheme(kind).Unpack(nil, packed[:]))
	case ids.Text:
		return fmt.Sprintf("é%d\"\\<%s", n, strings.Repeat("x", int(n%9)))
	}
	return fmt.Sprint(n)
}

// TestGivenIDsComeBack checks order, repeats, images and names of requests of every kind against a naive decoder.
func TestGivenIDsComeBack(t *testing.T) {
	t.Parallel()
	for _, kind := range ids.Kinds() {
		rapid.Check(t, func(t *rapid.T) {
			scheme := testScheme(kind)
			if kind != ids.Dense && rapid.Bool().Draw(t, "narrow") {
				scheme = ids.Narrow(scheme, 4)
			}
			var given, want []string
			var users []capping.UserID
			seen := map[uint64]bool{}
			for _, n := range rapid.SliceOfN(rapid.Uint64Range(0, 60), 1, 80).Draw(t, "ids") {
				text := id(kind, n)
				given = append(given, text)
				image, err := scheme.Parse([]byte(text))
				require.NoError(t, err)
				if !seen[image] {
					seen[image] = true
					want, users = append(want, text), append(users, capping.UserID(image))
				}
			}
			list, err := json.Marshal(given)
			require.NoError(t, err)
			r, err := DecodeFilter([]byte(`{"message_id":"m","user_ids":`+string(list)+`}`), givenBounds(scheme))
			require.NoError(t, err)
			require.Equal(t, users, r.Users)
			require.Equal(t, len(given)-len(want), r.Duplicates)
			for i, text := range want {
				name, err := json.Marshal(text)
				require.NoError(t, err)
				require.JSONEq(t, string(name), r.Given.name(i, r.Users[i]))
				require.Equal(t, text, r.Given.canonical(i, r.Users[i]))
			}
			require.Positive(t, r.Bytes())
			require.Positive(t, r.IDBytes())
		})
	}
}

// TestAnswersWithStringsAreTheWireTypes checks the answers for ids as strings against the types of package api.
func TestAnswersWithStringsAreTheWireTypes(t *testing.T) {
	t.Parallel()
	for _, kind := range ids.Kinds() {
		rapid.Check(t, func(t *rapid.T) {
			r := &FilterRequest{Counts: rapid.Bool().Draw(t, "counts"), Waves: rapid.Bool().Draw(t, "waves"),
				Record: true, Enforce: true}
			d := decisions(t, r)
			given := make([]string, len(d.Users))
			for i, user := range d.Users {
				given[i] = id(kind, uint64(user))
			}
			list, err := json.Marshal(given)
			require.NoError(t, err)
			of, err := DecodeFilter([]byte(`{"message_id":"m","user_ids":`+string(list)+`}`),
				givenBounds(testScheme(kind)))
			require.NoError(t, err)
			r.Given = of.Given
			written := EncodeFilter(nil, r, d, Summarize(d))
			requireWireType(t, written, new(api.FilterStrings))
			var answer api.FilterStrings
			require.NoError(t, json.Unmarshal(written, &answer))
			var allowed, unavailable []string
			denied := 0
			for i, v := range d.Verdicts {
				switch {
				case isAllowed(v.Outcome):
					allowed = append(allowed, given[i])
				case isUnavailable(v.Outcome):
					unavailable = append(unavailable, given[i])
				case !r.Counts:
					require.Equal(t, given[i], answer.Denied[denied].UserID)
					denied++
				}
			}
			require.Equal(t, len(allowed), len(answer.Allowed))
			require.Subset(t, allowed, answer.Allowed)
			require.Equal(t, len(unavailable), len(answer.Unavailable))
			require.Subset(t, unavailable, answer.Unavailable)

			results := make([]capping.Released, len(d.Users))
			for i := range results {
				results[i] = capping.Released(rapid.IntRange(0, 2).Draw(t, "result"))
			}
			m := &MessageRequest{Audience: r.Audience}
			released, _ := EncodeRelease(nil, m, results)
			requireWireType(t, released, new(api.ReleaseStrings))
			looked := &membership{Generation: "g", Names: []string{"vip"}, Sets: []string{"a", "b"},
				Users: make([]uint32, len(d.Users)), Codes: make([]uint8, len(d.Users)),
				In: make([]uint64, len(d.Users))}
			requireWireType(t, EncodeLookup(nil, &LookupRequest{Audience: r.Audience}, looked), new(api.LookupStrings))
		})
	}
}

// FuzzDecodeGiven checks that no body of any kind is answered by a panic, that ids that are accepted are so again in
// the canonical spelling, and that the body does not change.
func FuzzDecodeGiven(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	for _, kind := range ids.Kinds() {
		f.Add([]byte(`{"message_id":"m","user_ids":["` + strings.ReplaceAll(id(kind, 77), `"`, `\"`) + `"]}`))
	}
	f.Add([]byte(`{"message_id":"m","user_ids":[ "urn:uuid:018f3c4e7a1b7c3d9e5f0123456789ab" , "\u0030"]}`))
	f.Add([]byte(`{"message_id":"m","user_ids":["018f3c4e-7a1b-7c3d-9e5f-01234567\"9ab"]}`))
	f.Add([]byte(`{"message_id":"m","user_ids":[18446744073709551615,"7"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range ids.Kinds() {
			given := string(body)
			bounds := givenBounds(testScheme(kind))
			r, err := DecodeFilter(body, bounds)
			require.Equal(t, given, string(body), "the body was changed")
			if err != nil {
				require.NotEqual(t, api.Code(api.CodeInternal), FailureOf(err).Code, err)
				continue
			}
			if r.Given == nil {
				continue
			}
			require.True(t, json.Valid(body))
			list := make([]json.RawMessage, len(r.Users))
			for i := range list {
				list[i] = json.RawMessage(r.Given.name(i, r.Users[i]))
			}
			again, err := json.Marshal(map[string]any{"message_id": "m", "user_ids": list})
			require.NoError(t, err)
			same, err := DecodeFilter(again, bounds)
			require.NoError(t, err, "%s", again)
			require.Equal(t, r.Users, same.Users)
			require.Zero(t, same.Duplicates)
		}
	})
}

// BenchmarkGiven measures parsing and answering 10,000 ids of each kind in random order. The least time is the figure
// that other programs on the machine do not change.
func BenchmarkGiven(b *testing.B) {
	const users = 10_000
	for _, kind := range []ids.Kind{ids.UUID, ids.Uint64, ids.Text} {
		body := []byte(`{"message_id":"m","user_ids":[`)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range users {
			if i > 0 {
				body = append(body, ',')
			}
			switch text := id(kind, random.Uint64()>>1); kind {
			case ids.Text:
				body = fmt.Appendf(body, `"customer-%d"`, random.Uint32())
			default:
				body = fmt.Appendf(body, `%q`, text)
			}
		}
		body = append(body, "]}"...)
		bounds := givenBounds(testScheme(kind))
		measure := func(name string, do func()) {
			b.Run(kind.String()+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				least := time.Hour
				for b.Loop() {
					began := time.Now()
					do()
					least = min(least, time.Since(began))
				}
				b.ReportMetric(float64(least.Nanoseconds())/users, "least-ns/user")
			})
		}
		r, err := DecodeFilter(body, bounds)
		require.NoError(b, err)
		measure("decoded", func() {
			_, err := DecodeFilter(body, bounds)
			require.NoError(b, err)
		})
		for name, outcome := range map[string]capping.Outcome{"allowed": capping.Allowed, "denied": capping.Denied} {
			d := decided(r.Users, outcome)
			sum := Summarize(d)
			var out []byte
			measure(name, func() { out = EncodeFilter(out[:0], r, d, sum) })
		}
	}
}
