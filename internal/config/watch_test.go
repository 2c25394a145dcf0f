package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatcher(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "capper.yaml")
	write := func(content string) { require.NoError(t, os.WriteFile(file, []byte(content), 0o600)) }
	write(minimal + "channels: {push: 1}\n")
	w, err := NewWatcher(file, time.Now)
	require.NoError(t, err)
	first := w.Current()

	applied, reloads := make(chan *Config, 10), make(chan error, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, time.Millisecond, func(c *Config) error { applied <- c; return nil }, func(err error) { reloads <- err })
	}()

	write(strings.Replace(minimal, "daily: 1", "daily: 2", 1) + "channels: {push: 1}\n")
	// A poll may see the file while it is being written: accepted is what counts.
	require.Equal(t, 2, (<-applied).Policy.Default[0].Max)
	require.Eventually(t, func() bool { return w.Status().Version != first.Version && w.Status().Error == "" }, 5*time.Second, time.Millisecond)

	for bad, why := range map[string]string{
		minimal + "channels: {push: 2}\n":                              "must stay 1, got 2",
		minimal + "store: {kind: embedded, embedded: {path: other}}\n": "store: changes only at a start",
		minimal + "limits: {}\n":                                       "is given twice",
	} {
		write(bad)
		require.Eventually(t, func() bool { return strings.Contains(w.Status().Error, why) }, 5*time.Second, time.Millisecond, why)
		require.Equal(t, 2, w.Current().Policy.Default[0].Max)
	}
	require.Empty(t, applied)

	require.NoError(t, os.Remove(file))
	require.Eventually(t, func() bool { return strings.Contains(w.Status().Error, "read configuration") }, 5*time.Second, time.Millisecond)
	write(minimal + "channels: {push: 1, sms: 2}\n")
	require.Contains(t, (<-applied).Policy.Channels, "sms")
	require.Eventually(t, func() bool { return w.Status().Error == "" }, 5*time.Second, time.Millisecond)
	cancel()
	<-done
}
