package segments_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/testkit"
)

// following is a refresher of a directory to which a test publishes, with a clock that the test sets.
type following struct {
	*segments.Refresher
	t     *testing.T
	store *objects.Directory
	now   time.Time
	users uint32
}

func follow(t *testing.T, keep time.Duration) *following { return followEvery(t, 0, keep) }

func followEvery(t *testing.T, interval, keep time.Duration) *following {
	f := &following{t: t, store: objects.NewDirectory(t.TempDir()), now: segmentstest.Epoch}
	f.Refresher = segments.NewRefresher(segments.RefresherConfig{Source: f.store, Interval: interval, Keep: keep,
		Clock: func() time.Time { return f.now }})
	return f
}

// next publishes another generation, takes it into use, and returns its name. User n is in the n-th.
func (f *following) next() string {
	f.t.Helper()
	f.users++
	f.now = f.now.Add(time.Second)
	m := goLive(f.t, f.store, func() time.Time { return f.now }, []string{"vip"}, bitmap.Of(f.users))
	require.NoError(f.t, f.Refresh(f.t.Context()))
	require.Equal(f.t, m.Generation, f.Current().Generation())
	return m.Generation
}

func (f *following) pin(generation string) *segments.Snapshot {
	f.t.Helper()
	s, err := f.Pin(generation)
	require.NoError(f.t, err)
	if generation != "" {
		require.Equal(f.t, generation, s.Generation())
	}
	return s
}

func (f *following) requireGone(generation string) {
	f.t.Helper()
	s, err := f.Pin(generation)
	var gone *segments.GoneError
	require.ErrorAs(f.t, err, &gone)
	require.Nil(f.t, s)
	require.Equal(f.t, f.Current().Generation(), gone.InUse)
	require.EqualError(f.t, err, fmt.Sprintf("generation %q does not exist or is no longer available: generation %s "+
		"is in use",
		generation, gone.InUse))
}

func TestAPinnedGenerationOutlivesASwap(t *testing.T) {
	t.Parallel()
	f := follow(t, 0)
	_, err := f.Pin("")
	require.EqualError(t, err, "no generation of segments is loaded yet")
	first := f.next()
	require.Equal(t, first, f.pin("").Generation())
	require.Empty(t, f.Status().Pinned, "an empty name pins nothing")
	pinned := f.pin(first)
	require.Same(t, f.Current(), pinned)
	second := f.next()
	require.Same(t, pinned, f.pin(first))
	require.Equal(t, []uint8{1, 0}, lookup(f.pin(first), 1, 2))
	require.Equal(t, []uint8{0, 1}, lookup(f.Current(), 1, 2))
	require.Equal(t, second, f.pin("").Generation())
	require.Equal(t, []segments.Pinned{{first, f.now, f.now.Add(time.Hour)}}, f.Status().Pinned)

	f.next()
	f.now = f.now.Add(time.Minute) // nobody had pinned it, so that its grace is all there is
	f.requireGone(second)
	f.requireGone("20201120T101500.000Z-00000000")
	f.requireGone("../etc")
}

func TestAPinLastsForKeepAfterItsLastUse(t *testing.T) {
	t.Parallel()
	f := follow(t, 10*time.Minute)
	first := f.next()
	f.pin(first)
	f.next()
	for range 5 { // each use begins the time anew
		f.now = f.now.Add(10*time.Minute - time.Second - 1)
		f.pin(first)
		f.now = f.now.Add(1)
	}
	f.now = f.now.Add(10*time.Minute - 1)
	f.requireGone(first)
	require.Empty(t, f.Status().Pinned)

	fourth := f.next()
	f.pin(fourth)
	f.now = f.now.Add(time.Hour)
	f.next()
	require.Empty(t, f.Status().Pinned, "pinned longer ago than it would be kept")
	f.now = f.now.Add(time.Minute)
	f.requireGone(fourth)
}

func TestAGenerationThatNobodyPinnedHasAGrace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ interval, keep, grace time.Duration }{
		"a minute":              {0, 0, time.Minute},
		"two looks":             {5 * time.Minute, 0, 10 * time.Minute},
		"no longer than a pin":  {5 * time.Minute, 10 * time.Second, 10 * time.Second},
		"a minute, of any look": {time.Second, time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := followEvery(t, test.interval, test.keep)
			first := f.next()
			second := f.next()
			require.Empty(t, f.Status().Pinned, "nobody did")
			f.now = f.now.Add(test.grace - 1)
			f.pin(first)
			f.next()
			f.now = f.now.Add(test.grace)
			f.requireGone(second)
		})
	}
}

// TestAGraceDrivesOutNoPin checks that generations without a pin are dropped first.
func TestAGraceDrivesOutNoPin(t *testing.T) {
	t.Parallel()
	f := follow(t, 0)
	var pinned []string
	for range segments.MaxPinned {
		pinned = append(pinned, f.next())
		f.pin(pinned[len(pinned)-1])
	}
	unpinned := f.next()
	f.next()
	f.requireGone(unpinned)
	for _, generation := range pinned {
		f.pin(generation)
	}
}

// TestALaterGenerationIsNotYetHere checks that a generation that only another instance has is reported
// as not yet here, instead of gone.
func TestALaterGenerationIsNotYetHere(t *testing.T) {
	t.Parallel()
	f := follow(t, 0)
	first := f.next()
	later := goLive(t, f.store, func() time.Time { return f.now.Add(time.Second) }, []string{"vip"},
		bitmap.Of(9)).Generation
	_, err := f.Pin(later)
	var notYet *segments.NotYetError
	require.ErrorAs(t, err, &notYet)
	require.EqualError(t, err, "generation "+later+" is not loaded yet: this instance checks every 30s, and uses "+
		"generation "+
		first)

	f.now = f.now.Add(time.Second)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	testkit.Eventually(t, func() bool { _, err := f.Pin(later); return err == nil },
		"asked for, it is looked for at once")
	stop()
	<-done

	m, err := segments.ReadManifest(t.Context(), f.store, first)
	require.NoError(t, err)
	segmentstest.MakeLive(t, f.store, segments.PointerTo(m).Encode())
	require.NoError(t, f.Refresh(t.Context()))
	f.now = f.now.Add(2 * time.Hour)
	f.requireGone(later) // it was here
}

func TestEightGenerationsAreKept(t *testing.T) {
	t.Parallel()
	f := follow(t, 0)
	var names []string
	for range segments.MaxPinned + 1 {
		names = append(names, f.next())
		f.pin(names[len(names)-1])
	}
	require.Len(t, f.Status().Pinned, segments.MaxPinned+1, "and the one in use")
	f.pin(names[0]) // used again, so that it goes last
	names = append(names, f.next())
	f.requireGone(names[1])
	f.pin(names[0])
	for _, name := range names[2:] {
		f.pin(name)
	}
}

func TestARolledBackGenerationIsFoundByItsPin(t *testing.T) {
	t.Parallel()
	f := follow(t, 0)
	first := f.next()
	f.pin(first)
	second := f.next()
	f.pin(second)
	m, err := segments.ReadManifest(t.Context(), f.store, first)
	require.NoError(t, err)
	segmentstest.MakeLive(t, f.store, segments.PointerTo(m).Encode())
	require.NoError(t, f.Refresh(t.Context()))
	require.Same(t, f.Current(), f.pin(first))
	require.Equal(t, second, f.pin(second).Generation())
}
