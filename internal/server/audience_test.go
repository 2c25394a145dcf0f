package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/server"
	"capper/internal/server/gate"
)

func TestFilterTakesAnAudience(t *testing.T) {
	onBothStoresWithSets(t, func(t *testing.T, s *service, g *generations) {
		a := s.filterBitmaps(`{"message_id": "m1", "audience": "vip - country/sg", "channel": "email"}`)
		require.Equal(t, []uint32{4, 5, 6, 9}, a.AllowedBitmap.ToArray())
		require.Equal(t, []uint32{7, 8}, a.DeniedBitmaps["suppressed"].ToArray())
		require.Equal(t, &api.AudienceTaken{Generation: g.current().Generation(), Users: 6}, a.Audience)
		require.Equal(t, 6, a.Summary.Requested)
		again := s.filterBitmaps(fields{"message_id": "m1", "users_bitmap": bitmapText(t, 4, 5, 6, 7, 8, 9),
			"channel": "email"})
		require.Equal(t, a.AllowedBitmap.ToArray(), again.ReplayedBitmap.ToArray())

		released := s.post("/v1/release", `{"message_id": "m1", "channel": "email", "audience": "vip - country/sg"}`)
		require.Equal(t, http.StatusOK, released.status, string(released.body))
		back := decodeAs[api.ReleaseBitmaps](t, released.body)
		require.Equal(t, a.AllowedBitmap.ToArray(), back.ReleasedBitmap.ToArray())
		require.Equal(t, a.Audience, back.Audience)

		nobody := s.filterBitmaps(`{"message_id": "m1", "audience": "vip & tz/America/New_York"}`)
		require.Empty(t, nobody.AllowedBitmap.ToArray())
		require.Equal(t, &api.AudienceTaken{Generation: g.current().Generation()}, nobody.Audience)
		require.Equal(t, http.StatusOK, s.post("/v1/release", `{"message_id": "m1", "audience": "vip - all"}`).status)
		require.Equal(t, http.StatusOK, s.post("/v1/segments/lookup",
			`{"audience": "vip - all", "sets": ["opted-out"]}`).status)
		named := s.filterBitmaps(`{"record": false, "audience": "engaged & tz/America/New_York", "detail": "counts"}`)
		require.Equal(t, 99, named.Summary.Requested)
	})
}

// TestPagesAndPartsKeepTheirGeneration checks that the pages and the parts of an audience keep the generation of the
// first one, and together are the whole audience.
func TestPagesAndPartsKeepTheirGeneration(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	before := g.current().Generation()
	want := append(span(10, 1000), append(span(1001, 2001), span(70_000, 70_101)...)...)
	var paged, parted []uint32
	query := fields{"record": false, "channel": "email", "audience": "engaged - vip", "max_users": 700}
	for calls := 0; ; calls++ {
		a := s.filterBitmaps(query)
		require.Equal(t, before, a.Audience.Generation)
		paged = append(paged, a.AllowedBitmap.ToArray()...)
		if a.Audience.Next == "" {
			require.Equal(t, 2, calls)
			break
		}
		require.Equal(t, 700, a.Audience.Users)
		query["cursor"] = a.Audience.Next
		if calls == 0 {
			g.add(t, map[string]*bitmap.Bitmap{"opted-out": bitmap.Range(1, 100), "bounced": bitmap.Of(1)})
		}
	}
	require.Subset(t, want, paged)
	part := &api.Part{Of: 7}
	for part != nil {
		a := lookedUp[api.LookupBitmaps](s, fields{"audience": "engaged - vip", "generation": before, "part": part})
		parted = append(parted, a.Segments["active"].ToArray()...)
		part = a.Audience.NextPart
	}
	require.Equal(t, want, parted)
	sampled := lookedUp[api.LookupBitmaps](s, `{"audience": "active", "sample": {"percent": 10, "salt": "a"}}`)
	require.InDelta(t, 209, sampled.Audience.Users, 60)
	require.Equal(t, sampled, lookedUp[api.LookupBitmaps](s,
		`{"audience": "active", "sample": {"percent": 10, "salt": "a"}}`))
	require.Equal(t, sampled, lookedUp[api.LookupBitmaps](s,
		`{"audience": "active", "sample": {"from": 0, "to": 10, "salt": "a"}}`))
	require.Equal(t, sampled, lookedUp[api.LookupBitmaps](s,
		`{"audience": "active", "sample": {"to": 10, "salt": "a"}}`))
	cells := 0
	for _, cell := range []string{`"to": 10`, `"from": 10, "to": 33.3`, `"from": 33.3, "to": 100`} {
		cells += lookedUp[api.LookupBitmaps](s, `{"audience": "active", "sample": {`+cell+
			`, "salt": "a"}}`).Audience.Users
	}
	require.Equal(t, lookedUp[api.LookupBitmaps](s, `{"audience": "active"}`).Audience.Users, cells,
		"cells are the whole audience")
}

func TestMoreUsersThanACallTakes(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t, func(cfg *server.Config) { cfg.Bounds = gate.Bounds{BitmapUsers: 1000} })
	r := s.post("/v1/filter", `{"message_id": "m", "audience": "active"}`)
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "audience", message: "2092 users are selected, but one call covers at most 1000: " +
			"set max_users to at most 1000"})
	require.Contains(t, string(r.body), "request at least 3 parts")
	r = s.post("/v1/audience/count", `{"audience": "active", "channel": "push"}`)
	requireRefused(t, r, http.StatusRequestEntityTooLarge, "too_large",
		badBody{field: "audience", message: "2092 users are selected, but one preview covers at most 1000: " +
			"request a sample, or one of at least 3 parts"})
	require.Equal(t, http.StatusOK, s.post("/v1/audience/count", `{"audience": "active"}`).status)
	require.Equal(t, http.StatusOK, s.post("/v1/audience/count",
		`{"audience": "active", "channel": "push", "part": {"of": 3, "index": 0}}`).status)
	require.Equal(t, http.StatusOK,
		s.post("/v1/filter", `{"message_id": "m", "audience": "active", "max_users": 1000}`).status)
	require.Equal(t, http.StatusOK,
		s.post("/v1/filter", `{"message_id": "m", "audience": "active", "part": {"of": 3, "index": 2}}`).status)
}

func TestAudiencesAreCounted(t *testing.T) {
	onBothStoresWithSets(t, func(t *testing.T, s *service, g *generations) {
		count := func(body string) *api.AudienceCount {
			r := s.post("/v1/audience/count", body)
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			return decodeAs[api.AudienceCount](t, r.body)
		}
		require.Equal(t, &api.AudienceCount{
			Generation: g.current().Generation(), Users: 12, Segments: map[string]uint64{"vip": 9, "active": 1,
				"default": 2},
			Sets: map[string]uint64{"opted-out": 4, "country/sg": 4, "bounced": 2, "tz/Asia/Singapore": 9},
		}, count(`{"audience": "vip | opted-out | country/sg"}`))
		preview := count(`{"audience": "vip", "channel": "push"}`)
		require.Equal(t, 7, preview.Preview.Allowed)
		require.Equal(t, map[string]int{"opted-out": 2}, preview.Preview.Suppressed)
		require.Equal(t, preview, count(`{"audience": "vip", "channel": "push"}`), "nothing is recorded")
		require.Empty(t, decodeAs[api.Explanation](t, s.get("/v1/users/1").body).Sends)
		require.Equal(t, 9, count(`{"audience": "vip", "channel": ""}`).Preview.Requested)
		require.Equal(t, 0, count(`{"audience": "vip - all", "channel": ""}`).Preview.Requested)
	})
}

func TestAudiencesRefuseBodies(t *testing.T) {
	t.Parallel()
	s, _ := newSetService(t)
	next := s.filterBitmaps(`{"record": false, "audience": "active", "max_users": 5}`).Audience.Next
	body := func(rest string) string { return `{"message_id":"m",` + rest + `}` }
	for _, c := range []struct {
		badBody
		column int
	}{
		{badBody{"empty", body(`"audience":""`), "audience", "must not be empty"}, 1},
		{badBody{"null", body(`"audience":null`), "audience", "null is not a string"}, 0},
		{badBody{"blank", body(`"audience":"  "`), "audience", "column 3: expected a name"}, 3},
		{badBody{"syntax", body(`"audience":"active - & vip"`), "audience",
			`column 10: expected a name or "(", got "&"`}, 10},
		{badBody{"parenthesis", body(`"audience":"(active"`), "audience", "column 8"}, 8},
		{badBody{"unknown name", body(`"audience":"active - vipp"`), "audience", `the nearest is "vip"`}, 10},
		{badBody{"glued", body(`"audience":"active-vip"`), "audience", `put spaces around the operator: active - vip`}, 1},
		{badBody{"foreign letters", body(`"audience":"active – vip"`), "audience", "column 8"}, 8},
		{badBody{"long", body(`"audience":"` + strings.Repeat("a", 5000) + `"`), "audience", ""}, 0},
		{badBody{"deep", body(`"audience":"` + strings.Repeat("(", 1000) + `a"`), "audience",
			"column 65: an expression must have at most 64 parentheses"}, 65},
		{badBody{"many names", body(`"audience":"` + strings.Repeat("a|", 256) + `a"`), "audience",
			"column 513: an expression must have at most 256 names"}, 513},
		{badBody{"ids and audience", body(`"user_ids":[1],"audience":"vip"`), "audience",
			"user_ids and audience are both given"}, 0},
		{badBody{"audience and ids", body(`"audience":"vip","user_ids":[1]`), "user_ids",
			"audience and user_ids are both given"}, 0},
		{badBody{"bitmap and audience", body(`"users_bitmap":"OjAAAAEAAAAAAAAAEAAAACoA","audience":"vip"`), "audience",
			"users_bitmap and audience are both given"}, 0},
		{badBody{"sample alone", body(`"user_ids":[1],"sample":{"percent":1,"salt":"a"}`), "sample",
			"requires the field audience"}, 0},
		{badBody{"part alone", body(`"user_ids":[1],"part":{"of":1,"index":0}`), "part", "requires the field audience"}, 0},
		{badBody{"cursor alone", body(`"cursor":"x"`), "cursor", "requires the field audience"}, 0},
		{badBody{"max_users alone", body(`"user_ids":[1],"max_users":5`), "max_users", "requires the field audience"}, 0},
		{badBody{"generation alone", body(`"user_ids":[1],"generation":"g"`), "generation", "requires the field audience"},
			0},
		{badBody{"sample twice", body(`"audience":"vip","sample":{"percent":1,"percent":1,"salt":"a"}`),
			"sample.percent", "twice"}, 0},
		{badBody{"sample field", body(`"audience":"vip","sample":{"percent":1,"salt":"a","seed":1}`), "sample.seed",
			"the field does not exist"}, 0},
		{badBody{"no salt", body(`"audience":"vip","sample":{"percent":1}`), "sample.salt", "is required"}, 0},
		{badBody{"salt empty", body(`"audience":"vip","sample":{"percent":1,"salt":""}`), "sample.salt", "0 bytes"}, 0},
		{badBody{"percent and to", body(`"audience":"vip","sample":{"percent":10,"to":10,"salt":"a"}`),
			"sample.percent", "must not be combined with from and to"}, 0},
		{badBody{"percent and from", body(`"audience":"vip","sample":{"from":0,"percent":10,"salt":"a"}`),
			"sample.percent", "must not be combined with from and to"}, 0},
		{badBody{"from alone", body(`"audience":"vip","sample":{"from":10,"salt":"a"}`), "sample.percent",
			"either percent, or from and to"}, 0},
		{badBody{"neither", body(`"audience":"vip","sample":{"salt":"a"}`), "sample.percent",
			"either percent, or from and to"}, 0},
		{badBody{"an empty cell", body(`"audience":"vip","sample":{"from":10,"to":10,"salt":"a"}`), "sample.to",
			"10 must be above from, which is 10"}, 0},
		{badBody{"a cell backwards", body(`"audience":"vip","sample":{"from":20,"to":10,"salt":"a"}`), "sample.to",
			"10 must be above from, which is 20"}, 0},
		{badBody{"from 100", body(`"audience":"vip","sample":{"from":100,"to":100,"salt":"a"}`), "sample.from",
			"100 is not a percentage from 0 and below 100"}, 0},
		{badBody{"from below 0", body(`"audience":"vip","sample":{"from":-1,"to":10,"salt":"a"}`), "sample.from",
			"-1 is not"}, 0},
		{badBody{"to 101", body(`"audience":"vip","sample":{"from":1,"to":100.1,"salt":"a"}`), "sample.to",
			"100.1 is not"}, 0},
		{badBody{"to null", body(`"audience":"vip","sample":{"from":1,"to":null,"salt":"a"}`), "sample.to", "null"}, 0},
		{badBody{"a cell without salt", body(`"audience":"vip","sample":{"from":1,"to":2}`), "sample.salt", "is required"},
			0},
		{badBody{"percent 0", body(`"audience":"vip","sample":{"percent":0,"salt":"a"}`), "sample.percent",
			"0 is not a percentage"}, 0},
		{badBody{"percent 101", body(`"audience":"vip","sample":{"percent":100.1,"salt":"a"}`), "sample.percent",
			"100.1"}, 0},
		{badBody{"percent text", body(`"audience":"vip","sample":{"percent":"1","salt":"a"}`), "sample.percent",
			"not a percentage"}, 0},
		{badBody{"percent huge", body(`"audience":"vip","sample":{"percent":1e999,"salt":"a"}`), "sample.percent",
			"1e999"}, 0},
		{badBody{"percent 01", body(`"audience":"vip","sample":{"percent":01,"salt":"a"}`), "sample.percent", "01"}, 0},
		{badBody{"sample text", body(`"audience":"vip","sample":"10%"`), "sample", "is not an object"}, 0},
		{badBody{"part of 0", body(`"audience":"vip","part":{"of":0,"index":0}`), "part.of", "from 1 to 10000"}, 0},
		{badBody{"part of many", body(`"audience":"vip","part":{"of":10001,"index":0}`), "part.of", "10001"}, 0},
		{badBody{"part beyond", body(`"audience":"vip","part":{"of":3,"index":3}`), "part.index",
			"3 does not exist: there are 3 parts"}, 0},
		{badBody{"part without index", body(`"audience":"vip","part":{"of":3}`), "part.index", "is required"}, 0},
		{badBody{"max_users 0", body(`"audience":"vip","max_users":0`), "max_users", "from 1 to 1000000"}, 0},
		{badBody{"max_users beyond", body(`"audience":"vip","max_users":1000001`), "max_users", "from 1 to 1000000"},
			0},
		{badBody{"no cursor", body(`"audience":"vip","cursor":"x"`), "cursor", "cursor: the cursor was not returned by an earlier call"}, 0},
		{badBody{"cursor of another", body(`"audience":"vip","cursor":"` + next + `"`), "cursor", "belongs to another query"},
			0},
		{badBody{"cursor of another part", body(`"audience":"active","part":{"of":2,"index":1},"cursor":"` + next +
			`"`), "cursor", "belongs to another query"}, 0},
		{badBody{"cursor and generation", body(`"audience":"active","generation":"g","cursor":"` + next + `"`),
			"generation", "leave the field generation out"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{"/v1/filter", "/v1/release"} {
				r := s.with(t).post(path, c.body)
				require.Equal(t, http.StatusBadRequest, r.status, string(r.body))
				e := decodeAs[api.Error](t, r.body).Error
				require.Equal(t, c.field, e.Field, e.Message)
				require.Contains(t, e.Message, c.message)
				require.Equal(t, c.column, e.Column, e.Message)
			}
		})
	}
	for message, body := range map[string]string{
		"is required": `{}`, "no such field": `{"audience":"vip","user_ids":[1]}`,
	} {
		require.Contains(t, s.post("/v1/audience/count", body).failure(t).Error.Message, message)
	}
	for _, field := range []string{"max_users", "cursor"} {
		f := s.post("/v1/audience/count", fmt.Sprintf(`{"audience":"vip","%s":"x"}`, field)).failure(t)
		require.Equal(t, field, f.Error.Field)
		require.Contains(t, f.Error.Message, "a count covers a whole audience")
	}
	unknown := s.post("/v1/audience/count", `{"audience":"vip","channel":"fax"}`).failure(t)
	require.Equal(t, "channel", unknown.Error.Field)
}
