package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/server/gate"
)

func TestSegmentsAreListed(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	r := s.get("/v1/segments")
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	list := decodeAs[api.Segments](t, r.body)
	require.Equal(t, g.current().Generation(), list.Generation)
	require.Equal(t, g.current().CreatedAt(), list.CreatedAt)
	var names []string
	for _, one := range list.Segments {
		names = append(names, one.Kind+" "+one.Name)
		require.Positive(t, one.SizeBytes)
	}
	require.Equal(t, []string{
		"segment vip", "segment active", "set bounced", "set country/sg", "set opted-out", "set tz/America/New_York",
		"set tz/Asia/Singapore",
	}, names)
	require.EqualValues(t, 4, list.Segments[4].Users)
}

// lookedUp calls POST /v1/segments/lookup, which must succeed.
func lookedUp[T any](s *service, body any) *T {
	s.t.Helper()
	r := s.post("/v1/segments/lookup", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[T](s.t, r.body)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	a := lookedUp[api.LookupIDs](s,
		`{"user_ids": [99999, 7, 7, 3, 70000, 4294967295], "sets": ["country/sg", "opted-out"]}`)
	require.Equal(t, &api.LookupIDs{Generation: g.current().Generation(), Users: []api.UserLookup{
		{UserID: 99_999, Segment: "default", Sets: []string{"opted-out"}}, {UserID: 7, Segment: "vip",
			Sets: []string{"opted-out"}},
		{UserID: 3, Segment: "vip", Sets: []string{"country/sg", "opted-out"}}, {UserID: 70_000, Segment: "active",
			Sets: []string{}},
		{UserID: 4_294_967_295, Segment: "default", Sets: []string{}},
	}}, a)
	require.Equal(t, []api.UserLookup{{UserID: 3, Segment: "vip", Sets: []string{}}},
		lookedUp[api.LookupIDs](s, `{"user_ids": [3]}`).Users)

	b := lookedUp[api.LookupBitmaps](s, fields{"users_bitmap": bitmapText(t, 3, 7, 150, 99_999),
		"sets": []string{"opted-out", "bounced"}})
	require.Equal(t, []string{"active", "default", "vip"}, keys(b.Segments))
	require.Equal(t, []uint32{3, 7}, b.Segments["vip"].ToArray())
	require.Equal(t, []uint32{3, 7, 99_999}, b.Sets["opted-out"].ToArray())
	require.Empty(t, b.Sets["bounced"].ToArray())
	require.Nil(t, b.Audience)

	c := lookedUp[api.LookupBitmaps](s, `{"audience": "vip & opted-out", "sets": ["country/sg"]}`)
	require.Equal(t, []uint32{3, 7}, c.Segments["vip"].ToArray())
	require.Equal(t, []uint32{3}, c.Sets["country/sg"].ToArray())
	require.Equal(t, &api.AudienceTaken{Generation: g.current().Generation(), Users: 2}, c.Audience)
}

// TestLookupsAreOfOneGeneration checks that an answer is from the requested generation only, and that a dropped one
// gives 410.
func TestLookupsAreOfOneGeneration(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	before := g.current().Generation()
	sets := testSets()
	sets["opted-out"] = bitmap.Of(5)
	g.add(t, sets)
	for generation, want := range map[string][]uint32{before: {3, 7, 1000, 99_999}, g.current().Generation(): {5},
		"": {5}} {
		query, body := "", fields{"user_ids": []int{3, 5}, "sets": []string{"opted-out"}}
		if generation != "" {
			query, body["generation"] = "?generation="+generation, generation
		}
		m := decodeAs[api.Members](t, s.get("/v1/segments/opted-out/members"+query).body)
		require.Equal(t, want, m.UserIDs)
		r := s.get("/v1/segments/opted-out/bitmap" + query)
		require.Equal(t, want, readBitmap(t, r.body))
		require.Equal(t, m.Generation, r.header.Get("X-Segments-Generation"))
		require.Equal(t, m.Generation, decodeAs[api.Segments](t, s.get("/v1/segments"+query).body).Generation)
		looked := lookedUp[api.LookupIDs](s, body)
		require.Equal(t, m.Generation, looked.Generation)
		require.Equal(t, slices.Contains(want, 3), len(looked.Users[0].Sets) == 1)
	}
	for _, path := range []string{"/v1/segments", "/v1/segments/vip/bitmap", "/v1/segments/vip/members"} {
		r := s.get(path + "?generation=2020")
		requireRefused(t, r, http.StatusGone, "gone", badBody{field: "generation",
			message: `"2020" does not exist or is no longer available`})
	}
	for _, path := range []string{"/v1/segments/lookup", "/v1/filter", "/v1/audience/count"} {
		body := `{"audience":"vip","generation":"2020","message_id":"m"}`
		if path != "/v1/filter" {
			body = strings.Replace(body, `,"message_id":"m"`, "", 1)
		}
		requireRefused(t, s.post(path, body), http.StatusGone, "gone", badBody{field: "generation",
			message: "does not exist"})
	}
}

// TestAGenerationThatIsNotYetHereIsWaitedFor checks that a generation which another instance already has is waited
// for.
func TestAGenerationThatIsNotYetHereIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	const later = "20991120T101500.000Z-00000000"
	for _, r := range []reply{
		s.get("/v1/segments?generation=" + later),
		s.post("/v1/filter", fields{"audience": "vip", "generation": later, "message_id": "m"}),
	} {
		requireRefused(t, r, http.StatusServiceUnavailable, "unavailable", badBody{field: "generation", message: later +
			" is not loaded yet: this instance checks every 30s"})
		require.Equal(t, "5", r.header.Get("Retry-After"))
	}
}

func readBitmap(t testing.TB, raw []byte) []uint32 {
	t.Helper()
	b := roaring.New()
	n, err := b.ReadFrom(bytes.NewReader(raw))
	require.NoError(t, err)
	require.EqualValues(t, len(raw), n)
	return b.ToArray()
}

func TestBitmapsOfNames(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	for name, want := range map[string][]uint32{
		"tz/Asia/Singapore": span(1, 100), "tz%2FAsia%2FSingapore": span(1, 100), "tz/Asia%2fSingapore": span(1, 100),
		"vip":    span(1, 10),
		"active": append(span(10, 2001), span(70_000, 70_101)...), "opted-out": {3, 7, 1000, 99_999},
		"opted%2Dout": {3, 7, 1000, 99_999},
	} {
		r := s.get("/v1/segments/" + name + "/bitmap")
		require.Equal(t, http.StatusOK, r.status, name)
		require.Equal(t, "application/octet-stream", r.header.Get("Content-Type"))
		require.Equal(t, `"`+g.current().Generation()+`"`, r.header.Get("ETag"))
		require.Equal(t, want, readBitmap(t, r.body), name)
		head := s.call(http.MethodHead, "/v1/segments/"+name+"/bitmap", "")
		require.Equal(t, http.StatusOK, head.status)
		require.Equal(t, r.header.Get("Content-Length"), head.header.Get("Content-Length"))
		require.Empty(t, head.body)
		same := s.request(http.MethodGet, "/v1/segments/"+name+"/bitmap", "")
		same.Header.Set("If-None-Match", `"other", W/`+r.header.Get("ETag")) // a proxy that compresses passes the tag on in this form
		require.Equal(t, http.StatusNotModified, s.do(same).status)
	}
	require.Equal(t, g.current().Set("opted-out").Bytes(), s.get("/v1/segments/opted-out/bitmap").body,
		"the published bytes")
}

func TestPagesOfMembers(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	for name, want := range map[string][]uint32{"active": append(span(10, 2001), span(70_000, 70_101)...),
		"tz/Asia/Singapore": span(1, 100), "opted-out": {3, 7, 1000, 99_999}} {
		for _, size := range []string{"1000", "10000", "3"} {
			if size == "3" && len(want) > 10 {
				continue
			}
			var got []uint32
			query := "?max=" + size
			for {
				m := decodeAs[api.Members](t, s.get("/v1/segments/"+name+"/members"+query).body)
				require.Equal(t, name, m.Name)
				got = append(got, m.UserIDs...)
				if m.Next == nil {
					break
				}
				query = "?max=" + size + "&generation=" + m.Generation + "&after=" + fmt.Sprint(*m.Next)
			}
			require.Equal(t, want, got, "%s by %s", name, size)
		}
	}
	last := decodeAs[api.Members](t, s.get("/v1/segments/opted-out/members?after=4294967295").body)
	require.Equal(t, &api.Members{Generation: g.current().Generation(), Name: "opted-out", UserIDs: []uint32{}}, last)
	require.Equal(t, []uint32{99_999},
		decodeAs[api.Members](t, s.get("/v1/segments/opted-out/members?after=65535").body).UserIDs)
}

func TestQueriesAreChecked(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	for path, want := range map[string]badBody{
		"/v1/segments?x=1": {field: "x",
			message: "the parameter does not exist: this call has generation"},
		"/v1/segments?generation=":               {field: "generation", message: "must not be empty"},
		"/v1/segments?generation=a&generation=a": {field: "generation", message: "given 2 times"},
		"/v1/segments?generation":                {field: "generation", message: "must not be empty"},
		"/v1/segments?after=1":                   {field: "after", message: "the parameter does not exist"},
		"/v1/segments/vip/bitmap?max=1":          {field: "max", message: "the parameter does not exist"},
		"/v1/segments/vip/members?max=0": {field: "max",
			message: "0 is not a number from 1 to 100000"},
		"/v1/segments/vip/members?max=100001":                  {field: "max", message: "from 1 to 100000"},
		"/v1/segments/vip/members?max=01":                      {field: "max", message: "01 is not a number"},
		"/v1/segments/vip/members?max=1e3":                     {field: "max", message: "1e3"},
		"/v1/segments/vip/members?after=-1":                    {field: "after", message: "-1 is not a user id"},
		"/v1/segments/vip/members?after=4294967296":            {field: "after", message: "not a user id"},
		"/v1/segments/vip/members?after=1;max=2":               {message: "is not valid in a URL"},
		"/v1/segments/vip/members?%zz":                         {message: "is not valid in a URL"},
		"/v1/status?generation=a":                              {message: "no query parameters"},
		"/v1/segments/vip/members?Max=1":                       {field: "Max", message: "has after, max, generation"},
		"/v1/segments?generation=" + strings.Repeat("g", 1025): {field: "generation", message: "1025 bytes"},
	} {
		requireRefused(t, s.get(path), http.StatusBadRequest, "invalid_request", want)
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	for _, name := range []string{
		"nobody", "..", "%2e%2e", "../status", "a/../vip", "tz", "tz/Asia", "vip/", "%00", "%ff", "vip%20",
		"%22%3Cscript%3E", strings.Repeat("x", 5000),
		"vip%2Fbitmap", "all", "default", "vip%0a", "opted-ou",
	} {
		for _, call := range []string{"/bitmap", "/members"} {
			r := s.get("/v1/segments/" + name + call)
			require.Equal(t, http.StatusNotFound, r.status, "%s: %s", name, r.body)
			require.Less(t, len(r.body), 400)
			require.NotContains(t, string(r.body), "<")
		}
	}
	near := s.get("/v1/segments/optedout/bitmap").failure(t)
	require.Equal(t, "generation "+g.current().Generation()+
		` has no segment or set "optedout"; the nearest is "opted-out"`, near.Error.Message)
	for path, status := range map[string]int{
		"/v1/segments/": 404, "/v1/segments/vip": 404, "/v1/segments//bitmap": 404, "/v1/segments/bitmap": 404,
		"/v1/segments/vip/bitmap/": 404,
		"/v1/segments/vip/other":   404, "/v1/segments/lookup": 405, "/v1/audience/count": 405,
	} {
		require.Equal(t, status, s.get(path).status, path)
	}
	put := s.call(http.MethodPut, "/v1/segments/tz/Asia/Singapore/bitmap", "")
	require.Equal(t, http.StatusMethodNotAllowed, put.status)
	require.Contains(t, put.header.Get("Allow"), http.MethodHead)
}

func TestLookupRefusesBodies(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	var names []string
	for i := range 65 {
		names = append(names, fmt.Sprintf(`"x%d"`, i))
	}
	for _, c := range []badBody{
		{"nobody", `{"sets":["opted-out"]}`, "user_ids", "exactly one of user_ids, users_bitmap and audience"},
		{"empty batch", `{"user_ids":[]}`, "user_ids", "the batch is empty"},
		{"unknown set", `{"user_ids":[1],"sets":["opted-out","optedout"]}`, "sets[1]", `the nearest is "opted-out"`},
		{"a segment", `{"user_ids":[1],"sets":["vip"]}`, "sets[0]", "is a segment"},
		{"set twice", `{"user_ids":[1],"sets":["opted-out","opted-out"]}`, "sets[1]", "twice"},
		{"set null", `{"user_ids":[1],"sets":[null]}`, "sets[0]", "null is not a string"},
		{"set empty", `{"user_ids":[1],"sets":[""]}`, "sets[0]", "0 bytes"},
		{"sets text", `{"user_ids":[1],"sets":"opted-out"}`, "sets", "not an array of names"},
		{"sets cut off", `{"user_ids":[1],"sets":["a"`, "", "ends at byte"},
		{"many sets", `{"user_ids":[1],"sets":[` + strings.Join(names, ",") + `]}`, "sets", "at most 64 names"},
		{"message id", `{"user_ids":[1],"message_id":"m"}`, "message_id", "its fields are user_ids, "},
		{"both", `{"user_ids":[1],"audience":"vip"}`, "audience", "user_ids and audience are both given"},
		{"cursor without", `{"user_ids":[1],"cursor":"x"}`, "cursor", "requires the field audience"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.with(t).post("/v1/segments/lookup", c.body)
			f := r.failure(t)
			require.Equal(t, http.StatusBadRequest, r.status, string(r.body))
			if c.field != "" {
				require.Equal(t, c.field, f.Error.Field)
			}
			require.Contains(t, f.Error.Message, c.message)
		})
	}
}

// TestLookupsAreBounded checks that look-ups count against the client's rate and the budgets like filter calls, and
// need the scope read.
func TestLookupsAreBounded(t *testing.T) {
	t.Parallel()
	rates := gate.Rules{Rate: capping.Rate{UsersPerSecond: 100, Burst: 100}}
	s, _ := newSetService(t, func(cfg *server.Config) {
		cfg.Access = rates
		cfg.Bounds = gate.Bounds{JSONUsers: 1000, BitmapUsers: 1500}
	})
	tooMany := s.post("/v1/segments/lookup", fields{"user_ids": span(0, 101)})
	requireRefused(t, tooMany, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "user_ids", message: "at most 100 users"})
	page := s.get("/v1/segments/vip/members?max=101")
	requireRefused(t, page, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "max", message: "at most 100"})
	blast := s.post("/v1/filter", `{"message_id":"m","audience":"active","max_users":101}`)
	requireRefused(t, blast, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "audience", message: "set max_users to at most 100"})
	require.Equal(t, http.StatusOK, s.post("/v1/segments/lookup", fields{"user_ids": span(0, 100)}).status)
	require.Equal(t, http.StatusTooManyRequests, s.post("/v1/segments/lookup", fields{"user_ids": span(0, 100)}).status)
	require.Equal(t, http.StatusTooManyRequests, s.get("/v1/segments/vip/members?max=100").status)
	bound := s.get("/v1/segments/vip/members?max=1001")
	requireRefused(t, bound, http.StatusBadRequest, "invalid_request", badBody{field: "max", message: "from 1 to 1000"})
}
