package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// mounted returns a configuration in a mounted directory, with the given number of sends a day.
func mounted(daily int) map[string]string {
	return map[string]string{"capper.yaml": strings.Replace(minimal, "daily: 1", fmt.Sprint("daily: ", daily), 1)}
}

// TestSwappedMounts checks the changes that a kubelet makes to a mounted ConfigMap. A change applies at the next
// check, and a fault keeps the previous configuration. Of two changes between checks the later one counts. The same
// text in another directory is no change.
func TestSwappedMounts(t *testing.T) {
	t.Parallel()
	mount := testkit.NewMount(t, mounted(1))
	w, err := NewWatcher(mount.Path("capper.yaml"), time.Now)
	require.NoError(t, err)
	var applied []int
	look := func() (changed bool, err error) {
		return w.poll(func(c *Config) error { applied = append(applied, c.Policy.Default[0].Max); return nil })
	}
	unchanged := func(why string) {
		t.Helper()
		changed, err := look()
		require.NoError(t, err, why)
		require.False(t, changed, why)
	}
	unchanged("nothing was swapped")
	mount.Swap(mounted(2))
	changed, err := look()
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, []int{2}, applied)

	mount.Swap(mounted(2))
	unchanged("the same text lies elsewhere")

	mount.Swap(map[string]string{"capper.yaml": "limits: [" /* cut off */})
	changed, err = look()
	require.Error(t, err)
	require.True(t, changed)
	require.Equal(t, 2, w.Current().Policy.Default[0].Max)
	unchanged("the fault was told once")
	mount.Swap(map[string]string{"capper.yaml": "limits: ["})
	unchanged("it is the same fault")

	mount.Swap(mounted(3))
	mount.Swap(mounted(4))
	_, err = look()
	require.NoError(t, err)
	require.Equal(t, []int{2, 4}, applied)
	require.Equal(t, Status{Version: w.Current().Version, LoadedAt: w.Status().LoadedAt, Reloads: 2, Refused: 1},
		w.Status())
	mount.Swap(map[string]string{"capper.yaml": "limits: ["})
	mount.Swap(mounted(4))
	unchanged("the fault was gone before anybody looked")
}

// TestAFileThatIsGoneForAMomentIsNotRefused checks that a file which is absent for a moment during a swap is not
// reported. The next check finds it.
func TestAFileThatIsGoneForAMomentIsNotRefused(t *testing.T) {
	t.Parallel()
	mount := testkit.NewMount(t, mounted(1))
	file := mount.Path("capper.yaml")
	w, err := NewWatcher(file, time.Now)
	require.NoError(t, err)
	apply := func(*Config) error { return nil }
	away := func() {
		t.Helper()
		require.NoError(t, os.Rename(mount.Path("..data"), mount.Path("..away")))
		changed, err := w.poll(apply)
		require.NoError(t, err)
		require.False(t, changed)
	}
	back := func() { require.NoError(t, os.Rename(mount.Path("..away"), mount.Path("..data"))) }
	for range 2 { // one absence after the other, with a check in between
		away()
		back()
		changed, err := w.poll(apply)
		require.NoError(t, err)
		require.False(t, changed)
	}
	require.Zero(t, w.Status().Refused)

	away()
	changed, err := w.poll(apply)
	require.ErrorIs(t, err, fs.ErrNotExist, "gone for longer is a fault")
	require.True(t, changed)
	changed, _ = w.poll(apply)
	require.False(t, changed, "which is told once")
	require.Equal(t, 1, w.Status().Refused)
	back()
	changed, err = w.poll(apply)
	require.NoError(t, err)
	require.True(t, changed)
	require.Empty(t, w.Status().Error)
}

// TestSwapsUnderAWatcher checks that swaps at full speed never look like a fault, and that the last one is applied in
// the end.
func TestSwapsUnderAWatcher(t *testing.T) {
	t.Parallel()
	mount := testkit.NewMount(t, mounted(1))
	w, err := NewWatcher(mount.Path("capper.yaml"), time.Now)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	var faults []error
	go func() {
		w.Run(ctx, 100*time.Microsecond, func(*Config) error { return nil },
			func(err error) { faults = append(faults, err) }, nil, nil)
		done <- errors.Join(faults...)
	}()
	for daily := range 500 {
		mount.Swap(mounted(daily + 2))
	}
	testkit.Eventually(t, func() bool { return w.Current().Policy.Default[0].Max == 501 })
	cancel()
	require.NoError(t, <-done)
	require.Zero(t, w.Status().Refused)
}
