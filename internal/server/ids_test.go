package server_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	auditjournal "capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
	"capper/internal/testkit"
)

// scheme returns the scheme of a kind with a fixed key.
func scheme(t testing.TB, kind ids.Kind) *ids.Scheme {
	t.Helper()
	key, err := ids.ParseKey("2b7e151628aed2a6abf7158809cf4f3c")
	require.NoError(t, err)
	return ids.New(kind, key)
}

// openStoreOf returns an embedded store for the ids of a scheme.
func openStoreOf(t testing.TB, s *ids.Scheme, clock func() time.Time) capping.Store {
	t.Helper()
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), Clock: clock,
		ClockBound: math.MaxInt64, CacheBytes: 16 << 20,
		IDs: pebblestore.IDs{Kind: s.Kind().String(), Check: s.Check()}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// numbered are segments of users with images. The number of a user is the place of the image in the list.
type numbered struct {
	testSegments
	images []capping.UserID
}

func (n *numbered) Numbers(users []capping.UserID, numbers []uint32) {
	for i, user := range users {
		numbers[i] = math.MaxUint32
		for number, image := range n.images {
			if image == user {
				numbers[i] = uint32(number)
			}
		}
	}
}

// byPlace assigns the first user of the list to vip, the second to blocked, and the third to new.
func byPlace(number capping.UserID) uint8 {
	switch number {
	case 0:
		return 3
	case 1:
		return 4
	case 2:
		return 1
	}
	return 0
}

// newIDService returns a service with ids of a kind, of which the known ones are in vip, blocked and new.
func newIDService(t testing.TB, kind ids.Kind, known []string, change ...func(*server.Config)) *service {
	t.Helper()
	s, clock := scheme(t, kind), testkit.NewClockAt(startOfTest)
	return newIDServiceOver(t, s, openStoreOf(t, s, clock.Now), clock, known, change...)
}

func newIDServiceOver(t testing.TB, s *ids.Scheme, store capping.Store, clock *testkit.Clock, known []string,
	change ...func(*server.Config)) *service {
	t.Helper()
	generation := &numbered{testSegments: testSegments{names: []string{"new", "active", "vip", "blocked", "free"},
		lookup: byPlace}}
	for _, id := range known {
		image, err := s.Parse([]byte(id))
		require.NoError(t, err)
		generation.images = append(generation.images, capping.UserID(image))
	}
	capper := capping.New(store, func() capping.Segments { return generation }, testPolicy(), clock.Now)
	change = append([]func(*server.Config){func(cfg *server.Config) { cfg.IDs, cfg.Capper = s, capper }}, change...)
	return newServiceOver(t, store, clock, change...)
}

const (
	ann = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"
	ben = "00000000-0000-0000-0000-000000000000"
	cat = "ffffffff-ffff-ffff-ffff-ffffffffffff"
	dan = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
)

// filterAs calls POST /v1/filter, which must succeed.
func filterAs[T any](s *service, body any) *T {
	s.t.Helper()
	r := s.post("/v1/filter", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[T](s.t, r.body)
}

func TestUUIDsAreDecided(t *testing.T) {
	t.Parallel()
	s := newIDService(t, ids.UUID, []string{ann, ben, cat})
	answer := filterAs[api.FilterStrings](s, fields{"message_id": "m1", "channel": "push", "waves": true,
		"user_ids": []string{cat, ben, ann, dan}})
	require.Equal(t, []string{cat, ann, dan}, answer.Allowed)
	require.Equal(t, []api.DenialOfID{{UserID: ben, Segment: "blocked", Limit: "never", Max: 0}}, answer.Denied)
	require.Equal(t, []string{}, answer.Unavailable)
	require.Equal(t, 1, answer.Summary.Segments["vip"].Allowed)
	require.Equal(t, 1, answer.Summary.Segments["default"].Allowed)

	again := filterAs[api.FilterStrings](s, fields{"message_id": "m1", "channel": "push",
		"user_ids": []string{dan, ann}})
	require.Equal(t, []string{dan, ann}, again.Replayed)
	second := filterAs[api.FilterStrings](s, fields{"message_id": "m2", "channel": "push", "waves": true,
		"user_ids": []string{dan, ann, cat}})
	require.Equal(t, []string{}, second.Allowed)
	require.Equal(t, []string{dan, ann, cat}, []string{second.Denied[0].UserID, second.Denied[1].UserID,
		second.Denied[2].UserID})
	require.Equal(t, []string{ann}, second.Waves[0].UserIDs)
	require.Equal(t, []string{dan, cat}, second.Waves[1].UserIDs)
	counts := filterAs[api.FilterStrings](s, fields{"message_id": "m2", "channel": "push", "detail": "counts",
		"user_ids": []string{dan}})
	require.Nil(t, counts.Denied)

	r := s.post("/v1/release", fields{"message_id": "m1", "user_ids": []string{ben, dan, strings.ToUpper(dan)}})
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	require.Equal(t, &api.ReleaseStrings{Released: []string{dan}, Unavailable: []string{},
		Summary: api.ReleaseSummary{Requested: 3, Released: 1, Absent: 1, Duplicates: 1}},
		decodeAs[api.ReleaseStrings](t, r.body))
	require.Equal(t, []string{dan}, filterAs[api.FilterStrings](s, fields{"message_id": "m3", "channel": "push",
		"user_ids": []string{dan, ann}}).Allowed)

	forecast := s.post("/v1/forecast", fields{"channel": "push", "user_ids": []string{ann, ben, dan}})
	require.Equal(t, http.StatusOK, forecast.status, string(forecast.body))
	require.Equal(t, 3, decodeAs[api.Forecast](t, forecast.body).Users)
}

// TestSpellingsOfAUUIDAreOneUser checks that repeats of a UUID in other spellings count as repeats of a user, and that
// the answer has the canonical spelling.
func TestSpellingsOfAUUIDAreOneUser(t *testing.T) {
	t.Parallel()
	s := newIDService(t, ids.UUID, nil)
	plain := strings.ReplaceAll(ann, "-", "")
	r := s.post("/v1/filter", `{"message_id": "m", "user_ids": [ "`+strings.ToUpper(ann)+`","{`+ann+`}" , "urn:uuid:`+
		plain+`", "`+plain+`", "\u0030`+ann[1:]+`", "`+dan+`", "{`+strings.ToUpper(plain)+`}"]}`)
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	answer := decodeAs[api.FilterStrings](t, r.body)
	require.Equal(t, []string{ann, dan}, answer.Allowed)
	require.Equal(t, 5, answer.Summary.Duplicates)
	require.Equal(t, 7, answer.Summary.Requested)

	for _, path := range []string{ann, strings.ToUpper(plain), "%7B" + ann + "%7D", "urn:uuid:" + plain,
		"%30" + ann[1:]} {
		e := decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+path).body)
		require.Equal(t, ann, e.UserID)
		require.Len(t, e.Sends, 1)
	}
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/%7B"+plain+"%7D", "").status)
	require.Empty(t, decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+ann).body).Sends)
	require.Len(t, decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+dan).body).Sends, 1)
}

// TestIDsWithOneImageAreOnePerson checks ids whose images have 20 bits, of which many are equal: such ids share a log,
// so their person gets too little and never more than a limit.
func TestIDsWithOneImageAreOnePerson(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			narrow, clock := ids.Narrow(scheme(t, kind), 20), testkit.NewClockAt(startOfTest)
			s := newIDServiceOver(t, narrow, openStoreOf(t, narrow, clock.Now), clock, nil)
			const users = 10_000
			first, others := map[uint64]string{}, map[string]string{} // by image; by id, the first of its image
			var given []string
			for i := range users {
				id := fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", i*7919)
				image, err := narrow.Parse([]byte(id))
				require.NoError(t, err)
				if one, taken := first[image]; taken {
					others[id] = one
				} else {
					first[image] = id
				}
				given = append(given, id)
			}
			require.Greater(t, len(others), 20)
			answer := filterAs[api.FilterStrings](s, fields{"message_id": "m1", "user_ids": given})
			require.Len(t, answer.Allowed, len(first), "one id of each image")
			require.Equal(t, len(others), answer.Summary.Duplicates)
			for id, one := range others {
				alone := []string{id}
				next := filterAs[api.FilterStrings](s, fields{"message_id": "m2", "user_ids": alone})
				require.Empty(t, next.Allowed, "the limit of a day is used by %s", one)
				require.Len(t, next.Denied, 1)
				again := filterAs[api.FilterStrings](s, fields{"message_id": "m1", "user_ids": alone})
				require.Equal(t, alone, again.Replayed)
				e := decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+id).body)
				require.Equal(t, id, e.UserID)
				require.Len(t, e.Sends, 1)
			}
			for id, one := range others {
				require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/"+id, "").status)
				require.Empty(t, decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+one).body).Sends)
			}
		})
	}
}

func TestTextIDsAreTakenByteByByte(t *testing.T) {
	t.Parallel()
	s := newIDService(t, ids.Text, nil)
	given := []string{"007", "7", "a@x.com", "A@x.com", `a"b\c`, "é", "e\u0301", "<b>&\u2028", "a/b", "..", "%30",
		strings.Repeat("x", 256)}
	answer := filterAs[api.FilterStrings](s, fields{"message_id": "m", "user_ids": append(given, "7", "a/b")})
	require.Equal(t, given, answer.Allowed)
	require.Equal(t, 2, answer.Summary.Duplicates)
	for _, id := range given {
		e := s.get("/v1/users/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E"))
		require.Equal(t, http.StatusOK, e.status, id)
		explained := decodeAs[api.ExplanationOfID](t, e.body)
		require.Equal(t, id, explained.UserID)
		require.Len(t, explained.Sends, 1)
	}
	require.Empty(t, decodeAs[api.ExplanationOfID](t, s.get("/v1/users/07").body).Sends)
	require.Equal(t, http.StatusNotFound, s.get("/v1/users/a/b").status)
}

// TestNumbersAreAnsweredAsAsked checks that ids of the kinds uint64 and dense come back as numbers where they came as
// numbers that JavaScript holds, and as strings otherwise.
func TestNumbersAreAnsweredAsAsked(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.Uint64, ids.Dense} {
		cases := []struct{ given, allowed, user string }{
			{`[7, 0, 4294967295]`, `[7,0,4294967295]`, ""},
			{`["8", 1, "8", 8]`, `["8","1"]`, "8"},
			{`["\u0039"]`, `["9"]`, "9"},
		}
		if kind == ids.Uint64 {
			cases = append(cases, []struct{ given, allowed, user string }{
				{`[9007199254740992, 7]`, `[9007199254740992,7]`, "9007199254740992"},
				{`[9007199254740993, 7]`, `["9007199254740993","7"]`, "9007199254740993"},
				{`[18446744073709551615, "18446744073709551615"]`, `["18446744073709551615"]`, "18446744073709551615"},
			}...)
		}
		for _, c := range cases {
			s := newIDService(t, kind, nil)
			r := s.post("/v1/filter", `{"message_id": "m", "user_ids": `+c.given+`}`)
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			var answer struct{ Allowed json.RawMessage }
			require.NoError(t, json.Unmarshal(r.body, &answer))
			require.Equal(t, c.allowed, string(answer.Allowed), kind)
			if c.user != "" && kind == ids.Uint64 {
				e := decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+c.user).body)
				require.Equal(t, c.user, e.UserID)
				require.Len(t, e.Sends, 1)
			}
		}
	}
}

func TestOtherIDsAreRefused(t *testing.T) {
	t.Parallel()
	services := map[ids.Kind]*service{}
	for _, kind := range ids.Kinds() {
		services[kind] = newIDService(t, kind, nil)
	}
	for _, c := range []struct {
		kind                  ids.Kind
		given, field, message string
	}{
		{ids.UUID, `["` + ann + `", "018f"]`, "user_ids[1]",
			`user_ids[1]: is not a UUID: "018f" has 4 hexadecimal digits, and a UUID has 32`},
		{ids.UUID, `["` + strings.Replace(ann, "0", "g", 1) + `"]`, "user_ids[0]", `has the character "g"`},
		{ids.UUID, `[7]`, "user_ids[0]", "user_ids[0]: 7 is not a string: ids of the kind uuid are strings"},
		{ids.UUID, `[null]`, "user_ids[0]", "null is not a string"},
		{ids.UUID, `["` + ann + `",]`, "", "a user id"},
		{ids.UUID, `["` + ann + `" "` + ann + `"]`, "", "',' or ']'"},
		{ids.UUID, `"` + ann + `"`, "user_ids", "is not an array of user ids"},
		{ids.UUID, `[]`, "user_ids", "the batch is empty"},
		{ids.UUID, `["\x"]`, "user_ids", "the escape at byte"},
		{ids.Text, `["a", ""]`, "user_ids[1]", `user_ids[1]: is not a text id: "" is empty`},
		{ids.Text, `["` + strings.Repeat("x", 257) + `"]`, "user_ids[0]", "has 257 bytes"},
		{ids.Text, `["a\nb"]`, "user_ids[0]", "control character U+000A at byte 2"},
		{ids.Text, `["\ufffd"]`, "user_ids[0]", "U+FFFD"},
		{ids.Text, "[\"\xff\"]", "user_ids[0]", "not valid UTF-8"},
		{ids.Text, `[7]`, "user_ids[0]", "7 is not a string: ids of the kind text are strings"},
		{ids.Uint64, `[18446744073709551616]`, "user_ids[0]",
			`user_ids[0]: is not a uint64 id: "18446744073709551616" is above 18446744073709551615`},
		{ids.Uint64, `["007"]`, "user_ids[0]", "no leading zeros"},
		{ids.Uint64, `[007]`, "user_ids[0]", "no leading zeros"},
		{ids.Uint64, `[1.0]`, "user_ids[0]", "1.0 is not a uint64 id"},
		{ids.Uint64, `[1e3]`, "user_ids[0]", "1e3 is not a uint64 id"},
		{ids.Uint64, `[-1]`, "user_ids[0]", "-1 is not a uint64 id"},
		{ids.Uint64, `["x"]`, "user_ids[0]", `has the character "x"`},
		{ids.Dense, `["4294967296"]`, "user_ids[0]", `"4294967296" is not a user id (0 to 4294967295)`},
	} {
		t.Run(fmt.Sprint(c.kind, c.given), func(t *testing.T) {
			r := services[c.kind].with(t).post("/v1/filter", `{"message_id": "m", "user_ids": `+c.given+`}`)
			requireRefused(t, r, http.StatusBadRequest, "invalid_request", badBody{field: c.field, message: c.message})
		})
	}
	for path, message := range map[string]string{"7": "is not a UUID", "%zz": "", "018f": "has 4 hexadecimal digits"} {
		if message != "" {
			requireRefused(t, services[ids.UUID].get("/v1/users/"+path), http.StatusBadRequest, "invalid_request",
				badBody{field: "user_id", message: message})
		}
	}
	s := newIDService(t, ids.UUID, nil, func(cfg *server.Config) { cfg.Bounds.JSONUsers = 2 })
	r := s.post("/v1/filter", fields{"message_id": "m", "user_ids": []string{ann, ann, ann}})
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large", badBody{field: "user_ids",
		message: "user_ids: has more than 2 ids: split the batch"})
}

// TestCallsThatTakeDenseIDsAloneSayIt checks that no call with other ids pretends.
func TestCallsThatTakeDenseIDsAloneSayIt(t *testing.T) {
	t.Parallel()
	s := newIDService(t, ids.UUID, nil)
	bits := bitmapText(t, 1, 2)
	const uses = "this deployment's ids are uuid: use "
	for _, c := range []struct{ method, path, body, field, message string }{
		{"POST", "/v1/filter", `{"message_id":"m","users_bitmap":"` + bits + `"}`, "users_bitmap",
			uses + "user_ids, users_packed or audience"},
		{"POST", "/v1/release", `{"message_id":"m","users_bitmap":"` + bits + `"}`, "users_bitmap",
			uses + "user_ids, users_packed or audience"},
		{"POST", "/v1/forecast", `{"users_bitmap":"` + bits + `"}`, "users_bitmap",
			uses + "user_ids, users_packed or audience"},
		{"POST", "/v1/segments/lookup", `{"users_bitmap":"` + bits + `"}`, "users_bitmap",
			uses + "user_ids, users_packed or audience"},
		{"GET", "/v1/segments/vip/bitmap", "", "", "this deployment's ids are uuid, and bitmaps hold dense ids: " +
			"use GET /v1/segments/{name}/members"},
	} {
		r := s.call(c.method, c.path, c.body)
		requireRefused(t, r, http.StatusBadRequest, "invalid_request", badBody{field: c.field, message: c.message})
	}
	_, err := server.New(server.Config{Capper: s.capper, IDs: scheme(t, ids.Text), Journal: new(auditjournal.Journal)})
	require.EqualError(t, err, "server: Config.Journal: the records have ids of the kind dense, and the ids of this "+
		"deployment are text with the check cf1149fe")
}

// TestSetsAreChangedByID checks changes of sets with ids that are strings, up to the users that were not stored.
func TestSetsAreChangedByID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind                ids.Kind
		one, other, spelt   string
		answered, answered2 string
	}{
		{ids.UUID, ann, dan, strings.ToUpper(ann), ann, dan},
		{ids.Text, "a@x.com", `"`, "a@x.com", "a@x.com", `"`},
		{ids.Uint64, "18446744073709551615", "7", "18446744073709551615", "18446744073709551615", "7"},
		{ids.Dense, "4294967295", "7", "4294967295", "4294967295", "7"},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			t.Parallel()
			clock, store := testkit.NewClockAt(startOfTest), &changeStore{lists: live.New(0)}
			sch := scheme(t, c.kind)
			store.Store, store.clock = openStoreOf(t, sch, clock.Now), clock.Now
			s := newIDServiceOver(t, sch, store, clock, nil, func(cfg *server.Config) {
				cfg.Sets = func() live.Rules { return live.Rules{"opted-out": {Live: true}} }
			})
			change := func(body fields) reply { return s.post("/v1/sets/opted-out/members", body) }
			r := change(fields{"add": []string{c.spelt, c.other, c.one}})
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			require.Equal(t, 2, decodeAs[api.SetChanged](t, r.body).Added)
			image, err := sch.Parse([]byte(c.one))
			require.NoError(t, err)
			_, known := store.lists.Of("opted-out", capping.UserID(image))
			require.True(t, known)
			r = change(fields{"remove": []string{c.one}})
			require.Equal(t, 1, decodeAs[api.SetChanged](t, r.body).Removed)

			both := change(fields{"add": []string{c.one}, "remove": []string{c.spelt}})
			name, err := json.Marshal(c.answered)
			require.NoError(t, err)
			requireRefused(t, both, http.StatusBadRequest, "invalid_request", badBody{field: "remove",
				message: "user " + string(name) + " is also in add"})

			otherImage, err := sch.Parse([]byte(c.other))
			require.NoError(t, err)
			store.fail(fmt.Errorf("the store is away"), capping.UserID(otherImage))
			r = change(fields{"add": []string{c.one}, "remove": []string{c.other}})
			require.Equal(t, http.StatusServiceUnavailable, r.status, string(r.body))
			f := decodeAs[api.Error](t, r.body)
			require.Equal(t, []string{c.answered2}, f.UnavailableIDs)
			require.Empty(t, f.Unavailable)
			if c.kind != ids.Dense {
				requireRefused(t, change(fields{"add_bitmap": bitmapText(t, 1)}), http.StatusBadRequest,
					"invalid_request",
					badBody{field: "add_bitmap", message: "this deployment's ids are " + c.kind.String() + ": use add"})
			}
		})
	}
}

// TestAMillionUUIDs checks order, repeats and counts of the largest usual call.
func TestAMillionUUIDs(t *testing.T) {
	t.Parallel()
	const users = 1_000_000
	s := newIDService(t, ids.UUID, nil, func(cfg *server.Config) {
		cfg.Bounds.JSONUsers, cfg.Bounds.BodyBytes, cfg.Bounds.BitmapUsers = users, 64<<20, users
	})
	given := make([]string, users)
	for i := range given {
		n := uint32(i/2) * 2654435769
		given[i] = fmt.Sprintf("%08x-0000-4000-8000-%012x", n, i/2)
	}
	body, err := json.Marshal(fields{"record": false, "user_ids": given})
	require.NoError(t, err)
	r := s.request(http.MethodPost, "/v1/filter", string(body))
	response, err := s.http.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var answer api.FilterStrings
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(t, users/2, answer.Summary.Duplicates)
	require.Len(t, answer.Allowed, users/2)
	for i, id := range answer.Allowed {
		if id != given[2*i] {
			require.Equal(t, given[2*i], id)
		}
	}
}

// packedText returns the base64 of packed ids.
func packedText(t testing.TB, s *ids.Scheme, given ...string) string {
	t.Helper()
	var packed []byte
	for _, id := range given {
		var err error
		packed, err = s.AppendPacked(packed, []byte(id))
		require.NoError(t, err)
	}
	return base64.StdEncoding.EncodeToString(packed)
}

// TestPackedIDsAreAnsweredByPositions checks that the positions of an answer name the users whom the strings of the
// same
// call name.
func TestPackedIDsAreAnsweredByPositions(t *testing.T) {
	t.Parallel()
	for _, kind := range []ids.Kind{ids.UUID, ids.Uint64} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			known := []string{ann, ben, cat}
			other := dan
			if kind == ids.Uint64 {
				known, other = []string{"7", "18446744073709551615", "0"}, "42"
			}
			s, sch := newIDService(t, kind, known), scheme(t, kind)
			given := []string{other, known[2], known[1], other, known[0], known[1]}
			body := fields{"message_id": "m1", "channel": "push", "users_packed": packedText(t, sch, given...)}
			answer := filterAs[api.FilterPositions](s, body)
			require.Equal(t, []uint32{0, 1, 4}, answer.AllowedPositions.ToArray())
			require.Empty(t, answer.ReplayedPositions.ToArray())
			require.Equal(t, []uint32{2}, answer.DeniedPositions["never"].ToArray())
			require.Empty(t, answer.UnavailablePositions.ToArray())
			require.Equal(t, 6, answer.Summary.Requested)
			require.Equal(t, 2, answer.Summary.Duplicates)
			strings := filterAs[api.FilterStrings](s, fields{"message_id": "m1", "channel": "push", "user_ids": given})
			require.Equal(t, []string{other, known[2], known[0]}, strings.Replayed)
			require.Equal(t, []uint32{0, 1, 4}, filterAs[api.FilterPositions](s, body).ReplayedPositions.ToArray())

			body["message_id"], body["waves"], body["detail"] = "m2", true, "counts"
			waves := filterAs[api.FilterPositions](s, body)
			require.Nil(t, waves.DeniedPositions)
			require.Equal(t, []uint32{4}, waves.Waves[0].Positions.ToArray())
			require.Equal(t, []uint32{0, 1}, waves.Waves[1].Positions.ToArray())

			r := s.post("/v1/release", fields{"message_id": "m1",
				"users_packed": packedText(t, sch, known[1], known[1], known[0])})
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			released := decodeAs[api.ReleasePositions](t, r.body)
			require.Equal(t, []uint32{2}, released.ReleasedPositions.ToArray())
			require.Equal(t, 1, released.Summary.Absent)
			forecast := s.post("/v1/forecast", fields{"users_packed": packedText(t, sch, given...)})
			require.Equal(t, http.StatusOK, forecast.status, string(forecast.body))
			require.Equal(t, 4, decodeAs[api.Forecast](t, forecast.body).Users)
		})
	}
}

func TestOtherPackedIDsAreRefused(t *testing.T) {
	t.Parallel()
	sch := scheme(t, ids.UUID)
	s := newIDService(t, ids.UUID, nil, func(cfg *server.Config) { cfg.Bounds.BitmapUsers = 3 })
	one := packedText(t, sch, ann)
	for given, want := range map[string]badBody{
		`"AAAA"`: {field: "users_packed",
			message: "users_packed: must hold 16 bytes for each id of the kind uuid, got 3 bytes"},
		`""`:                         {field: "users_packed", message: "the batch is empty"},
		`"*"`:                        {field: "users_packed", message: "must be padded standard base64"},
		`"` + one[:len(one)-2] + `"`: {field: "users_packed", message: "must be padded standard base64"},
		`"AAAA\n"`:                   {field: "users_packed", message: "line breaks"},
		`["` + ann + `"]`:            {field: "users_packed", message: "an array is not a string"},
		`"` + one + `","user_ids":["` + ann + `"]`: {field: "user_ids", message: "users_packed and user_ids are both " +
			"given, but exactly one of user_ids, users_packed and audience is allowed"},
	} {
		requireRefused(t, s.post("/v1/filter", `{"message_id":"m","users_packed":`+given+`}`), http.StatusBadRequest,
			"invalid_request", want)
	}
	r := s.post("/v1/filter", fields{"message_id": "m", "users_packed": packedText(t, sch, ann, ann, ann, ann)})
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large", badBody{field: "users_packed",
		message: "4 users: at most 3 are allowed: split the batch"})
	requireRefused(t, s.post("/v1/filter", `{"message_id":"m"}`), http.StatusBadRequest, "invalid_request",
		badBody{field: "user_ids", message: "exactly one of user_ids, users_packed and audience is required"})

	text := newIDService(t, ids.Text, nil)
	requireRefused(t, text.post("/v1/filter", `{"message_id":"m","users_packed":"AAAA"}`), http.StatusBadRequest,
		"invalid_request", badBody{field: "users_packed",
			message: "users_packed: this deployment's ids are text: use user_ids or audience"})
	dense := newService(t)
	requireRefused(t, dense.post("/v1/filter", `{"message_id":"m","users_packed":"AAAA"}`), http.StatusBadRequest,
		"invalid_request", badBody{field: "users_packed",
			message: "users_packed: this deployment's ids are dense (32-bit numbers): use user_ids, users_bitmap or " +
				"audience"})
}

// TestAMillionPackedUUIDs checks that a call with a million packed ids is answered, with every second one repeated.
func TestAMillionPackedUUIDs(t *testing.T) {
	t.Parallel()
	const users = 1_000_000
	s := newIDService(t, ids.UUID, nil, func(cfg *server.Config) { cfg.Bounds.BodyBytes = 32 << 20 })
	packed := make([]byte, 0, 16*users)
	for i := range uint64(users) {
		packed = binary.BigEndian.AppendUint64(packed, i/2*0x9e3779b97f4a7c15)
		packed = binary.BigEndian.AppendUint64(packed, i/2)
	}
	answer := filterAs[api.FilterPositions](s, fields{"record": false, "users_packed": packed})
	require.Equal(t, users/2, answer.Summary.Duplicates)
	require.EqualValues(t, users/2, answer.AllowedPositions.GetCardinality())
	for i, position := range answer.AllowedPositions.ToArray() {
		if position != uint32(2*i) {
			require.EqualValues(t, 2*i, position)
		}
	}
}

func TestIDsAreDescribed(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"kind":"dense"}`, string(newService(t).get("/v1/ids").body))
	require.JSONEq(t, `{"kind":"uuid","key":"2b7e151628aed2a6abf7158809cf4f3c","check":"51b11a30"}`,
		string(newIDService(t, ids.UUID, nil).get("/v1/ids").body))
}

// newNumberedService returns a service with a generation of the segment vip and the set opted-out, with ids of a kind.
// The generation leads back to the ids if names is true.
func newNumberedService(t testing.TB, sch *ids.Scheme, vip, optedOut []string, names bool) *service {
	t.Helper()
	s, _ := newServiceOfNumbers(t, sch, numberedSnapshot(t, sch, vip, optedOut, names, 0))
	return s
}

// numberedSnapshot returns the n-th generation of newNumberedService.
func numberedSnapshot(t testing.TB, sch *ids.Scheme, vip, optedOut []string, names bool, n int) *segments.Snapshot {
	t.Helper()
	d, bitmaps := segmentstest.Numbered(t, sch, vip, optedOut)
	var back *segments.Back
	if names {
		back = segmentstest.Back(t, sch, d, vip, optedOut)
	}
	entries := []segments.Set{{Segment: segments.Describe("opted-out", bitmaps[1])}}
	m, err := segments.NewManifest(segmentstest.Epoch.Add(time.Duration(n)*time.Hour), "test", "",
		[]segments.Segment{segments.Describe("vip", bitmaps[0])}, entries...)
	require.NoError(t, err)
	m, err = m.WithIDs(sch, d, back)
	require.NoError(t, err)
	return (&segments.Generation{Manifest: m, Bitmaps: bitmaps[:1], Sets: bitmaps[1:], Scheme: sch, Dictionary: d,
		Back: back}).Snapshot()
}

// newServiceOfNumbers returns a service with a first generation, and the list to which a test appends further ones.
func newServiceOfNumbers(t testing.TB, sch *ids.Scheme, first *segments.Snapshot) (*service, *generations) {
	t.Helper()
	clock, g := testkit.NewClockAt(startOfTest), &generations{list: []*segments.Snapshot{first}}
	policy := setPolicy(t)
	policy.Suppress, policy.Quiet = policy.Suppress[:1], nil
	store := openStoreOf(t, sch, clock.Now)
	changes, ok := capping.As[live.Store](store)
	require.True(t, ok)
	capper := capping.New(store, func() capping.Segments {
		return changedSnapshot{snapshot: snapshot{g.current()}, lists: changes.Lists()}
	}, policy, clock.Now)
	return newServiceOver(t, store, clock, func(cfg *server.Config) {
		cfg.IDs, cfg.Capper, cfg.Generations = sch, capper, g.pin
	}), g
}

// TestGenerationsOfOtherIDsAreLookedUp checks look-ups, counts, previews and forecasts of a generation with a
// dictionary.
func TestGenerationsOfOtherIDsAreLookedUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind              ids.Kind
		known             []string
		stranger, another string
	}{
		{ids.UUID, []string{ann, ben, cat}, dan, "{" + strings.ToUpper(ann) + "}"},
		{ids.Uint64, []string{"18446744073709551615", "7", "0"}, "42", "18446744073709551615"},
		{ids.Text, []string{"a@x.com", "7", "\""}, "A@x.com", "a@x.com"},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			t.Parallel()
			sch := scheme(t, c.kind)
			s := newNumberedService(t, sch, c.known[:2], c.known[1:], c.kind == ids.Text)
			looked := lookedUp[api.LookupStrings](s, fields{"user_ids": []string{c.stranger, c.known[1], c.another,
				c.known[2], c.known[0]}, "sets": []string{"opted-out"}})
			require.Equal(t, []api.UserLookupOfID{
				{UserID: c.stranger, Segment: "default", Sets: []string{}},
				{UserID: c.known[1], Segment: "vip", Sets: []string{"opted-out"}},
				{UserID: c.known[0], Segment: "vip", Sets: []string{}},
				{UserID: c.known[2], Segment: "default", Sets: []string{"opted-out"}},
			}, looked.Users)
			if sch.Width() > 0 {
				positions := lookedUp[api.LookupPositions](s, fields{"users_packed": packedText(t, sch, c.stranger,
					c.known[1], c.known[1], c.known[0], c.known[2]), "sets": []string{"opted-out"}})
				require.Equal(t, []uint32{1, 3}, positions.SegmentPositions["vip"].ToArray())
				require.Equal(t, []uint32{0, 4}, positions.SegmentPositions["default"].ToArray())
				require.Equal(t, []uint32{1, 4}, positions.SetPositions["opted-out"].ToArray())
			}
			decided := filterAs[api.FilterStrings](s, fields{"message_id": "m", "user_ids": []string{c.stranger,
				c.known[1], c.known[0]}})
			require.Equal(t, []string{c.stranger, c.known[0]}, decided.Allowed)
			require.Equal(t, "opted-out", decided.Denied[0].Set)
			e := decodeAs[api.ExplanationOfID](t, s.get("/v1/users/"+url.PathEscape(c.known[1])).body)
			require.Equal(t, "vip", e.Segment)
			require.Len(t, e.Suppressed, 1)

			r := s.post("/v1/audience/count", fields{"audience": "vip", "channel": "push"})
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			counts := decodeAs[api.AudienceCount](t, r.body)
			require.EqualValues(t, 2, counts.Users)
			require.EqualValues(t, 1, counts.Sets["opted-out"])
			require.Equal(t, map[string]int{"suppressed": 1}, counts.Preview.Denied)
			r = s.post("/v1/forecast", fields{"audience": "vip | opted-out"})
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			forecast := decodeAs[api.Forecast](t, r.body)
			require.Equal(t, 3, forecast.Users)
			require.Equal(t, 2, forecast.Forecasts[0].Summary.Denied["suppressed"])
			require.Equal(t, http.StatusOK, s.get("/v1/segments").status)
		})
	}
}

// TestAGenerationOfOtherIDsIsNotUsed checks that numbers of one kind are never taken for those of another.
func TestAGenerationOfOtherIDsIsNotUsed(t *testing.T) {
	t.Parallel()
	s := newIDService(t, ids.UUID, nil, func(cfg *server.Config) {
		g := &generations{}
		g.add(t, testSets())
		cfg.Generations = g.pin
	})
	r := s.post("/v1/segments/lookup", fields{"user_ids": []string{ann}})
	require.Equal(t, http.StatusServiceUnavailable, r.status, string(r.body))
}

// unpacked returns the ids of packed ids, sorted.
func unpacked(s *ids.Scheme, packed []byte) (list []string) {
	for ; len(packed) > 0; packed = packed[s.Width():] {
		list = append(list, string(s.Unpack(nil, packed[:s.Width()])))
	}
	slices.Sort(list)
	return list
}

// TestAudiencesAreAnsweredWithIDs checks the answers about the users of an expression, whose ids the request lacks.
func TestAudiencesAreAnsweredWithIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  ids.Kind
		known []string
	}{
		{ids.UUID, []string{ann, ben, cat}}, {ids.Uint64, []string{"18446744073709551615", "7", "0"}},
		{ids.Text, []string{"a@x.com", "7", "\""}},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			t.Parallel()
			sch := scheme(t, c.kind)
			s := newNumberedService(t, sch, c.known[:2], c.known[1:], true)
			body := fields{"message_id": "m", "channel": "push", "audience": "vip | opted-out", "waves": true}
			denied := slices.Sorted(slices.Values(c.known[1:]))
			look := fields{"audience": "vip", "sets": []string{"opted-out"}}
			release := fields{"message_id": "m", "audience": "vip"}
			if c.kind == ids.Text {
				answer := filterAs[api.FilterStrings](s, body)
				require.Equal(t, c.known[:1], answer.Allowed)
				require.ElementsMatch(t, denied, []string{answer.Denied[0].UserID, answer.Denied[1].UserID})
				require.Equal(t, 3, answer.Audience.Users)
				again := filterAs[api.FilterStrings](s, fields{"message_id": "m2", "channel": "push", "audience": "vip",
					"waves": true})
				require.Len(t, again.Denied, 1)
				r := s.post("/v1/release", release)
				require.Equal(t, http.StatusOK, r.status, string(r.body))
				require.Equal(t, c.known[:1], decodeAs[api.ReleaseStrings](t, r.body).Released)
				require.Len(t, lookedUp[api.LookupStrings](s, look).Users, 2)
				return
			}
			answer := filterAs[api.FilterPacked](s, body)
			require.Equal(t, c.known[:1], unpacked(sch, answer.AllowedPacked))
			require.Empty(t, answer.ReplayedPacked)
			require.Equal(t, denied, unpacked(sch, answer.DeniedPacked["suppressed"]))
			require.Empty(t, answer.UnavailablePacked)
			require.Equal(t, 3, answer.Audience.Users)
			require.Empty(t, answer.Waves)
			require.Equal(t, c.known[:1], unpacked(sch, filterAs[api.FilterPacked](s, body).ReplayedPacked))
			counts := filterAs[api.FilterPacked](s, fields{"message_id": "m", "channel": "push", "audience": "vip",
				"detail": "counts"})
			require.Nil(t, counts.DeniedPacked)

			looked := lookedUp[api.LookupPacked](s, look)
			require.Equal(t, slices.Sorted(slices.Values(c.known[:2])), unpacked(sch, looked.SegmentPacked["vip"]))
			require.Equal(t, c.known[1:2], unpacked(sch, looked.SetPacked["opted-out"]))
			r := s.post("/v1/release", release)
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			require.Equal(t, c.known[:1], unpacked(sch, decodeAs[api.ReleasePacked](t, r.body).ReleasedPacked))

			one := filterAs[api.FilterPacked](s, fields{"message_id": "p", "audience": "vip - opted-out"})
			require.Len(t, one.AllowedPacked, sch.Width())
			filterAs[api.FilterPacked](s, fields{"message_id": "p2", "audience": "vip - opted-out"})
			full := filterAs[api.FilterPacked](s, fields{"message_id": "p3", "audience": "vip - opted-out",
				"waves": true})
			require.Empty(t, full.AllowedPacked)
			require.Equal(t, c.known[:1], unpacked(sch, full.DeniedPacked["daily"]))
			require.Equal(t, c.known[:1], unpacked(sch, full.Waves[0].UsersPacked))
			nobody := filterAs[api.FilterPacked](s, fields{"message_id": "n", "audience": "vip - vip"})
			require.Empty(t, nobody.AllowedPacked)

			if c.kind == ids.UUID {
				nameless := newNumberedService(t, sch, c.known[:2], c.known[1:], false)
				requireRefused(t, nameless.post("/v1/filter", body), http.StatusBadRequest, "invalid_request",
					badBody{field: "audience",
						message: "does not contain its ids (segmentbuild build --no-names): send user_ids"})
			}
		})
	}
}

// TestLogsHaveNoIDs checks that the audit lines about a user hold the image, or nothing about the user.
func TestLogsHaveNoIDs(t *testing.T) {
	t.Parallel()
	log := &journal{}
	s := newIDService(t, ids.UUID, nil, withKeys, func(cfg *server.Config) {
		cfg.Logger = slog.New(slog.NewJSONHandler(log, nil))
	})
	s.key = "r1.secret-of-support"
	require.Equal(t, http.StatusForbidden, s.call(http.MethodDelete, "/v1/users/"+ann, "").status)
	require.Equal(t, "/v1/users/…", log.lines(t, "audit")[0]["path"])
	s.key = "a1.secret-of-the-admin"
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/"+ann, "").status)
	image, err := scheme(t, ids.UUID).Parse([]byte(ann))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%016x", image), log.lines(t, "audit")[1]["image"])
	require.NotContains(t, log.String(), ann)
}
