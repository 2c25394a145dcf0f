package lookup_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
	"capper/internal/testkit"
	"capper/lookup"
)

// away is a connection to the S3 server that a test can cut and restore.
type away struct{ cut atomic.Bool }

func (a *away) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(w, r)
	})
}

func TestASourceThatIsAway(t *testing.T) {
	t.Parallel()
	source, cache := "s3://"+s3test.Bucket(t)+"/prod", t.TempDir()
	at := objectstest.Open(t, source)
	m := first(t, at)
	way := &away{}
	var log testkit.Log
	cfg := lookup.Config{Source: source, CacheDir: cache, S3: lookup.S3{Endpoint: s3test.Proxy(t, way.wrap)},
		Timeout: 10 * time.Second, Logger: log.Logger()}
	running := follow(t, cfg)

	way.cut.Store(true)
	testkit.Eventually(t, func() bool { return running.Status().Error != "" })
	requireFirst(t, running.Current())
	started := follow(t, cfg)
	require.Equal(t, m.Generation, started.Current().Name())
	require.True(t, started.Status().FromCache)
	require.NotEmpty(t, started.Status().Error)
	require.False(t, started.Status().ErrorAt.IsZero())
	requireFirst(t, started.Current())
	require.Contains(t, log.String(), "the cached one is in use")

	alone := cfg
	alone.CacheDir = t.TempDir()
	_, err := lookup.Follow(t.Context(), alone)
	require.ErrorContains(t, err, "lookup: ")
	require.NotErrorIs(t, err, lookup.ErrNothingPublished)

	way.cut.Store(false)
	next := publish(t, at, day(1), []group{{"active", bitmap.Of(1)}}, []group{{"opted-out", bitmap.Of(2)}})
	for _, f := range []*lookup.Follower{running, started} {
		testkit.Eventually(t, func() bool { return f.Current().Name() == next.Generation })
		testkit.Eventually(t, func() bool { return f.Status().Error == "" && !f.Status().FromCache })
	}
}

func TestADamagedGenerationIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := objectstest.Open(t, dir)
	m := first(t, at)
	f := follow(t, lookup.Config{Source: dir})

	broken := bitmap.Of(5, 6, 7)
	path := filepath.Join(dir, segments.Describe("x", broken).Key)
	raw := append([]byte(nil), broken.Bytes()...)
	raw[len(raw)-1] ^= 1
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	next := publish(t, at, day(1), []group{{"active", bitmap.Of(1)}}, []group{{"opted-out", broken}})
	testkit.Eventually(t, func() bool { return strings.Contains(f.Status().Error, "checksum mismatch") })
	require.Equal(t, m.Generation, f.Current().Name())
	requireFirst(t, f.Current())
	_, err := lookup.Follow(t.Context(), lookup.Config{Source: dir})
	require.ErrorContains(t, err, "checksum mismatch")

	require.NoError(t, os.Remove(path))
	_, err = at.Put(t.Context(), segments.Describe("x", broken).Key, broken.Bytes())
	require.NoError(t, err)
	testkit.Eventually(t, func() bool { return f.Current().Name() == next.Generation })
}

func TestWhatIsRequired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := objectstest.Open(t, dir)
	m := first(t, at)
	_, err := lookup.Follow(t.Context(), lookup.Config{Source: dir, Require: []string{"active", "bounced"}})
	require.EqualError(t, err, "lookup: generation "+m.Generation+`: required segment or set "bounced" does not exist`)

	f := follow(t, lookup.Config{Source: dir, Require: []string{"active", "opted-out"}})
	publish(t, at, day(1), []group{{"active", bitmap.Of(1)}}, []group{{"country/sg", bitmap.Of(2)}})
	testkit.Eventually(t, func() bool {
		return strings.Contains(f.Status().Error, `required segment or set "opted-out" does not exist`)
	})
	requireFirst(t, f.Current())
	again := publish(t, at, day(2), []group{{"active", bitmap.Of(1)}}, []group{{"opted-out", bitmap.Range(140, 161)}})
	testkit.Eventually(t, func() bool { return f.Current().Name() == again.Generation && f.Status().Error == "" })
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, c := range map[string]struct {
		cfg  lookup.Config
		want string
	}{
		"no source": {lookup.Config{}, "lookup: Config.Source: location is empty: use a directory or " +
			"s3://bucket/prefix"},
		"a scheme": {lookup.Config{Source: "gs://bucket"},
			`lookup: Config.Source: location "gs://bucket": unknown scheme "gs"`},
		"interval": {lookup.Config{Source: empty, Interval: -1}, "lookup: Config.Interval and Config.Timeout must " +
			"not be negative"},
		"expression": {lookup.Config{Source: empty, Expressions: map[string]string{"a": "b", "b": "a"}},
			"lookup: expressions: a: a refers to itself: a → b → a"},
		"nothing": {lookup.Config{Source: empty}, "lookup: no segments have been published at this location"},
	} {
		_, err := lookup.Follow(t.Context(), c.cfg)
		require.ErrorContains(t, err, c.want, name)
		if name == "nothing" {
			require.ErrorIs(t, err, lookup.ErrNothingPublished)
		}
	}
}

// TestSwapsUnderLoad swaps generations during look-ups and checks that related answers come from one
// generation.
func TestSwapsUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := objectstest.Open(t, dir)
	names := [2]string{"even", "odd"}
	made := func(n int) *segments.Manifest {
		name := names[n%2]
		return publish(t, at, day(n), []group{{name, bitmap.Range(0, 70_000)}},
			[]group{{"set/" + name, bitmap.Range(0, 70_000)}})
	}
	made(0)
	f := follow(t, lookup.Config{Source: dir, Interval: time.Millisecond})
	var stop atomic.Bool
	var faults, lookups atomic.Int64
	var running sync.WaitGroup
	for reader := range 4 {
		running.Go(func() {
			for user := uint32(reader); !stop.Load(); user = (user + 7) % 70_000 {
				g := f.Current()
				segment := g.Segment(user)
				in, err := g.Contains("set/"+segment, user)
				a, audienceErr := g.Audience(segment + " & set/" + segment)
				if err != nil || !in || audienceErr != nil {
					faults.Add(1)
				} else if n, err := a.Count(t.Context()); err != nil || n != 70_000 {
					faults.Add(1)
				}
				lookups.Add(1)
			}
		})
	}
	for n := 1; n < 20; n++ {
		m := made(n)
		testkit.Eventually(t, func() bool { return f.Current().Name() == m.Generation })
	}
	stop.Store(true)
	running.Wait()
	require.Zero(t, faults.Load())
	require.Positive(t, lookups.Load())
}
