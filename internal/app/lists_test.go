package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/testkit"
)

// withLists is a service with lists of some size and a clock that the test can move.
type withLists struct {
	*withSets
	ahead atomic.Int64
	dir   string
}

func (w *withLists) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func configureLists(t *testing.T, source string, at objects.Location) *withLists {
	t.Helper()
	dir := t.TempDir()
	w := &withLists{dir: dir, withSets: &withSets{t: t, log: new(testkit.Log), file: filepath.Join(dir, "capper.yaml"),
		location: at}}
	w.rest = fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}
segments: {source: %q, refresh: 100ms, cache_dir: %s/cache}
store: %s
channels: {push: 1, sms: 2}
limits: {default: {}}
`, source, dir, onEmbedded(dir))
	return w
}

// begin starts the service.
func (w *withLists) begin(t *testing.T) {
	t.Helper()
	watcher, err := config.NewWatcher(w.file, w.now)
	require.NoError(t, err)
	w.Service = begin(t, Config{Watcher: watcher, Log: w.log, Clock: w.now})
}

// publish makes a generation with these sets live, like the publisher.
func (w *withLists) publish(sets map[string]*bitmap.Bitmap) string {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	base, err := publish.ReadLiveState(ctx, w.location)
	require.NoError(w.t, err)
	candidate := &publish.Candidate{Names: []string{"everybody"}, Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 20_000)}}
	for _, name := range sortedNames(sets) {
		candidate.Sets = append(candidate.Sets,
			publish.Set{Name: name, Bitmap: sets[name], Growth: publish.Growth{Said: true, OnlyGrows: name == "stop"}})
	}
	done, err := (&publish.Publisher{Location: w.location, Clock: w.now}).Publish(ctx, candidate, base, "forced")
	require.NoError(w.t, err)
	return done.Manifest.Generation
}

func sortedNames(sets map[string]*bitmap.Bitmap) (names []string) {
	for name := range sets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inUse waits until a generation is in use.
func (w *withLists) inUse(generation string) {
	w.t.Helper()
	testkit.Eventually(w.t, func() bool { return w.status().Generation == generation })
}

// refusesNow waits until a generation is refused.
func (w *withLists) refusesNow(generation string) *api.RefusedGeneration {
	w.t.Helper()
	testkit.Eventually(w.t, func() bool {
		r := w.status().Segments.Refused
		return r != nil &&
			r.Generation == generation
	})
	return w.status().Segments.Refused
}

// preview returns which of the users could receive a send on a channel.
func (w *withLists) preview(channel string, users ...uint32) api.FilterIDs {
	w.t.Helper()
	return w.filter(api.FilterRequest{Channel: channel, UserIDs: users, Record: new(bool)})
}

func (w *withLists) requireDenied(channel string, users ...uint32) {
	w.t.Helper()
	answer := w.preview(channel, users...)
	require.Empty(w.t, answer.Allowed)
	require.Empty(w.t, answer.Unavailable)
}

// TestAListThatLosesUsersIsRefused checks that users of the former list receive nothing while a generation is
// refused, also after restarts. Accepting exactly this change lets the generation pass.
func TestAListThatLosesUsersIsRefused(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, source string, at objects.Location) {
		w := configureLists(t, source, at)
		out, stop := bitmap.Range(0, 10_000), bitmap.Range(10_000, 10_010)
		first := w.publish(map[string]*bitmap.Bitmap{"opted-out": out, "stop": stop, "other": out})
		w.configure("suppress: {opted-out: {max_age: 240h}, stop: [sms]}\n")
		w.begin(t)
		require.Equal(t, first, w.status().Generation)

		of := map[string]*bitmap.Bitmap{"opted-out": bitmap.Of(), "stop": stop, "other": out}
		bad := w.publish(of)
		refused := w.refusesNow(bad)
		require.Equal(t, []string{"users"}, refused.Reasons)
		require.Contains(t, refused.Error, "set opted-out is empty: all 10000 users left, but at most 10 may leave")
		require.Contains(t, w.metrics(), `capper_segments_refused{reason="users"} 1`)
		w.requireDenied("", out.Sample(500, 1)...)
		require.Equal(t, first, w.status().Generation)
		require.True(t, w.status().Ready)

		require.NoError(t, w.Stop())
		w.begin(t) // a restart does not change the refusal
		require.Equal(t, first, w.status().Generation)
		w.refusesNow(bad)
		w.requireDenied("", out.Sample(500, 2)...)
		require.Contains(t, w.log.String(), "suppressed sets come from the cache")

		of["opted-out"] = bitmap.Range(11, 10_500) // compared across the skipped generation
		w.refusesNow(w.publish(of))
		of["opted-out"], of["stop"] = out, bitmap.Range(10_001, 10_011)
		require.Contains(t, w.refusesNow(w.publish(of)).Error,
			"1 of 10 users (10 %) left set stop, but at most 0 may leave")
		w.requireDenied("sms", out.Sample(500, 3)...)

		of["opted-out"], of["stop"] = bitmap.Range(10, 10_500), bitmap.Range(10_000, 10_011)
		w.inUse(w.publish(of)) // the maximum number of losses
		guarded := w.status().Segments.Guarded
		require.Equal(t, "opted-out", guarded[0].Name)
		require.EqualValues(t, 10, guarded[0].Left)
		require.EqualValues(t, 10, guarded[0].LeftSinceStart)
		require.False(t, guarded[0].OnlyGrows)
		require.True(t, guarded[1].OnlyGrows)
		require.EqualValues(t, 0.1, guarded[1].MayLosePercent)
		require.EqualValues(t, 240*3600, guarded[0].MaxAgeSeconds)
		require.Contains(t, w.metrics(), `capper_sets_left_users_total{set="opted-out"} 10`)
		require.Contains(t, w.metrics(), `capper_segments_refused{reason="users"} 0`)
		problems := strings.Join(w.status().Config.Problems, "\n")
		require.Contains(t, problems, "suppress.opted-out: users may leave the set in each build")
		require.NotContains(t, problems, "suppress.stop: the publisher")

		w.requireAccepted(of)
	})
}

// TestAStartWithoutACacheKeepsTheList checks an instance with a new or emptied cache directory. It keeps the list of
// the previous generation and takes the next good one.
func TestAStartWithoutACacheKeepsTheList(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, source string, at objects.Location) {
		w := configureLists(t, source, at)
		out, stop := bitmap.Range(0, 10_000), bitmap.Range(10_000, 10_010)
		of := map[string]*bitmap.Bitmap{"opted-out": out, "stop": stop, "other": out}
		first := w.publish(of)
		w.configure("suppress: {opted-out: all, stop: [sms]}\n")
		w.begin(t)
		require.Contains(t, strings.Join(w.status().Segments.Unjudged, "\n"),
			"the location has no earlier generation (published version) of the segments")
		of["opted-out"], of["other"] = bitmap.Of(), bitmap.Of()
		bad := w.publish(of)
		require.NoError(t, w.Stop())

		cached := w.rest
		for _, w.rest = range []string{strings.ReplaceAll(cached, w.dir+"/cache", w.dir+"/new"), cached} {
			require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "cache")))
			w.configure("suppress: {opted-out: all, stop: [sms]}\n")
			w.begin(t)
			status := w.status()
			require.True(t, status.Ready)
			require.Equal(t, first, status.Generation)
			require.Equal(t, segments.OriginSource, status.Segments.Origin)
			require.Empty(t, status.Segments.Unjudged)
			require.Contains(t, w.refusesNow(bad).Error,
				"set opted-out is empty: all 10000 users left, but at most 10 may leave")
			require.Contains(t, w.metrics(), `capper_segments_refused{reason="users"} 1`)
			w.requireDenied("", out.Sample(500, 4)...)
			require.NoError(t, w.Stop())
		}
		w.begin(t)
		require.Equal(t, segments.OriginCache, w.status().Segments.Origin,
			"the generation before is in the cache by now")
		w.requireDenied("", out.Sample(500, 5)...)
		of["opted-out"] = bitmap.Range(0, 10_001)
		w.inUse(w.publish(of))
		require.Nil(t, w.status().Segments.Refused)
		w.requireDenied("", out.Sample(500, 6)...)
	})
}

// requireAccepted publishes the end of a list together with its acceptance.
func (w *withLists) requireAccepted(of map[string]*bitmap.Bitmap) {
	w.t.Helper()
	was := of["opted-out"]
	of["opted-out"] = bitmap.Range(5_000, 5_001)
	w.refusesNow(w.publish(of))
	live, err := segments.ReadLiveManifest(w.t.Context(), w.location)
	require.NoError(w.t, err)
	accepted, err := live.WithAccepted([]segments.Accepted{{Set: "opted-out", FromSHA256: was.SHA256(),
		ToSHA256: of["opted-out"].SHA256(),
		Before:   was.Cardinality(), Removed: was.Cardinality() - 1, Change: "-99.99%", Reason: "a list of tests",
		At: w.now().UTC()}})
	require.NoError(w.t, err)
	require.NoError(w.t, w.location.Overwrite(w.t.Context(), segments.ManifestKey(accepted.Generation),
		accepted.Encode()))
	require.NoError(w.t, w.location.Overwrite(w.t.Context(), segments.CurrentKey,
		segments.PointerTo(accepted).Encode()))
	w.inUse(accepted.Generation)
	require.Nil(w.t, w.status().Segments.Refused)
	require.Equal(w.t, []uint32{1, 2}, w.preview("", 1, 2, 5_000).Allowed)
}

func TestZonesThatVanishAreRefusedWhereTheyCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := configureLists(t, dir, objectstest.Open(t, dir))
	sg, be := bitmap.Range(0, 900), bitmap.Range(900, 10_000)
	both, one := map[string]*bitmap.Bitmap{"tz/Asia/Singapore": sg, "tz/Europe/Berlin": be},
		map[string]*bitmap.Bitmap{"tz/Europe/Berlin": be}
	first := w.publish(both)
	w.configure("quiet: [{from: '21:00', to: '08:00', zone: user, channels: [push]}]\ntimezone: UTC\n")
	w.begin(t)
	require.EqualValues(t, 10_000, *w.status().Segments.ZonelessUsers, "of 20,000 users of the segment")
	require.Contains(t, w.metrics(), "capper_segments_zoneless_users 10000")
	night := time.Date(w.now().Year()+1, 1, 5, 14, 0, 0, 0, time.UTC) // 22:00 in Singapore
	quiet := func() int {
		return len(w.filter(api.FilterRequest{Channel: "push", UserIDs: []uint32{500, 899}, Record: new(bool),
			At: &night}).Denied)
	}
	require.Equal(t, 2, quiet())
	bad := w.publish(one)
	refused := w.refusesNow(bad)
	require.Equal(t, []string{"zones"}, refused.Reasons)
	require.Contains(t, refused.Error, "set tz/Asia/Singapore with its 900 users is missing")
	require.Equal(t, first, w.status().Generation)
	require.Equal(t, 2, quiet())

	w.configure("quiet: [{from: '21:00', to: '08:00', zone: UTC, channels: [push]}]\n")
	w.inUse(bad) // no rule uses users' time zones
	require.Nil(t, w.status().Segments.ZonelessUsers)
	require.NotContains(t, w.metrics(), "capper_segments_zoneless_users")
	w.configure("limits: {default: [{name: day, max: 1, calendar: day, timezone: user}]}\ntimezone: UTC\n")
	w.rest, _, _ = strings.Cut(w.rest, "limits:")
	w.configure("limits: {default: [{name: day, max: 1, calendar: day, timezone: user}]}\ntimezone: UTC\n")
	testkit.Eventually(t, func() bool {
		return strings.Contains(w.status().Config.Error, "has lost set tz/Asia/Singapore")
	})
	w.inUse(w.publish(both))
	testkit.Eventually(t, func() bool { return w.status().Config.Error == "" })
}

func TestAReloadJudgesFromThenOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := configureLists(t, dir, objectstest.Open(t, dir))
	out := bitmap.Range(0, 1_000)
	w.publish(map[string]*bitmap.Bitmap{"opted-out": out, "stop": bitmap.Of()})
	w.configure("")
	w.begin(t)
	half := w.publish(map[string]*bitmap.Bitmap{"opted-out": bitmap.Range(0, 500), "stop": bitmap.Of()})
	w.inUse(half)
	before := w.status().ConfigVersion
	w.configure("suppress: {opted-out: {may_lose: 20%}, stop: all}\n")
	testkit.Eventually(t, func() bool { return w.status().ConfigVersion != before })
	require.Contains(t, strings.Join(w.status().Config.Problems, "\n"),
		"suppress.stop: the set is empty, so it suppresses nobody")
	w.refusesNow(w.publish(map[string]*bitmap.Bitmap{"opted-out": bitmap.Range(0, 399), "stop": bitmap.Of()}))
	w.inUse(w.publish(map[string]*bitmap.Bitmap{"opted-out": bitmap.Range(0, 400), "stop": bitmap.Of()}))
	w.refusesNow(w.publish(map[string]*bitmap.Bitmap{"opted-out": bitmap.Of(), "stop": bitmap.Of()}))
	w.configure("suppress: {opted-out: {may_lose: 100%}, stop: all}\n")
	testkit.Eventually(t, func() bool { return w.status().Segments.Refused == nil })
	require.Equal(t, []uint32{1}, w.preview("", 1).Allowed)
}

// TestAListThatIsTooOld checks that a list without confirmation makes the affected sends unavailable while the
// service runs, and that a build makes them available again.
func TestAListThatIsTooOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := configureLists(t, dir, objectstest.Open(t, dir))
	of := map[string]*bitmap.Bitmap{"opted-out": bitmap.Range(0, 10), "stop": bitmap.Range(10, 20)}
	w.ahead.Store(int64(-40 * time.Hour))
	w.publish(of)
	w.ahead.Store(0)
	w.configure("suppress: {opted-out: {channels: [sms], max_age: 48h}, stop: all}\n")
	w.begin(t)
	require.Equal(t, []uint32{25}, w.preview("sms", 5, 15, 25).Allowed)

	w.ahead.Store(int64(9 * time.Hour))
	answer := w.preview("sms", 5, 15, 25)
	require.Equal(t, []uint32{5, 15, 25}, answer.Unavailable)
	require.Equal(t, []uint32{5, 25}, w.preview("push", 5, 15, 25).Allowed, "the list is not for it")
	status := w.status()
	require.True(t, status.Ready, "other sends go on")
	require.True(t, status.Segments.Guarded[0].TooOld)
	problems := strings.Join(status.Config.Problems, "\n")
	require.Contains(t, problems, "suppress.opted-out: the set is 49h old and max_age is 48h: the sends that it "+
		"suppresses are unavailable")
	require.Contains(t, problems, "suppress.stop: the set is 49h old, and no max_age limits its age")
	require.Contains(t, w.metrics(), `capper_sets_too_old{set="opted-out"} 1`)
	require.Contains(t, w.metrics(), `capper_sets_max_age_seconds{set="opted-out"} 172800`)
	require.NotContains(t, w.metrics(), `capper_sets_too_old{set="stop"}`)
	var explanation api.Explanation
	require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/v1/users/5", nil, &explanation))
	require.Equal(t, []string{"opted-out"}, explanation.TooOld)

	w.publish(of) // the same users: a build confirms the live generation
	testkit.Eventually(t, func() bool { return !w.status().Segments.Guarded[0].TooOld })
	require.Equal(t, []uint32{25}, w.preview("sms", 5, 15, 25).Allowed)

	of["opted-out"] = bitmap.Range(0, 11)
	w.inUse(w.publish(of))
	require.Empty(t, w.preview("sms", 5).Unavailable)
	require.Contains(t, w.metrics(), `capper_sets_too_old{set="opted-out"} 0`)
}
