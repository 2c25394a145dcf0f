package clienttest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
)

// nobody is a generation without segments.
type nobody struct{ segmentstest.WithoutSets }

func (nobody) Generation() string                     { return "g1" }
func (nobody) Names() []string                        { return nil }
func (nobody) Lookup(numbers []uint32, codes []uint8) { clear(codes[:len(numbers)]) }

// newOfKind serves the API over an embedded store with ids of a kind, and a limit of one send a day.
func newOfKind(t testing.TB, kind ids.Kind, wrap func(http.Handler) http.Handler) *client.Client {
	t.Helper()
	key, err := ids.ParseKey("2b7e151628aed2a6abf7158809cf4f3c")
	require.NoError(t, err)
	scheme := ids.New(kind, key)
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), CacheBytes: 32 << 20,
		IDs: pebblestore.IDs{Kind: kind.String(), Check: scheme.Check()}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	policy := &capping.Policy{Version: "p1", Default: []capping.Limit{{Name: "daily", Max: 1, Window: 24 * time.Hour}}}
	url := newCapper(t, wrap, func(cfg *server.Config) {
		cfg.Capper = capping.New(store, func() capping.Segments { return nobody{} }, policy, time.Now)
		cfg.IDs = scheme
		cfg.Sets = func() live.Rules { return live.Rules{"opted-out": {Live: true}} }
	})
	return newClient(t, client.Config{URL: url, BatchIDs: 3, BatchBitmap: 3})
}

const (
	ann = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"
	ben = "00000000-0000-0000-0000-000000000000"
)

func TestClientCallsWithIDs(t *testing.T) {
	t.Parallel()
	for kind, given := range map[ids.Kind][2]string{
		ids.UUID: {ann, ben}, ids.Uint64: {"18446744073709551615", "7"}, ids.Text: {`"a/b?c#d%41`, ".."},
		ids.Dense: {"4294967295", "7"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			ctx, c, one, two := t.Context(), newOfKind(t, kind, nil), given[0], given[1]
			first, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m1", IDs: []string{one, two, one}})
			require.NoError(t, err)
			require.Equal(t, []string{one, two}, first.AllowedIDs)
			require.Equal(t, 1, first.Summary.Duplicates)
			second, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m2", IDs: []string{two}, Waves: true})
			require.NoError(t, err)
			require.Equal(t, two, second.DeniedIDs[0].UserID)
			require.Equal(t, []string{two}, second.Waves[0].IDs)
			forecast, err := c.Forecast(ctx, &client.ForecastRequest{IDs: []string{one, two}})
			require.NoError(t, err)
			require.Equal(t, 2, forecast.Forecasts[0].Summary.Denied["daily"])
			released, err := c.Release(ctx, &client.ReleaseRequest{MessageID: "m1", IDs: []string{two}})
			require.NoError(t, err)
			require.Equal(t, []string{two}, released.ReleasedIDs)
			_, err = c.ChangeSet(ctx, "opted-out", client.SetChange{AddIDs: []string{one}, RemoveIDs: []string{two}})
			require.NoError(t, err)
			_, err = c.ChangeSet(ctx, "opted-out", client.SetChange{AddIDs: []string{one}, RemoveIDs: []string{one}})
			require.ErrorContains(t, err, "must not be in both AddIDs and RemoveIDs")
			described, err := c.IDs(ctx)
			require.NoError(t, err)
			require.Equal(t, kind.String(), described.Kind)
			if kind == ids.Dense {
				return
			}
			e, err := c.ExplainID(ctx, one)
			require.NoError(t, err)
			require.Equal(t, one, e.UserID)
			require.Equal(t, "m1", *e.Sends[0].MessageID)
			require.Equal(t, "opted-out", e.Live[0].Set)
			require.NoError(t, c.EraseID(ctx, one))
			require.NoError(t, c.EraseIDWithSets(ctx, two))
			e, err = c.ExplainID(ctx, two)
			require.NoError(t, err)
			require.Empty(t, e.Live)
			e, err = c.ExplainID(ctx, one)
			require.NoError(t, err)
			require.Empty(t, e.Sends)
			require.Len(t, e.Live, 1)
		})
	}
}

// TestClientImportsAndChecksIDs imports sends of each kind of ids twice, and asks for them by id and by packed ids.
func TestClientImportsAndChecksIDs(t *testing.T) {
	t.Parallel()
	for kind, given := range map[ids.Kind][2]string{
		ids.UUID: {ann, ben}, ids.Uint64: {"18446744073709551615", "7"}, ids.Text: {`"a/b?c#d%41`, ".."},
		ids.Dense: {"4294967295", "7"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			ctx, c, one, two := t.Context(), newOfKind(t, kind, nil), given[0], given[1]
			request := &api.ImportRequestStrings{MessageID: "m1", Sends: []api.ImportedSendOfID{
				{UserID: one, At: time.Now().Add(-time.Hour)}}}
			for added := range 2 {
				answer, err := c.ImportIDsInto(ctx, "", request)
				require.NoError(t, err)
				require.Equal(t, &api.ImportAnswerStrings{Unavailable: []string{},
					Summary: api.ImportSummary{Requested: 1, Added: 1 - added, Known: added}}, answer)
			}
			check := &client.SendsCheckRequest{MessageID: "m1", IDs: []string{two, one}}
			found, err := c.CheckSendsOfIDs(ctx, check)
			require.NoError(t, err)
			require.Equal(t, []api.MissingStrings{{UserIDs: []string{two}}}, found.Missing)
			require.Equal(t, 1, found.Summary.Recorded)
			_, err = c.CheckSends(ctx, check)
			require.ErrorContains(t, err, "must set either Users or Bitmap, and must leave IDs, Packed and "+
				"Images empty")
			check.Packed = client.PackUint64s([]uint64{7, 1<<64 - 1})
			_, err = c.CheckSendsOfIDs(ctx, check)
			require.ErrorContains(t, err, "must set exactly one of IDs, Packed and Images, and must leave Users and "+
				"Bitmap empty")
			if kind == ids.Uint64 {
				check.IDs = nil
				found, err = c.CheckSendsOfIDs(ctx, check)
				require.NoError(t, err)
				require.Equal(t, []api.MissingStrings{{UserIDs: []string{two}}}, found.Missing)
			}
		})
	}
}

func TestClientCallsWithPackedIDs(t *testing.T) {
	t.Parallel()
	type uuid [16]byte // as of a library
	ctx, c := t.Context(), newOfKind(t, ids.UUID, nil)
	packed := client.PackUUIDs([]uuid{{1}, {2}, {1}})
	require.Equal(t, 3, packed.Len())
	first, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m1", Packed: packed})
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1}, first.AllowedBitmap.ToArray())
	require.Equal(t, byte(2), packed.ID(1)[0])
	second, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m2", Packed: packed, Waves: true})
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1}, second.DeniedBitmaps["daily"].ToArray())
	require.Equal(t, []uint32{0, 1}, second.Waves[0].Bitmap.ToArray())
	released, err := c.Release(ctx, &client.ReleaseRequest{MessageID: "m1", Packed: client.PackUUIDs([]uuid{{3}, {2}})})
	require.NoError(t, err)
	require.Equal(t, []uint32{1}, released.ReleasedBitmap.ToArray())

	numbers := newOfKind(t, ids.Uint64, nil)
	result, err := numbers.Filter(ctx, &client.FilterRequest{MessageID: "m", Packed: client.PackUint64s([]uint64{7,
		1<<64 - 1})})
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1}, result.AllowedBitmap.ToArray())
	e, err := numbers.ExplainID(ctx, "18446744073709551615")
	require.NoError(t, err)
	require.Len(t, e.Sends, 1)

	_, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Packed: &client.Packed{Bytes: []byte{1}, Width: 16}})
	require.ErrorContains(t, err, "Packed must hold Width bytes")
	_, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Packed: packed, IDs: []string{ann}})
	require.ErrorContains(t, err, "exactly one of")
	_, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Users: []uint32{7}})
	var refusal *client.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "user_ids[0]", refusal.Field)
	_, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Bitmap: roaring.BitmapOf(7)})
	require.ErrorContains(t, err, "this deployment's ids are uuid: use user_ids, users_packed or audience")
}

// TestClientSplitsIDs checks that FilterAll and ReleaseAll decide all ids in batches.
func TestClientSplitsIDs(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newOfKind(t, ids.UUID, nil)
	var given []string
	var packed [][16]byte
	for i := range 10 {
		given = append(given, fmt.Sprintf("%08x-0000-0000-0000-000000000000", i))
		packed = append(packed, [16]byte{3: byte(i)})
	}
	var allowed []string
	require.NoError(t, c.FilterAll(ctx, &client.FilterRequest{MessageID: "m", IDs: given},
		func(_ *client.FilterRequest, r *client.FilterResult) error {
			allowed = append(allowed, r.AllowedIDs...)
			return nil
		}))
	require.ElementsMatch(t, given, allowed)
	replayed := map[byte]bool{}
	require.NoError(t, c.FilterAll(ctx, &client.FilterRequest{MessageID: "m", Packed: client.PackUUIDs(packed)},
		func(batch *client.FilterRequest, r *client.FilterResult) error {
			require.LessOrEqual(t, batch.Packed.Len(), 3)
			for _, position := range r.ReplayedBitmap.ToArray() {
				replayed[batch.Packed.ID(int(position))[3]] = true
			}
			return nil
		}))
	require.Len(t, replayed, 10)
	released := 0
	require.NoError(t, c.ReleaseAll(ctx, &client.ReleaseRequest{MessageID: "m", IDs: given},
		func(r *client.ReleaseResult) error {
			released += len(r.ReleasedIDs)
			return nil
		}))
	require.Equal(t, 10, released)
}

// TestUnavailableIDsAreRetried checks that the client asks again for unavailable users alone, and that the positions of
// the second answer become those of the first request.
func TestUnavailableIDsAreRetried(t *testing.T) {
	t.Parallel()
	bits := func(users ...uint32) string {
		raw, err := roaring.BitmapOf(users...).ToBytes()
		require.NoError(t, err)
		return base64.StdEncoding.EncodeToString(raw)
	}
	const summary = `"summary":{"requested":4,"allowed":1,"denied":{},"unavailable":3,"duplicates":0,"replayed":0,
		"segments":{}},"generation":"g","config_version":"c"}`
	for name, answer := range map[string]string{
		"strings": `{"allowed":["` + ann + `"],"replayed":[],"denied":[],"unavailable":["` + ben + `"],` + summary,
		"packed": `{"allowed_positions":"` + bits(2) + `","replayed_positions":"` + bits() + `","denied_positions":{},
			"unavailable_positions":"` + bits(0, 1, 3) + `",` + summary,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			c := newOfKind(t, ids.UUID, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if calls.Add(1) > 1 {
						next.ServeHTTP(w, r)
						return
					}
					_, _ = w.Write([]byte(answer))
				})
			})
			if name == "strings" {
				result, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: "m", IDs: []string{ann, ben}})
				require.NoError(t, err)
				require.Equal(t, []string{ann, ben}, result.AllowedIDs)
				require.Empty(t, result.UnavailableIDs)
				return
			}
			result, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: "m",
				Packed: client.PackUUIDs([][16]byte{{1}, {2}, {3}, {4}})})
			require.NoError(t, err)
			require.Equal(t, []uint32{0, 1, 2, 3}, result.AllowedBitmap.ToArray())
			require.True(t, result.UnavailableBitmap.IsEmpty())
			require.EqualValues(t, 2, calls.Load())
		})
	}
}

// TestIDsThatAreNotStoredAreNamed checks the users in the error of a change.
func TestIDsThatAreNotStoredAreNamed(t *testing.T) {
	t.Parallel()
	c := newOfKind(t, ids.UUID, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":{"code":"unavailable","message":"m"},"unavailable_ids":["` + ben + `"]}`))
		})
	})
	_, err := c.ChangeSet(t.Context(), "opted-out", client.SetChange{AddIDs: []string{ann, ben}})
	require.Equal(t, []string{ben}, client.NotStoredIDs(err))
	require.Nil(t, client.NotStored(err))
	require.True(t, client.HasCode(err, api.CodeUnavailable))
}

// TestAudiencesOfOtherIDs checks what the client returns for an audience in each form of an answer, and that it asks
// again for unavailable users by their packed ids.
func TestAudiencesOfOtherIDs(t *testing.T) {
	t.Parallel()
	const counted = `{"generation":"g","expression":"vip","users":2,"segments":{},"sets":{}}`
	const taken = `"audience":{"generation":"g","users":2},`
	summary := func(allowed, unavailable int) string {
		return fmt.Sprintf(`%s"summary":{"requested":2,"allowed":%d,"denied":{},"unavailable":%d,"duplicates":0,"replayed":0,
			"segments":{}},"generation":"g","config_version":"c"}`, taken, allowed, unavailable)
	}
	packed := func(ids ...[16]byte) string {
		return base64.StdEncoding.EncodeToString(client.PackUUIDs(ids).Bytes)
	}
	one, two := [16]byte{1}, [16]byte{2}
	answers := map[string]string{
		"/v1/audience/count": counted,
		"/v1/filter": `{"allowed_packed":"` + packed(one) + `","replayed_packed":"","denied_packed":{},
			"unavailable_packed":"` + packed(two) + `",` + summary(1, 1),
		"/v1/release": `{"released_packed":"` + packed(one) + `","unavailable_packed":"",` + taken + `"summary":{"requested":2,
			"released":1,"absent":1,"unavailable":0,"duplicates":0}}`,
		"/v1/segments/lookup": `{"generation":"g","segment_packed":{"vip":"` + packed(one, two) + `"},"set_packed":{},` +
			strings.TrimSuffix(taken, ",") + `}`,
	}
	var calls atomic.Int64
	c := newOfKind(t, ids.UUID, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer := answers[r.URL.Path]; r.URL.Path != "/v1/filter" || calls.Add(1) == 1 {
				_, _ = w.Write([]byte(answer))
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	ctx, vip := t.Context(), &client.Audience{Expression: "vip"}
	result, err := c.Filter(ctx, &client.FilterRequest{MessageID: "m", Audience: vip})
	require.NoError(t, err)
	require.Equal(t, client.PackUUIDs([][16]byte{one, two}).Bytes, result.AllowedPacked)
	require.Empty(t, result.UnavailablePacked)
	require.Nil(t, result.AllowedBitmap)
	require.Equal(t, 2, result.Audience.Users)
	require.Equal(t, 2, result.Summary.Allowed)
	calls.Store(0)
	require.NoError(t, c.FilterAll(ctx, &client.FilterRequest{MessageID: "m", Audience: vip},
		func(_ *client.FilterRequest, r *client.FilterResult) error {
			require.Equal(t, client.PackUUIDs([][16]byte{two}).Bytes, r.ReplayedPacked)
			return nil
		}))
	released, err := c.Release(ctx, &client.ReleaseRequest{MessageID: "m", Audience: vip})
	require.NoError(t, err)
	require.Equal(t, one[:], released.ReleasedPacked)
	looked, err := c.Lookup(ctx, &client.LookupRequest{Audience: vip})
	require.NoError(t, err)
	require.Len(t, looked.SegmentPacked["vip"], 32)

	calls.Store(0)
	answers["/v1/filter"] = `{"allowed":["a"],"replayed":[],"denied":[],"unavailable":[],` + summary(2, 0)
	result, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Audience: vip})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, result.AllowedIDs)
	answers["/v1/release"] = `{"released":["a"],"unavailable":[],"summary":{"requested":1,"released":1,"absent":0,
		"unavailable":0,"duplicates":0}}`
	released, err = c.Release(ctx, &client.ReleaseRequest{MessageID: "m", Audience: vip})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, released.ReleasedIDs)
	answers["/v1/segments/lookup"] = `{"generation":"g","users":[{"user_id":"a","segment":"vip","sets":[]}]}`
	looked, err = c.Lookup(ctx, &client.LookupRequest{Audience: vip})
	require.NoError(t, err)
	require.Equal(t, "a", looked.IDs[0].UserID)
}

// TestClientListsMembersOfOtherIDs checks pages of members, and live changes of users whom no generation names.
func TestClientListsMembersOfOtherIDs(t *testing.T) {
	t.Parallel()
	for kind, given := range map[ids.Kind][2]string{ids.UUID: {ann, ben}, ids.Uint64: {"18446744073709551615", "7"},
		ids.Text: {"a", "b"}} {
		ctx, c := t.Context(), newOfKind(t, kind, nil)
		_, err := c.ChangeSet(ctx, "opted-out", client.SetChange{AddIDs: given[:]})
		require.NoError(t, err)
		described, err := c.IDs(ctx)
		require.NoError(t, err)
		key, err := ids.ParseKey(described.Key)
		require.NoError(t, err)
		images := segmentstest.Images(t, ids.New(kind, key), given[:]...)
		changes := func() map[string]string {
			changes := map[string]string{}
			for change, err := range c.SetMemberIDs(ctx, "opted-out", time.Now().Add(-time.Hour)) {
				require.NoError(t, err)
				require.WithinDuration(t, time.Now(), change.At, time.Minute)
				changes[change.UserID+change.Image] = change.Change
			}
			return changes
		}
		names := []string{fmt.Sprintf("%016x", images[0]), fmt.Sprintf("%016x", images[1])}
		if kind == ids.Uint64 {
			names = given[:]
		}
		require.Equal(t, map[string]string{names[0]: "added", names[1]: "added"}, changes())
		changed, err := c.ChangeSet(ctx, "opted-out", client.SetChange{AddImages: images[:1], RemoveImages: images[1:]})
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{changed.Added, changed.Removed})
		require.Equal(t, map[string]string{names[0]: "added", names[1]: "removed"}, changes())

		for _, wrong := range []client.SetChange{{AddImages: images, RemoveImages: images[:1]}, {AddImages: images,
			Remove: []uint32{1}}, {AddImages: images, RemoveIDs: given[:1]}} {
			_, err = c.ChangeSet(ctx, "opted-out", wrong)
			require.Error(t, err)
		}
	}
	_, err := newOfKind(t, ids.Dense, nil).ChangeSet(t.Context(), "opted-out", client.SetChange{AddImages: []uint64{7}})
	require.ErrorContains(t, err, "this deployment's ids are dense (32-bit numbers): use add")

	var asked []string
	c := newOfKind(t, ids.Text, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.RawQuery)
			if len(asked) == 1 {
				_, _ = w.Write([]byte(`{"generation":"g","name":"vip","user_ids":["a b","c&d"],"next":"c&d"}`))
				return
			}
			_, _ = w.Write([]byte(`{"generation":"g","name":"vip","user_ids":["e"],"next":null}`))
		})
	})
	var members []string
	for page, err := range c.MemberIDs(t.Context(), "vip", "") {
		require.NoError(t, err)
		members = append(members, page.UserIDs...)
	}
	require.Equal(t, []string{"a b", "c&d", "e"}, members)
	require.Equal(t, []string{"", "after=c%26d&generation=g"}, asked)
}

// TestNamesInAnswersAreNotForms checks that sets, segments and limits may have the names of an answer's fields.
func TestNamesInAnswersAreNotForms(t *testing.T) {
	t.Parallel()
	raw, err := roaring.BitmapOf(7).ToBytes()
	require.NoError(t, err)
	bits := base64.StdEncoding.EncodeToString(raw)
	answers := map[string]string{
		"/v1/segments/lookup": `{"generation":"g","segments":{"users":"` + bits + `"},"sets":{"segment_packed":"` +
			bits + `"}}`,
		"/v1/filter": `{"allowed_bitmap":"` + bits + `","replayed_bitmap":"` + bits + `","denied_bitmaps":{
			"allowed_packed":"` + bits + `"},"unavailable_bitmap":"` + bits + `","summary":{"requested":1,"allowed":1,
			"denied":{},"unavailable":0,"duplicates":0,"replayed":0,"segments":{}},"generation":"g","config_version":"c"}`,
	}
	c := newOfKind(t, ids.Dense, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(answers[r.URL.Path]))
		})
	})
	for _, r := range []*client.LookupRequest{
		{Bitmap: roaring.BitmapOf(7)}, {Audience: &client.Audience{Expression: "vip"}},
	} {
		looked, err := c.Lookup(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []uint32{7}, looked.Segments["users"].ToArray())
		require.Equal(t, []uint32{7}, looked.Sets["segment_packed"].ToArray())
	}
	result, err := c.Filter(t.Context(), &client.FilterRequest{MessageID: "m",
		Audience: &client.Audience{Expression: "vip"}})
	require.NoError(t, err)
	require.Equal(t, []uint32{7}, result.DeniedBitmaps["allowed_packed"].ToArray())
}

// TestAFailedChangeCountsWhatIsStored checks that the result of a change that stops in the middle counts the calls
// before.
func TestAFailedChangeCountsWhatIsStored(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	c := newOfKind(t, ids.UUID, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) > 1 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":{"code":"invalid_request","message":"m"}}`))
				return
			}
			_, _ = w.Write([]byte(`{"set":"opted-out","added":7,"removed":0,"superseded":0,"at":"2026-11-22T16:49:52Z"}`))
		})
	})
	given := make([]string, api.MaxSetUsers+1)
	for i := range given {
		given[i] = fmt.Sprintf("%08x-0000-0000-0000-000000000000", i)
	}
	changed, err := c.ChangeSet(t.Context(), "opted-out", client.SetChange{AddIDs: given})
	require.True(t, client.HasCode(err, api.CodeInvalidRequest))
	require.NotNil(t, changed)
	require.Equal(t, 7, changed.Added)
	_, err = c.ChangeSet(t.Context(), "opted-out", client.SetChange{AddIDs: []string{ann}, Remove: []uint32{1}})
	require.ErrorContains(t, err, "AddIDs and RemoveIDs must not be combined with Add, Remove")
}
