package segments

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
)

// A pipe without a writer blocks whoever opens it.
func TestPipesInTheWayHoldNothingUp(t *testing.T) {
	t.Parallel()
	store := &directory{root: t.TempDir()}
	clock := stepping()
	m := publish(t, store, clock, []string{"vip"}, bitmap.Of(1))
	cacheDir := t.TempDir()
	r := NewRefresher(RefresherConfig{Source: store, CacheDir: cacheDir, Interval: time.Millisecond})
	require.NoError(t, r.Load(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	soon := func(condition func() bool, what string) {
		t.Helper()
		require.Eventually(t, condition, 10*time.Second, time.Millisecond, what)
	}

	for _, key := range []string{currentKey, manifestKey(m.Generation), m.Segments[0].Key} {
		path := store.path(key)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		_, err = store.Read(t.Context(), key, 1<<20)
		require.ErrorContains(t, err, "not a regular file")
		require.Error(t, NewRefresher(RefresherConfig{Source: store}).Load(t.Context()))
		if key == currentKey {
			soon(func() bool { return r.Status().Error != "" }, "the pipe is an error")
		}
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, whole, 0o644))
	}
	soon(func() bool { return r.Status().Error == "" }, "refreshing goes on")
	next := publish(t, store, clock, []string{"vip"}, bitmap.Of(1, 2))
	soon(func() bool { return r.Current().Generation() == next.Generation }, "refreshing goes on")

	require.NoError(t, os.Remove(store.path(currentKey)))
	require.NoError(t, syscall.Mkfifo(store.path(currentKey), 0o600))
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

// What stands in for a file system that does not answer: an operation on the
// same path that has not ended.
func TestAFileSystemThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	store := &directory{root: t.TempDir()}
	clock := stepping()
	publish(t, store, clock, []string{"vip"}, bitmap.Of(1))
	r := NewRefresher(RefresherConfig{Source: store, CacheDir: t.TempDir(), Interval: time.Millisecond, Timeout: time.Second})
	require.NoError(t, r.Load(t.Context()))

	cached := r.cache.store
	last := bitmap.Of(1, 4)
	for _, h := range []struct {
		dir  *directory
		path string
		next *bitmap.Bitmap
	}{
		{store, store.path(currentKey), bitmap.Of(1, 2)},
		{cached, cached.root, bitmap.Of(1, 3)},
		{cached, cached.path(bitmapKey(last.SHA256())), last},
	} {
		answer := make(chan struct{})
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		require.ErrorIs(t, h.dir.hung.do(impatient, h.path, func() error { <-answer; return nil }), context.DeadlineExceeded)
		cancel()

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		next := publish(t, &directory{root: store.root}, clock, []string{"vip"}, h.next)
		if h.dir == store {
			require.Eventually(t, func() bool { return r.Status().Error != "" }, 10*time.Second, time.Millisecond)
			require.Contains(t, r.Status().Error, "still owes the answer to an earlier call")
			require.Len(t, store.hung.pending(), 1, "no look leaves more behind")
			close(answer)
		}
		require.Eventually(t, func() bool { return r.Current().Generation() == next.Generation }, 10*time.Second, time.Millisecond,
			"a source that answers again is read, a cache that does not is not needed")
		stop()
		<-ended
		if h.dir != store {
			close(answer)
		}
		require.Eventually(t, func() bool { return len(h.dir.hung.pending()) == 0 }, 10*time.Second, time.Millisecond)
	}
}

// pending lists the paths at which something is at work.
func (h *hung) pending() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var paths []string
	for path := range h.busy {
		paths = append(paths, path)
	}
	return paths
}

func TestAnAbandonedReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var h hung
	answer := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	result := make(chan error)
	go func() {
		result <- h.do(ctx, "a", func() error { close(started); <-answer; return nil })
	}()
	<-started
	require.NoError(t, h.do(t.Context(), "b", func() error { return nil }), "other paths do not wait")
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	go func() { result <- h.do(t.Context(), "a", func() error { return os.ErrInvalid }) }()
	close(answer)
	require.ErrorIs(t, <-result, os.ErrInvalid, "the next one goes ahead when the first has ended")
	require.Eventually(t, func() bool { return len(h.pending()) == 0 }, 10*time.Second, time.Millisecond)
}
