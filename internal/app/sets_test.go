package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// withSets is a service whose segments and configuration change while it runs.
type withSets struct {
	*Service
	t        testing.TB
	log      *testkit.Log
	file     string
	location objects.Location
	rest     string // sections of the configuration before limits
}

// configureSets returns a service with a configuration of which some sections change. The segment new has users 1 to
// 9.
func configureSets(t *testing.T, store string) *withSets {
	t.Helper()
	dir := t.TempDir()
	location, err := objects.Open(t.Context(), dir, objects.S3Config{})
	require.NoError(t, err)
	return &withSets{t: t, log: new(testkit.Log), file: filepath.Join(dir, "capper.yaml"), location: location, rest: fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}
segments: {source: %s, refresh: 100ms}
store: %s
channels: {push: 1, sms: 2}
limits: {default: {daily: 1}, segments: {new: {daily: 1}}}
`, dir, store)}
}

// publish makes a generation with the segment new and these sets live, and returns its name.
func (w *withSets) publish(sets map[string][]uint32) string {
	w.t.Helper()
	base, err := publish.ReadLiveState(w.t.Context(), w.location)
	require.NoError(w.t, err)
	candidate := &publish.Candidate{Names: []string{"new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2, 3, 4, 5, 6, 7, 8,
		9)}}
	for _, name := range []string{"bounced", "de", "opted-out", "tz/Asia/Tokyo"} {
		if users, ok := sets[name]; ok {
			candidate.Sets = append(candidate.Sets, publish.Set{Name: name, Bitmap: bitmap.Of(users...)})
		}
	}
	_, err = (&publish.Publisher{Location: w.location}).Publish(w.t.Context(), candidate, base, "")
	require.NoError(w.t, err)
	live, err := segments.ReadLiveManifest(w.t.Context(), w.location)
	require.NoError(w.t, err)
	return live.Generation
}

// configure writes the configuration with these sections.
func (w *withSets) configure(sections string) {
	w.t.Helper()
	replace(w.t, w.file, w.rest+sections)
}

func (w *withSets) start(t *testing.T) {
	t.Helper()
	watcher, err := config.NewWatcher(w.file, time.Now)
	require.NoError(t, err)
	w.Service = begin(t, Config{Watcher: watcher, Log: w.log})
}

// connections keeps the connections of call. Each service has an address of its own. A service closes idle connections
// much later, so no call meets a connection that its service is closing.
var connections = http.Transport{IdleConnTimeout: time.Second}

// call calls the service, decodes the body into to, and returns the status.
func (w *withSets) call(method, path string, body, to any) int {
	w.t.Helper()
	sent, err := json.Marshal(body)
	require.NoError(w.t, err)
	request, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.Addr().String()+path,
		bytes.NewReader(sent))
	require.NoError(w.t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := connections.RoundTrip(request)
	require.NoError(w.t, err)
	defer response.Body.Close()
	require.NoError(w.t, json.NewDecoder(response.Body).Decode(to))
	return response.StatusCode
}

func (w *withSets) metrics() string {
	response, err := http.Get("http://" + w.Addr().String() + "/metrics")
	require.NoError(w.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	return string(text)
}

func (w *withSets) status() (status api.Status) {
	require.Equal(w.t, http.StatusOK, w.call(http.MethodGet, "/v1/status", nil, &status))
	return status
}

func (w *withSets) ready() (status int, says string) {
	var failure api.Error
	status = w.call(http.MethodGet, "/readyz", nil, &failure)
	return status, failure.Error.Message
}

func (w *withSets) filter(request api.FilterRequest) (answer api.FilterIDs) {
	require.Equal(w.t, http.StatusOK, w.call(http.MethodPost, "/v1/filter", request, &answer))
	return answer
}

// TestAServiceWithoutASetIsNotReady checks that a service without a needed set starts, reports "not ready" and allows
// nobody. It becomes ready when the set is published.
func TestAServiceWithoutASetIsNotReady(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Single(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := configureSets(t, store)
			first := w.publish(map[string][]uint32{"bounced": {5}})
			w.configure("suppress: {opted-out: all, bounced: [sms]}\nquiet: [{from: '00:00', to: '23:59', zone: " +
				"UTC, sets: [de], channels: [sms]}]\n")
			w.start(t)
			code, says := w.ready()
			require.Equal(t, http.StatusServiceUnavailable, code)
			require.Contains(t, says, "not ready: generation "+first+" has no set de, opted-out")
			status := w.status()
			require.False(t, status.Ready)
			require.Equal(t, []string{"de", "opted-out"}, status.Segments.Missing)
			require.Contains(t, status.Segments.Error, "generation "+first+
				" is rejected: the published segments lack these sets, which the configuration requires: de, opted-out")
			require.Contains(t, w.metrics(), "\ncapper_segments_missing_sets 2\n")
			require.Regexp(t, `level=ERROR msg="not ready: .* generation=`+first+` missing="de, opted-out"`,
				w.log.String())
			require.Contains(t, w.log.String(), "msg=audit action=refresh result=incomplete")
			require.NotContains(t, w.log.String(), "result=accepted")

			for _, request := range []api.FilterRequest{
				{MessageID: "m", UserIDs: []uint32{1, 2}},
				{MessageID: "m", UserIDs: []uint32{1, 2}, Channel: "sms"},
			} {
				require.Equal(t, []uint32{1, 2}, w.filter(request).Unavailable,
					"nobody, and the same message id again is right")
			}

			w.publish(map[string][]uint32{"de": {3}, "bounced": {5}})
			testkit.Eventually(t, func() bool {
				return len(w.status().Segments.Missing) == 1 || strings.Contains(w.status().Segments.Error, "opted-out")
			})
			require.False(t, w.status().Ready, "one is not both")

			second := w.publish(map[string][]uint32{"de": {}, "bounced": {5}, "opted-out": {1}})
			testkit.Eventually(t, func() bool { code, _ := w.ready(); return code == http.StatusOK })
			status = w.status()
			require.True(t, status.Ready)
			require.Empty(t, status.Segments.Missing)
			require.Empty(t, status.Segments.Error)
			require.Equal(t, []string{"bounced", "de", "opted-out"}, names(status.Segments.Sets))
			answer := w.filter(api.FilterRequest{MessageID: "m", UserIDs: []uint32{1, 2}})
			require.Equal(t, []api.Denial{{UserID: 1, Segment: "new", Limit: api.LimitSuppressed, Set: "opted-out"}},
				answer.Denied)
			require.Equal(t, []uint32{2}, answer.Allowed)
			require.Equal(t, map[string]int{"opted-out": 1}, answer.Summary.Suppressed)
			require.Equal(t, second, answer.Generation)
			require.Contains(t, w.metrics(), "\ncapper_segments_missing_sets 0\n")
			testkit.Eventually(t, func() bool {
				return strings.Contains(w.log.String(),
					`level=INFO msg="the generation has every set that the configuration requires" generation=`+second)
			})
		})
	}
}

func names(sizes []api.SegmentSize) (names []string) {
	for _, size := range sizes {
		names = append(names, size.Name)
	}
	return names
}

// TestAGenerationWithoutASetIsRefused checks that a generation without a needed set is refused for every publisher.
func TestAGenerationWithoutASetIsRefused(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	first := w.publish(map[string][]uint32{"opted-out": {1}})
	w.configure("suppress: {opted-out: all}\n")
	w.start(t)
	second := w.publish(nil)
	testkit.Eventually(t, func() bool { return w.status().Segments.Error != "" })
	status := w.status()
	require.True(t, status.Ready)
	require.Equal(t, first, status.Generation)
	require.Equal(t, "generation "+second+" is rejected: the published segments lack these sets, which the "+
		"configuration requires: opted-out",
		status.Segments.Error)
	require.Len(t, w.filter(api.FilterRequest{MessageID: "m", UserIDs: []uint32{1}}).Denied, 1)

	w.configure("no_longer_suppressed: [opted-out]\n") // nobody is suppressed any longer, so the generation is usable
	testkit.Eventually(t, func() bool { return w.status().Generation == second })
	require.Equal(t, []uint32{1}, w.filter(api.FilterRequest{MessageID: "m", UserIDs: []uint32{1}}).Allowed)
	testkit.Eventually(t, func() bool { return w.status().Segments.Error == "" })
}

// TestAReloadThatNamesAMissingSetWaitsForIt checks that a reload with a missing set is refused as a whole, and
// applied automatically when a generation with the set is in use.
func TestAReloadThatNamesAMissingSetWaitsForIt(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Single(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := configureSets(t, store)
			first := w.publish(nil)
			w.configure("")
			w.start(t)
			before := w.status().ConfigVersion
			w.configure("suppress: {opted-out: all, new: all}\nquiet: [{from: '00:00', to: '00:01', sets: " +
				"[de]}]\npacers: {x: {rate: 1/s}}\n")
			testkit.Eventually(t, func() bool { return w.status().Config.Error != "" })
			status := w.status()
			require.Equal(t, strings.Join([]string{
				"change is not possible yet: quiet[0].sets: " +
					"generation (published version) " + first + " lacks set de: " +
					"the configuration change waits for a generation that contains the set",
				"suppress.new: " +
					"generation (published version) " + first + " lacks set new (the name is a segment there, " +
					"but a set is required): " +
					"the configuration change waits for a generation that contains the set",
				"suppress.opted-out: " +
					"generation (published version) " + first + " lacks set opted-out: " +
					"the configuration change waits for a generation that contains the set",
			}, "\n"), status.Config.Error)
			require.Equal(t, before, status.ConfigVersion)
			require.True(t, status.Ready)
			var pacers api.Pacers
			require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/v1/pacers", nil, &pacers))
			require.Empty(t, pacers.Pacers, "whole")
			require.Equal(t, []uint32{1}, w.filter(api.FilterRequest{MessageID: "m", UserIDs: []uint32{1}}).Allowed)

			w.configure("suppress: {opted-out: all}\nquiet: [{from: '00:00', to: '00:01', sets: [de]}]\npacers: {x: " +
				"{rate: 1/s}}\n")
			testkit.Eventually(t, func() bool { return !strings.Contains(w.status().Config.Error, "suppress.new") })
			w.publish(map[string][]uint32{"opted-out": {1}, "de": {}})
			testkit.Eventually(t, func() bool { return w.status().Config.Error == "" })
			require.NotEqual(t, before, w.status().ConfigVersion)
			require.Len(t, w.filter(api.FilterRequest{MessageID: "m", UserIDs: []uint32{1}}).Denied, 1,
				"also who was recorded")
			testkit.Eventually(t,
				func() bool { return strings.Contains(w.log.String(), "action=reload result=accepted") })
			require.Equal(t, 3, strings.Count(w.log.String(), "action=reload"),
				"refused twice and accepted: tries between are no news\n%s", w.log)
		})
	}
}

// TestAReloadMayTakeAMissingSetOut checks that a set which is already missing does not block other changes.
func TestAReloadMayTakeAMissingSetOut(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	w.publish(nil)
	w.configure("suppress: {opted-out: all, bounced: all}\n")
	w.start(t)
	w.configure("suppress: {bounced: [sms]}\nno_longer_suppressed: [opted-out]\nless_suppressed: [bounced]\n")
	testkit.Eventually(t, func() bool { return len(w.status().Segments.Missing) == 1 })
	require.Empty(t, w.status().Config.Error)
	w.configure("holdout: {percent: 100, salt: a}\nno_longer_suppressed: [bounced]\n")
	testkit.Eventually(t, func() bool { return w.status().Ready })
	require.Equal(t, api.LimitHoldout,
		w.filter(api.FilterRequest{MessageID: "m", UserIDs: []uint32{1}}).Denied[0].Limit)
	testkit.Eventually(t, func() bool { return w.status().Segments.Error == "" })
}

// TestAReloadThatDropsASuppressedSetMustSaySo checks that a reload which removes suppression is refused until the
// file acknowledges the removal. The status reports the removal while the file contains the acknowledgement.
func TestAReloadThatDropsASuppressedSetMustSaySo(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	w.publish(map[string][]uint32{"opted-out": {1}, "bounced": {2}})
	w.configure("suppress: {opted-out: all, bounced: {channels: [push, sms], even_exempt: true}}\n")
	w.start(t)
	before := w.status().ConfigVersion
	denied := func(user uint32, exempt bool, channel string) bool {
		enforce := !exempt
		answer := w.filter(api.FilterRequest{MessageID: "m", Channel: channel, UserIDs: []uint32{user},
			Enforce: &enforce})
		return len(answer.Denied) == 1 && answer.Denied[0].Limit == api.LimitSuppressed
	}
	for sections, why := range map[string]string{
		"suppress: {bounced: {channels: [push, sms], even_exempt: true}}\n": "suppress.opted-out: must not be " +
			"removed by a reload: its users would receive messages; if this is intended, add no_longer_suppressed: " +
			"[opted-out]",
		"suppress: {opted-out: all, bounced: {channels: [push], even_exempt: true}}\n": "suppress.bounced: must not " +
			"allow sends on sms after a reload: its users would receive messages; " +
			"if this is intended, add less_suppressed: [bounced]",
		"suppress: {opted-out: all, bounced: {channels: [push, sms]}}\n": "must not allow exempt sends after a reload",
		"suppress: {opted-out: [push, sms], bounced: all}\n" +
			"less_suppressed: [bounced]\n": "suppress.opted-out: must not allow sends without a channel after a reload",
		"suppress: {opted-out: all, bounced: {channels: [push, sms], even_exempt: true}}\nno_longer_suppressed: " +
			"[bounced]\n": "must not name bounced, because suppress still names this set",
		"": "suppress.bounced: must not be removed by a reload",
	} {
		w.configure(sections)
		testkit.Eventually(t, func() bool { return strings.Contains(w.status().Config.Error, why) })
		require.Equal(t, before, w.status().ConfigVersion)
		require.Contains(t, w.log.String(), "configuration rejected, the previous one stays in force")
		require.True(t, denied(1, false, "push"))
		require.True(t, denied(2, true, "sms"))
	}

	w.configure("suppress: {bounced: [push]}\nno_longer_suppressed: [opted-out]\nless_suppressed: [bounced]\n")
	testkit.Eventually(t, func() bool { return w.status().ConfigVersion != before })
	require.False(t, denied(1, false, "push"))
	require.False(t, denied(2, false, "sms"))
	require.True(t, denied(2, false, "push"))
	problems := strings.Join(w.status().Config.Problems, "\n")
	require.Regexp(t, `no_longer_suppressed: opted-out was suppressed until 20\d\d-\S+Z: take it out of the list once that is settled`, problems)
	require.Regexp(t, `less_suppressed: bounced was suppressed for more sends until 20\d\d-\S+Z`, problems)
	require.Contains(t, w.log.String(), "a reload removed a suppression")

	after := w.status().ConfigVersion
	w.configure("suppress: {bounced: [push]}\n")
	testkit.Eventually(t, func() bool { return w.status().ConfigVersion != after })
	require.NotContains(t, strings.Join(w.status().Config.Problems, "\n"), "suppressed")
	w.configure("suppress: {bounced: all, opted-out: all}\n")
	testkit.Eventually(t, func() bool { return denied(1, false, "push") })
}

// TestProblemsOfSets checks that the status lists unusual but allowed settings of sets and audiences.
func TestProblemsOfSets(t *testing.T) {
	t.Parallel()
	w := configureSets(t, onEmbedded(t.TempDir()))
	first := w.publish(map[string][]uint32{"de": {1}})
	w.configure("quiet: [{from: '00:00', to: '23:59', zone: user, channels: [sms]}]\naudiences: {de: new, good: new " +
		"- de2, fine: all - new}\n")
	w.start(t)
	problems := strings.Join(w.status().Config.Problems, "\n")
	require.Contains(t, problems, "timezone is not set")
	require.Contains(t, problems, "time zones of users are used, but "+
		"generation "+first+" has no set tz/…: every user gets the zone UTC")
	require.Contains(t, problems, `audiences.good: in good of the configuration: generation `+first+
		` has no segment or set "de2"; the nearest is "de"`)
	require.Contains(t, problems,
		`audiences.de: column 1: "de" is an expression of the configuration and also the name of a segment or set of generation `+first)
	require.NotContains(t, problems, "fine")

	w.configure("quiet: [{from: '00:00', to: '23:59', zone: user, channels: [sms]}]\ntimezone: " +
		"Asia/Tokyo\naudiences: {good: new - de}\n")
	w.publish(map[string][]uint32{"de": {1}, "tz/Asia/Tokyo": {1}})
	testkit.Eventually(t, func() bool {
		problems := w.status().Config.Problems // almost closed, and on one day of the year in Nuuk completely
		return !slices.ContainsFunc(problems, func(problem string) bool {
			return !strings.HasPrefix(problem, "quiet")
		}) &&
			strings.Contains(strings.Join(problems, " "), "America/Nuuk")
	})
	denied := w.filter(api.FilterRequest{MessageID: "m", Channel: "sms", UserIDs: []uint32{1, 2},
		Record: new(bool)}).Denied
	if len(denied) > 0 { // all but one minute of the day
		require.Equal(t, "Asia/Tokyo", denied[0].Timezone)
	}
}
