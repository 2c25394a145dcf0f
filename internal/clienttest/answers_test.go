package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/testkit"
)

// recorder keeps the body of the last answer.
type recorder struct {
	mu   sync.Mutex
	last []byte
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = body
	return response, nil
}

// requireWhole holds the last answer to its type of package api: it has each field, with its value.
func (r *recorder) requireWhole(t *testing.T, wire any) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	decoder := json.NewDecoder(bytes.NewReader(r.last))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(wire), string(r.last))
	again, err := json.Marshal(wire)
	require.NoError(t, err)
	require.JSONEq(t, string(r.last), string(again))
}

// requirePassedOn holds what a method of the client returned to the answer that it got. Fields of the
// same type are equal; of others it is enough that they are not empty where the answer's are not.
func requirePassedOn(t *testing.T, wire, result any) {
	t.Helper()
	from, to := reflect.ValueOf(wire).Elem(), reflect.ValueOf(result).Elem()
	for _, field := range reflect.VisibleFields(from.Type()) {
		if !field.IsExported() || field.Anonymous {
			continue
		}
		was, is := from.FieldByIndex(field.Index), to.FieldByName(field.Name)
		require.True(t, is.IsValid(), "%s has no field %s", to.Type(), field.Name)
		if was.Type() == is.Type() {
			require.Equal(t, was.Interface(), is.Interface(), field.Name)
			continue
		}
		require.Equal(t, empty(was), empty(is), field.Name)
	}
}

func empty(v reflect.Value) bool { return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 }

// Each method passes on every field that the service answers.
func TestAnswersArePassedOnWhole(t *testing.T) {
	t.Parallel()
	audits := t.TempDir()
	w := serveSets(t, nil, "audiences: {engaged: active - opted-out}", "audit: {to: "+audits+"}",
		"pacers: {gateway: {limits: [{max: 10, window: 1s}], rate: 100/s, max_wait: 30s}}")
	r := new(recorder)
	c, ctx := newClient(t, client.Config{URL: w.url, HTTP: &http.Client{Transport: r}}), t.Context()
	users, bitmap := []uint32{1, 6, 7, 40_001}, roaring.BitmapOf(1, 6, 7, 40_001)
	engaged := &client.Audience{Expression: "engaged & vip", Sample: &api.Sample{Percent: 50, Salt: "s"},
		MaxUsers: 5}
	later := []time.Time{w.clock.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)}
	filter := func(r client.FilterRequest) func() (any, error) {
		return func() (any, error) { return c.Filter(ctx, &r) }
	}
	for _, call := range []struct {
		name string
		do   func() (any, error)
		wire any // what the service answered last
	}{
		{"filter ids", filter(client.FilterRequest{MessageID: "m", Channel: "email", Users: users, Waves: true}),
			new(api.FilterIDs)},
		{"filter ids, denied", filter(client.FilterRequest{MessageID: "n", Channel: "email", Users: users,
			Waves: true}), new(api.FilterIDs)},
		{"filter ids, counts", filter(client.FilterRequest{MessageID: "n", Users: users, Counts: true}),
			new(api.FilterIDs)},
		{"filter a bitmap", filter(client.FilterRequest{MessageID: "m", Channel: "email", Bitmap: bitmap, Waves: true}),
			new(api.FilterBitmaps)},
		{"filter a bitmap, denied", filter(client.FilterRequest{MessageID: "n", Channel: "email", Bitmap: bitmap,
			Waves: true}), new(api.FilterBitmaps)},
		{"filter an audience", filter(client.FilterRequest{MessageID: "m", Audience: engaged}), new(api.FilterBitmaps)},
		{"release ids", func() (any, error) {
			return c.Release(ctx, &client.ReleaseRequest{MessageID: "m", Users: users})
		}, new(api.ReleaseIDs)},
		{"release an audience", func() (any, error) {
			return c.Release(ctx, &client.ReleaseRequest{MessageID: "m", Audience: engaged})
		}, new(api.ReleaseBitmaps)},
		{"look up ids", func() (any, error) {
			return c.Lookup(ctx, &client.LookupRequest{Users: users, Sets: []string{"vip"}})
		}, new(api.LookupIDs)},
		{"look up an audience", func() (any, error) {
			return c.Lookup(ctx, &client.LookupRequest{Audience: engaged, Sets: []string{"vip"}})
		}, new(api.LookupBitmaps)},
		{"check sends", func() (any, error) {
			return c.CheckSends(ctx, &client.SendsCheckRequest{MessageID: "x", Users: users})
		}, new(api.SendsCheck)},
		{"import", func() (any, error) {
			return c.Import(ctx, &api.ImportRequest{MessageID: "x",
				Sends: []api.ImportedSend{{UserID: 9, At: w.clock.Now()}}})
		}, new(api.ImportAnswer)},
		{"count", func() (any, error) { return c.AudienceCount(ctx, &client.Audience{Expression: "engaged"}) },
			new(api.AudienceCount)},
		{"count in all", func() (any, error) {
			return c.Count(ctx, &client.CountRequest{Audience: &client.Audience{Expression: "active"}, Total: true})
		}, new(api.AudienceCount)},
		{"forecast", func() (any, error) {
			return c.Forecast(ctx, &client.ForecastRequest{Audience: engaged, At: later})
		}, new(api.Forecast)},
		{"permits", func() (any, error) {
			return c.Permits(ctx, api.PermitsRequest{Pacers: []string{"gateway"}, Permits: 1000,
				MaxWait: api.Wait(20 * time.Second)})
		}, new(api.Permits)},
		{"pacers", func() (any, error) { return c.Pacers(ctx) }, new(api.Pacers)},
		{"pacer", func() (any, error) { return c.Pacer(ctx, "gateway") }, new(api.PacerState)},
		{"messages", func() (any, error) { return c.Messages(ctx, client.MessagesQuery{}) }, new(api.Messages)},
		{"message", func() (any, error) { return c.Message(ctx, "m", "") }, new(api.MessageChannels)},
		{"segments", func() (any, error) { return c.Segments(ctx) }, new(api.Segments)},
		{"generations", func() (any, error) { return c.Generations(ctx) }, new(api.Generations)},
		{"explain", func() (any, error) { return c.Explain(ctx, 1) }, new(api.Explanation)},
		{"decisions", func() (any, error) { return c.Decisions(ctx, 1, w.clock.Now().Add(-time.Hour)) },
			new(api.Decisions)},
		{"decided users", func() (any, error) { return c.DecidedUsers(ctx, "n", "email", "") }, new(api.DecidedUsers)},
		{"limits", func() (any, error) { return c.Limits(ctx) }, new(api.Policy)},
		{"status", func() (any, error) { return c.Status(ctx) }, new(api.Status)},
	} {
		result, err := call.do()
		require.NoError(t, err, call.name)
		r.requireWhole(t, call.wire)
		requirePassedOn(t, call.wire, result)
	}
}

// A preview in one call or in parts names the generation and the configuration that decided it.
func TestPreviewsNameWhatDecidedThem(t *testing.T) {
	t.Parallel()
	w := serveSets(t, nil)
	r := new(recorder)
	c, ctx := newClient(t, client.Config{URL: w.url, HTTP: &http.Client{Transport: r}, BatchBitmap: 7000}), t.Context()
	for _, expression := range []string{"opted-out", "active"} {
		count, err := c.AudiencePreview(ctx, &client.Audience{Expression: expression}, "push")
		require.NoError(t, err)
		last := new(api.AudienceCount)
		r.requireWhole(t, last)
		require.NotEmpty(t, last.ConfigVersion)
		require.Equal(t, []string{count.Generation, last.ConfigVersion}, []string{count.PreviewGeneration,
			count.ConfigVersion})
	}
	push := "push"
	count, err := c.Count(ctx, &client.CountRequest{Audience: &client.Audience{Expression: "active"}, Total: true,
		Channel: &push})
	require.NoError(t, err)
	require.Empty(t, count.Segments)
	require.Empty(t, count.Sets)
	require.EqualValues(t, activeUsers, count.Users)
	require.Equal(t, activeUsers-3, count.Preview.Allowed)
	require.Equal(t, count.Generation, count.PreviewGeneration)
	_, err = c.Count(ctx, &client.CountRequest{})
	require.ErrorContains(t, err, "the audience expression must be set")
	older := w.current(ctx, c)
	w.await(w.publish(span(1, activeUsers-1)))
	count, err = c.AudiencePreview(ctx, &client.Audience{Expression: "active", Generation: older}, "push")
	require.NoError(t, err)
	require.Equal(t, []string{older, w.current(ctx, c)}, []string{count.Generation, count.PreviewGeneration},
		"the generation in use decides")
}

// current is the generation in use.
func (w *withSets) current(ctx context.Context, c *client.Client) string {
	list, err := c.Segments(ctx)
	require.NoError(w.t, err)
	return list.Generation
}

// atThird changes something before the third call that names a channel.
type atThird struct {
	mu     sync.Mutex
	calls  int
	change func()
}

func (a *atThird) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls, a.change = 0, change
}

func (a *atThird) made() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

func (a *atThird) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), `"channel"`) {
			a.mu.Lock()
			if a.calls++; a.calls == 3 {
				a.change()
			}
			a.mu.Unlock()
		}
		next.ServeHTTP(out, r)
	})
}

// reload puts further lines of the configuration in force.
func (w *withSets) reload(c *client.Client, more ...string) {
	w.t.Helper()
	version := func() string {
		s, err := c.Status(w.t.Context())
		require.NoError(w.t, err)
		return s.ConfigVersion
	}
	before := version()
	w.configure(more...)
	testkit.Eventually(w.t, func() bool { return version() != before })
}

// A reload that gives a name another meaning changes no run over an audience that has begun.
func TestARunOverANameGoesOnAfterAReload(t *testing.T) {
	t.Parallel()
	var calls atThird
	w := serveSets(t, calls.before, "audiences: {engaged: active - opted-out}")
	c, ctx := newClient(t, client.Config{URL: w.url, BatchBitmap: 7000, Parallel: 1}), t.Context()
	calls.set(func() { w.reload(c, "audiences: {engaged: vip - opted-out}") })
	asked, users := roaring.New(), 0
	r := &client.FilterRequest{MessageID: "m", Channel: "push", Audience: &client.Audience{Expression: "engaged"}}
	require.NoError(t, c.FilterAll(ctx, r, func(_ *client.FilterRequest, result *client.FilterResult) error {
		asked.Or(result.AllowedBitmap)
		users += result.Summary.Requested
		return nil
	}))
	require.Greater(t, calls.made(), 3)
	require.Equal(t, activeUsers-3, users)
	require.True(t, without(span(1, activeUsers), []uint32{1, 2, 3}).Equals(asked))
	now, err := c.AudienceCount(ctx, &client.Audience{Expression: "engaged"})
	require.NoError(t, err)
	require.EqualValues(t, activeUsers/3-1, now.Users, "a new run goes by the new meaning")
	require.Equal(t, "vip - opted-out", now.Expression)
}

// A preview in parts during which the generation or the configuration changes is begun again.
func TestAPreviewInPartsIsDecidedByOneConfiguration(t *testing.T) {
	t.Parallel()
	var calls atThird
	w := serveSets(t, calls.before)
	cfg := client.Config{URL: w.url, BatchBitmap: 7000, Parallel: 1}
	c, ctx := newClient(t, cfg), t.Context()
	status := func() *api.Status {
		s, err := c.Status(ctx)
		require.NoError(t, err)
		return s
	}
	for name, test := range map[string]func(){
		"generation":    func() { w.await(w.publish(span(1, activeUsers-5))) },
		"configuration": func() { w.reload(c, "holdout: {percent: 50, salt: s}") },
	} {
		calls.set(test)
		count, err := c.AudiencePreview(ctx, &client.Audience{Expression: "active"}, "push")
		require.NoError(t, err, name)
		now := status()
		require.Equal(t, []string{now.Generation, now.ConfigVersion}, []string{count.PreviewGeneration,
			count.ConfigVersion}, name)
		require.Equal(t, now.Generation, count.Generation, name)
		require.EqualValues(t, count.Users, count.Preview.Requested, name)
		require.Greater(t, calls.made(), 5, name)
	}
	cfg.Attempts = 1
	once := newClient(t, cfg)
	calls.set(func() { w.await(w.publish(span(1, activeUsers-9))) })
	_, err := once.AudiencePreview(ctx, &client.Audience{Expression: "active"}, "push")
	require.ErrorContains(t, err, "changed during the count")
}
