package clienttest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/app"
	"capper/internal/bitmap"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/testkit"
)

// withSets is a whole service over a directory of generations.
type withSets struct {
	t        *testing.T
	url      string
	clock    *testkit.Clock
	location objects.Location

	file, base string // the configuration: its path, and the lines that stay
}

// configure replaces the further lines of the configuration, which the service reads within a second.
func (w *withSets) configure(more ...string) {
	w.t.Helper()
	next := w.file + ".next"
	require.NoError(w.t, os.WriteFile(next, []byte(w.base+strings.Join(more, "\n")+"\n"), 0o600))
	require.NoError(w.t, os.Rename(next, w.file))
}

// The users of the first generation: segments active and new, sets vip (every third),
// opted-out (few) and country/my.
const (
	activeUsers = 30_000 // from 1
	newUsers    = 10_000 // behind them
)

func everyThird(to uint32) (users []uint32) {
	for user := uint32(3); user <= to; user += 3 {
		users = append(users, user)
	}
	return users
}

func span(from, to uint32) (users []uint32) {
	for user := from; user <= to; user++ {
		users = append(users, user)
	}
	return users
}

// serveSets serves the first generation; wrap may stand before the service, and more are further
// lines of the configuration.
func serveSets(t *testing.T, wrap func(http.Handler) http.Handler, more ...string) *withSets {
	t.Helper()
	dir := t.TempDir()
	location, err := objects.Open(t.Context(), dir, objects.S3Config{})
	require.NoError(t, err)
	w := &withSets{t: t, clock: testkit.NewClockAt(time.Now().Add(-12 * time.Hour)), location: location}
	w.publish(span(1, activeUsers))
	w.file = filepath.Join(dir, "capper.yaml")
	w.base = fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s, max_bitmap_users: 16000}
segments: {source: %[1]s, refresh: 100ms, cache_dir: %[1]s/cache}
store: {embedded: {path: %[1]s/log.db}}
channels: {push: 1, email: 2}
limits: {default: [{name: daily, max: 1, window: 24h}, {name: strict, max: 0, window: 24h, shadow: true,
    channels: [email]}]}
suppress: {opted-out: all}
`, dir)
	w.configure(more...)
	watcher, err := config.NewWatcher(w.file, w.clock.Now)
	require.NoError(t, err)
	service, err := app.Start(t.Context(), app.Config{Watcher: watcher, Clock: w.clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, service.Stop()) })
	w.url = "http://" + service.Addr().String()
	if wrap != nil {
		at, err := url.Parse(w.url)
		require.NoError(t, err)
		srv := httptest.NewServer(wrap(httputil.NewSingleHostReverseProxy(at)))
		t.Cleanup(srv.Close)
		w.url = srv.URL
	}
	return w
}

// publish makes a generation live in which these users are active.
func (w *withSets) publish(active []uint32) (generation string) {
	w.t.Helper()
	base, err := publish.ReadLiveState(w.t.Context(), w.location)
	require.NoError(w.t, err)
	candidate := &publish.Candidate{
		Names:   []string{"active", "new"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Of(active...), bitmap.Of(span(activeUsers+1, activeUsers+newUsers)...)},
		Sets: []publish.Set{
			{Name: "vip", Bitmap: bitmap.Of(everyThird(activeUsers)...)},
			{Name: "opted-out", Bitmap: bitmap.Of(1, 2, 3)},
			{Name: "country/my", Bitmap: bitmap.Of(5, 6, activeUsers+1)},
		},
	}
	_, err = (&publish.Publisher{Location: w.location}).Publish(w.t.Context(), candidate, base, "")
	require.NoError(w.t, err)
	live, err := segments.ReadLiveManifest(w.t.Context(), w.location)
	require.NoError(w.t, err)
	return live.Generation
}

// await waits until the service uses a generation.
func (w *withSets) await(generation string) {
	c := newClient(w.t, client.Config{URL: w.url, Attempts: 30, MaxBackoff: 5 * time.Millisecond})
	testkit.Eventually(w.t, func() bool {
		list, err := c.Segments(w.t.Context())
		require.NoError(w.t, err)
		return list.Generation == generation
	})
}
