package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
)

// without is those of the users who are not in the others.
func without(users, others []uint32) *roaring.Bitmap {
	return roaring.AndNot(roaring.BitmapOf(users...), roaring.BitmapOf(others...))
}

func TestLookups(t *testing.T) {
	t.Parallel()
	w := serveSets(t, nil)
	c, ctx := newClient(t, client.Config{URL: w.url, BatchBitmap: 7000}), t.Context()

	list, err := c.Segments(ctx)
	require.NoError(t, err)
	var names []string
	for _, s := range list.Segments {
		names = append(names, s.Kind+" "+s.Name)
	}
	require.Equal(t, []string{"segment active", "segment new", "set vip", "set opted-out", "set country/my"}, names)

	byID, err := c.Lookup(ctx, &client.LookupRequest{Users: []uint32{6, 4_000_000, 30_001},
		Sets: []string{"vip", "country/my"}})
	require.NoError(t, err)
	require.Equal(t, &client.LookupResult{Generation: list.Generation, Users: []api.UserLookup{
		{UserID: 6, Segment: "active", Sets: []string{"vip", "country/my"}},
		{UserID: 4_000_000, Segment: api.NoSegment, Sets: []string{}},
		{UserID: 30_001, Segment: "new", Sets: []string{"country/my"}},
	}}, byID)

	byBitmap, err := c.Lookup(ctx, &client.LookupRequest{Bitmap: roaring.BitmapOf(6, 30_001, 4_000_000),
		Sets: []string{"vip"}, Generation: list.Generation})
	require.NoError(t, err)
	require.Equal(t, []uint32{6}, byBitmap.Segments["active"].ToArray())
	require.Equal(t, []uint32{6}, byBitmap.Sets["vip"].ToArray())
	require.Nil(t, byBitmap.Audience)
	byAudience, err := c.Lookup(ctx, &client.LookupRequest{Audience: &client.Audience{Expression: "country/my - new"}})
	require.NoError(t, err)
	require.Equal(t, []uint32{5, 6}, byAudience.Segments["active"].ToArray())
	require.Equal(t, 2, byAudience.Audience.Users)

	for name, want := range map[string][]uint32{"country/my": {5, 6, 30_001}, "active": span(1, activeUsers)} {
		users, generation, err := c.SegmentBitmap(ctx, name, "")
		require.NoError(t, err)
		require.Equal(t, want, users.ToArray())
		require.Equal(t, list.Generation, generation)
		var members []uint32
		for page, err := range c.Members(ctx, name, "") {
			require.NoError(t, err)
			require.Equal(t, list.Generation, page.Generation)
			members = append(members, page.UserIDs...)
		}
		require.Equal(t, want, members)
	}

	count, err := c.AudienceCount(ctx, &client.Audience{Expression: "active - vip"})
	require.NoError(t, err)
	require.EqualValues(t, 20_000, count.Users)
	require.Equal(t, map[string]uint64{"active": 20_000}, count.Segments)
	require.Nil(t, count.Preview)
	for _, expression := range []string{"active", "opted-out"} { // in parts, and in one call
		count, err = c.AudiencePreview(ctx, &client.Audience{Expression: expression}, "push")
		require.NoError(t, err)
		require.EqualValues(t, count.Users, count.Preview.Requested)
		require.EqualValues(t, count.Users-3, count.Preview.Allowed)
		require.Equal(t, map[string]int{"opted-out": 3}, count.Preview.Suppressed)
	}
	usual := newClient(t, client.Config{URL: w.url}) // whose parts are larger than the service takes
	count, err = usual.AudiencePreview(ctx, &client.Audience{Expression: "active"}, "push")
	require.NoError(t, err)
	require.Equal(t, activeUsers-3, count.Preview.Allowed)
	_, err = usual.AudiencePreview(ctx, &client.Audience{Expression: "active", Part: &api.Part{Of: 1}}, "push")
	require.ErrorContains(t, err, "30000 users are selected, but one preview covers at most 16000",
		"a part of the caller's own stays that part")
}

func TestLookupRefusals(t *testing.T) {
	t.Parallel()
	w := serveSets(t, nil)
	c, ctx := newClient(t, client.Config{URL: w.url}), t.Context()
	_, err := c.Lookup(ctx, &client.LookupRequest{})
	require.ErrorContains(t, err, "exactly one of Users, Bitmap and Audience")
	_, err = c.Lookup(ctx, &client.LookupRequest{Users: []uint32{1}, Sets: []string{"vips"}})
	require.ErrorContains(t, err, `"vip"`)
	_, _, err = c.SegmentBitmap(ctx, "no/such", "")
	require.True(t, client.HasCode(err, client.CodeNotFound), "%v", err)
	_, _, err = c.SegmentBitmap(ctx, "vip", "20200101T000000.000Z-00000000")
	require.True(t, client.HasCode(err, client.CodeGone), "%v", err)
	pages := 0
	for _, err := range c.Members(ctx, "no such", "") {
		pages++
		require.True(t, client.HasCode(err, client.CodeNotFound), "%v", err)
	}
	require.Equal(t, 1, pages)

	for expression, column := range map[string]int{"active - & vip": 10, "active - vipp": 10, "": 0, "(vip": 5} {
		_, err := c.AudienceCount(ctx, &client.Audience{Expression: expression})
		var refused *client.Error
		require.ErrorAs(t, err, &refused, expression)
		require.Equal(t, client.CodeInvalidRequest, refused.Code)
		require.Equal(t, column, refused.Column, "%s: %v", expression, err)
	}
	_, err = c.AudienceCount(ctx, &client.Audience{Expression: "active - vipp"})
	require.ErrorContains(t, err, `"vip"`, "the nearest name")
	for _, ofOneCall := range []client.Audience{{Part: &api.Part{Of: 2}}, {MaxUsers: 5}, {Cursor: "x"}} {
		ofOneCall.Expression = "vip"
		require.ErrorContains(t, c.FilterAll(ctx, &client.FilterRequest{MessageID: "m", Audience: &ofOneCall}, nil),
			"read all parts of an audience: the fields Part, MaxUsers and Cursor of the audience must be empty")
		require.ErrorContains(t, c.ReleaseAll(ctx, &client.ReleaseRequest{MessageID: "m", Audience: &ofOneCall}, nil),
			"read all parts of an audience: the fields Part, MaxUsers and Cursor of the audience must be empty")
	}
	_, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Users: []uint32{1},
		Audience: &client.Audience{Expression: "vip"}})
	require.ErrorContains(t, err, "exactly one of Users, Bitmap and Audience")
}

// One call takes all of an audience, a part of it, or page after page.
func TestFilterOfAnAudience(t *testing.T) {
	t.Parallel()
	w := serveSets(t, nil)
	c, ctx := newClient(t, client.Config{URL: w.url}), t.Context()
	filter := func(id string, a client.Audience) *client.FilterResult {
		t.Helper()
		r, err := c.Filter(ctx, &client.FilterRequest{MessageID: id, Channel: "email", Audience: &a})
		require.NoError(t, err)
		require.EqualValues(t, r.Audience.Users, r.Summary.Requested)
		return r
	}
	whole := filter("whole", client.Audience{Expression: "vip - opted-out"})
	require.True(t, without(everyThird(activeUsers), []uint32{3}).Equals(whole.AllowedBitmap))
	require.Equal(t, map[string]int{"strict": 9999}, whole.Summary.ShadowDenied)
	require.Nil(t, whole.Allowed)

	paged := roaring.New()
	a := client.Audience{Expression: "active - vip", MaxUsers: 7000}
	for calls := 1; ; calls++ {
		r := filter("paged", a)
		paged.Or(r.AllowedBitmap)
		if a.Cursor = r.Audience.Next; a.Cursor == "" {
			require.Equal(t, 3, calls)
			break
		}
	}
	require.True(t, without(without(span(1, activeUsers), everyThird(activeUsers)).ToArray(),
		[]uint32{1, 2}).Equals(paged))

	parted := roaring.New()
	a = client.Audience{Expression: "new", Part: &api.Part{Of: 4}}
	for a.Part != nil {
		r := filter("parted", a)
		require.Equal(t, newUsers/4, r.Audience.Users)
		parted.Or(r.AllowedBitmap)
		a.Part = r.Audience.NextPart
	}
	require.EqualValues(t, newUsers, parted.GetCardinality())
	sampled := filter("sampled", client.Audience{Expression: "new", Sample: &api.Sample{Percent: 10, Salt: "a"}})
	require.InDelta(t, newUsers/10, sampled.Audience.Users, 200)
	again := filter("sampled", client.Audience{Expression: "new", Sample: &api.Sample{Percent: 10, Salt: "a"}})
	require.Equal(t, sampled.Audience, again.Audience)
}

// However many answers are lost and whatever is published meanwhile, a whole audience is that of
// the generation with which it began.
func TestFilterAllOfAnAudienceIsOfOneGeneration(t *testing.T) {
	t.Parallel()
	w := serveSets(t, flaky(func() bool { return rand.N(4) == 0 }))
	c := newClient(t, client.Config{URL: w.url, Attempts: 30, BatchBitmap: 1000, Parallel: 3,
		MaxBackoff: 5 * time.Millisecond})
	var total api.Summary
	var busy sync.Mutex
	allowed := roaring.New()
	generations := map[string]bool{}
	request := &client.FilterRequest{MessageID: "blast", Channel: "push",
		Audience: &client.Audience{Expression: "active - vip"}}
	err := c.FilterAll(t.Context(), request, func(batch *client.FilterRequest, r *client.FilterResult) error {
		require.True(t, busy.TryLock(), "each is called by one goroutine at a time")
		defer busy.Unlock()
		require.Equal(t, 20, batch.Audience.Part.Of)
		if total.Requested == 0 {
			w.await(w.publish([]uint32{7}))
		}
		generations[r.Audience.Generation] = true
		total.Add(&r.Summary)
		require.False(t, allowed.Intersects(r.AllowedBitmap), "no user is in two parts")
		allowed.Or(r.AllowedBitmap)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, generations, 1)
	require.Equal(t, 20_000, total.Requested)
	require.Equal(t, 19_998, total.Allowed)
	require.Equal(t, map[string]int{"opted-out": 2}, total.Suppressed)
	require.True(t, without(without(span(1, activeUsers), everyThird(activeUsers)).ToArray(),
		[]uint32{1, 2}).Equals(allowed))

	released, pinned := 0, ""
	for pinned = range generations {
	}
	back := &client.ReleaseRequest{MessageID: "blast", Channel: "push",
		Audience: &client.Audience{Expression: "active - vip", Generation: pinned}}
	require.NoError(t, c.ReleaseAll(t.Context(), back, func(r *client.ReleaseResult) error {
		require.Equal(t, pinned, r.Audience.Generation)
		released += r.Summary.Requested
		return nil
	}))
	require.Equal(t, 20_000, released)
	explanation, err := c.Explain(t.Context(), 7)
	require.NoError(t, err)
	require.Empty(t, explanation.Sends)
}

// A run that was interrupted goes on with the generation that its error names, and ends with the same result.
func TestAnInterruptedAudienceGoesOn(t *testing.T) {
	t.Parallel()
	w := serveSets(t, nil)
	c := newClient(t, client.Config{URL: w.url, BatchBitmap: 3000, Parallel: 1})
	request := &client.FilterRequest{MessageID: "blast", Audience: &client.Audience{Expression: "active"}}
	enough := errors.New("enough")
	parts := 0
	err := c.FilterAll(t.Context(), request, func(*client.FilterRequest, *client.FilterResult) error {
		if parts++; parts == 4 {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	var ended *client.AudienceError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 10, ended.Parts)
	require.Equal(t, 4, ended.Done)
	require.EqualValues(t, 12_000, ended.Asked)
	require.EqualValues(t, activeUsers, ended.Users)
	w.await(w.publish([]uint32{7}))

	request.Audience.Generation = ended.Generation
	var total api.Summary
	require.NoError(t, c.FilterAll(t.Context(), request, func(_ *client.FilterRequest, r *client.FilterResult) error {
		total.Add(&r.Summary)
		return nil
	}))
	require.Equal(t, activeUsers-3, total.Allowed)
	require.GreaterOrEqual(t, total.Replayed, 12_000-3)

	parted, err := c.Parts(t.Context(), request.Audience)
	require.NoError(t, err)
	require.Len(t, parted.List, 10)
	parted.List = parted.List[8:] // what an engine with a queue of its own has left
	total = api.Summary{}
	require.NoError(t, c.FilterParts(t.Context(), request, parted, func(_ *client.FilterRequest,
		r *client.FilterResult) error {
		total.Add(&r.Summary)
		return nil
	}))
	require.Equal(t, 6000, total.Replayed)
	nobody := &client.FilterRequest{MessageID: "none", Audience: &client.Audience{Expression: "new & active"}}
	require.NoError(t, c.FilterAll(t.Context(), nobody, func(*client.FilterRequest, *client.FilterResult) error {
		return enough
	}))
}

// A generation that is gone ends the run, which says how far it came; another run with the
// message id, of what is in use, counts nobody twice.
func TestAGenerationThatIsGone(t *testing.T) {
	t.Parallel()
	w := serveSets(t, nil)
	c := newClient(t, client.Config{URL: w.url, BatchBitmap: 3000, Parallel: 1})
	request := &client.FilterRequest{MessageID: "blast", Audience: &client.Audience{Expression: "active"}}
	answered := 0
	count := func(_ *client.FilterRequest, r *client.FilterResult) error {
		if answered == 0 {
			w.await(w.publish(span(1, activeUsers-1)))
			w.clock.Advance(2 * time.Hour)
		}
		answered += r.Summary.Requested
		return nil
	}
	err := c.FilterAll(t.Context(), request, count)
	require.True(t, client.HasCode(err, client.CodeGone), "%v", err)
	var ended *client.AudienceError
	require.ErrorAs(t, err, &ended)
	require.EqualValues(t, answered, ended.Asked)
	require.Less(t, ended.Done, ended.Parts)
	require.Contains(t, err.Error(), "a run with the same message id on the generation in use counts no user twice")

	var total api.Summary
	require.NoError(t, c.FilterAll(t.Context(), request, func(_ *client.FilterRequest, r *client.FilterResult) error {
		require.NotEqual(t, ended.Generation, r.Audience.Generation)
		total.Add(&r.Summary)
		return nil
	}))
	require.Equal(t, activeUsers-1-3, total.Allowed)
	require.GreaterOrEqual(t, total.Replayed, answered-3)
}

// unsure answers the first filter call with all of its users unavailable, as a service
// does whose store is away, and keeps who was asked for afterwards.
func unsure(calls *atomic.Int64, later *api.FilterRequest) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/filter" {
				next.ServeHTTP(w, r)
				return
			}
			if calls.Add(1) == 1 {
				empty := api.Bitmap{}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(&api.FilterBitmaps{
					AllowedBitmap: empty, ReplayedBitmap: empty,
					UnavailableBitmap: api.Bitmap{Bitmap: roaring.BitmapOf(3, 6, 9)},
					Audience:          &api.AudienceTaken{Generation: "g", Users: 3},
					Summary: api.Summary{Requested: 3, Unavailable: 3, Denied: map[string]int{},
						Segments: map[string]api.SegmentSummary{"active": {Requested: 3}}},
				})
				return
			}
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, later)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(w, r)
		})
	}
}

func TestUnavailableUsersOfAnAudienceAreAskedAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var later api.FilterRequest
	w := serveSets(t, unsure(&calls, &later))
	c := newClient(t, client.Config{URL: w.url})
	r, err := c.Filter(context.Background(), &client.FilterRequest{MessageID: "m",
		Audience: &client.Audience{Expression: "vip"}})
	require.NoError(t, err)
	require.Equal(t, []uint32{6, 9}, r.AllowedBitmap.ToArray())
	require.Equal(t, []uint32{3}, r.DeniedBitmaps[api.LimitSuppressed].ToArray())
	require.Equal(t, map[string]int{"opted-out": 1}, r.Summary.Suppressed)
	require.Equal(t, 3, r.Summary.Requested)
	require.Equal(t, api.SegmentSummary{Requested: 3, Allowed: 2}, r.Summary.Segments["active"])
	require.Equal(t, "g", r.Audience.Generation)
	require.Equal(t, []uint32{3, 6, 9}, later.UsersBitmap.ToArray(), "as a bitmap")
	require.Empty(t, later.Audience)
}
