package objects

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// pending returns the paths with a running operation.
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
	testkit.Eventually(t, func() bool { return len(h.pending()) == 0 })
}

// TestAnOperationEndsBeforeItsCaller checks that an operation on a working file system is not abandoned, because the
// caller may remove the directory next.
func TestAnOperationEndsBeforeItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var h hung
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		require.NoError(t, h.do(ctx, "a", func() error {
			cancel()
			time.Sleep(grace - time.Millisecond)
			ended = true
			return nil
		}))
		require.True(t, ended)
		require.ErrorIs(t, h.do(ctx, "a", func() error { return nil }), context.Canceled, "no operation begins")
	})
}

// TestADirectoryThatHangsHoldsNobodyUp simulates a hanging file system by an unfinished operation on
// the same path.
func TestADirectoryThatHangsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	d := NewDirectory(t.TempDir())
	require.NoError(t, d.Overwrite(t.Context(), "current.json", []byte("1")))
	answer := make(chan struct{})
	for _, key := range []string{"current.json", "bitmaps/a"} {
		ctx, giveUp := context.WithCancel(t.Context())
		require.ErrorIs(t, d.hung.do(ctx, d.path(key), func() error { giveUp(); <-answer; return nil }),
			context.Canceled)
	}
	for what, operation := range map[string]func(ctx context.Context) error{
		"look":      func(ctx context.Context) error { _, _, err := d.ReadTagged(ctx, "current.json", ""); return err },
		"read":      func(ctx context.Context) error { _, err := d.Read(ctx, "bitmaps/a", 1); return err },
		"put":       func(ctx context.Context) error { _, err := d.Put(ctx, "bitmaps/a", nil); return err },
		"overwrite": func(ctx context.Context) error { return d.Overwrite(ctx, "bitmaps/a", nil) },
		"delete":    func(ctx context.Context) error { return d.Delete(ctx, "bitmaps/a") },
	} {
		// its time may be up before it begins
		testkit.FailsWith(t, "has not yet answered an earlier call", func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := operation(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded, what)
			return err
		})
	}
	require.Len(t, d.hung.pending(), 2, "no operation leaves more behind")
	close(answer)
	_, err := d.Put(t.Context(), "bitmaps/a", []byte("x"))
	require.NoError(t, err, "what answers again is used")
	testkit.Eventually(t, func() bool { return len(d.hung.pending()) == 0 })
}
