package segments_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/testkit"
)

// TestPipesInTheWayHoldNothingUp uses pipes without a writer, which block every process that opens
// them.
func TestPipesInTheWayHoldNothingUp(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := objects.NewDirectory(root)
	clock := segmentstest.Stepping()
	m := goLive(t, store, clock, []string{"vip"}, bitmap.Of(1))
	cacheDir := t.TempDir()
	r := segments.NewRefresher(segments.RefresherConfig{Source: store, CacheDir: cacheDir, Interval: time.Millisecond})
	require.NoError(t, r.Load(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	soon := func(condition func() bool, what string) {
		t.Helper()
		testkit.Eventually(t, condition, what)
	}

	for _, key := range []string{segments.CurrentKey, segments.ManifestKey(m.Generation), m.Segments[0].Key} {
		path := filepath.Join(root, key)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		_, err = store.Read(t.Context(), key, 1<<20)
		require.ErrorContains(t, err, "must be a regular file")
		require.Error(t, segments.NewRefresher(segments.RefresherConfig{Source: store}).Load(t.Context()))
		if key == segments.CurrentKey {
			soon(func() bool { return r.Status().Error != "" }, "the pipe is an error")
		}
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, whole, 0o644))
	}
	soon(func() bool { return r.Status().Error == "" }, "refreshing goes on")
	next := goLive(t, store, clock, []string{"vip"}, bitmap.Of(1, 2))
	soon(func() bool { return r.Current().Generation() == next.Generation }, "refreshing goes on")

	require.NoError(t, os.Remove(filepath.Join(root, segments.CurrentKey)))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, segments.CurrentKey), 0o600))
	stop()
	soon(func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}, "Run ends with its context")
}

// mute simulates a file system that does not answer.
type mute struct {
	objects.Location
	silent atomic.Bool
	asked  atomic.Int64
}

func (m *mute) wait(ctx context.Context) error {
	if !m.silent.Load() {
		return nil
	}
	m.asked.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (m *mute) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	if err := m.wait(ctx); err != nil {
		return nil, "", err
	}
	return m.Location.ReadTagged(ctx, key, tag)
}

func (m *mute) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	return m.Location.Read(ctx, key, limit)
}

func (m *mute) Put(ctx context.Context, key string, body []byte) (bool, error) {
	if err := m.wait(ctx); err != nil {
		return false, err
	}
	return m.Location.Put(ctx, key, body)
}

func TestAFileSystemThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	clock := segmentstest.Stepping()
	goLive(t, at, clock, []string{"vip"}, bitmap.Of(1))
	source := &mute{Location: at}
	r := segments.NewRefresher(segments.RefresherConfig{Source: source, CacheDir: t.TempDir(),
		Interval: time.Millisecond, Timeout: 5 * time.Second})
	require.NoError(t, r.Load(t.Context()))
	cached := &mute{}
	r.WrapCache(func(at objects.Location) objects.Location { cached.Location = at; return cached })

	for i, m := range []*mute{source, cached} {
		m.silent.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		next := goLive(t, at, clock, []string{"vip"}, bitmap.Of(1, uint32(2+i)))
		if m == source {
			testkit.Eventually(t, func() bool { return r.Status().Error != "" })
			require.Contains(t, r.Status().Error, "deadline exceeded")
			m.silent.Store(false)
		}
		testkit.Eventually(t, func() bool { return r.Current().Generation() == next.Generation },
			"a source that answers again is read, a cache that does not is not needed")
		require.Positive(t, m.asked.Load())
		stop()
		<-ended
	}
}
