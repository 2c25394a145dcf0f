package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// greedy returns a Collector for which every object is old.
func greedy(store objects.Location) *Collector {
	c := collector(store, 1, 0)
	c.Clock = func() time.Time { return time.Now().Add(time.Hour) }
	return c
}

// act is an operation that makes the older of two generations live again.
type act struct {
	name string
	run  func(ctx context.Context, store objects.Location, old *segments.Manifest) error
}

func acts() []act {
	return []act{
		{"build", func(ctx context.Context, store objects.Location, _ *segments.Manifest) error {
			base, err := ReadLiveState(ctx, store)
			if err != nil {
				return err
			}
			p := Publisher{Location: store, ToolVersion: "test"}
			_, err = p.Publish(ctx, oldContent(), base, "")
			return err
		}},
		{"rollback", func(ctx context.Context, store objects.Location, old *segments.Manifest) error {
			base, err := ReadLiveState(ctx, store)
			if err != nil {
				return err
			}
			earlier, err := segments.ReadGeneration(ctx, store, old.Generation)
			if err != nil {
				return err
			}
			p := Publisher{Location: store}
			_, err = p.Rollback(ctx, earlier, base)
			return err
		}},
	}
}

func oldContent() *Candidate {
	return &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2, 3), bitmap.Of(4)},
		Sets: []Set{{Name: "opted-out", Bitmap: bitmap.Of(2, 4, 6)}, {Name: "tz/Asia/Singapore",
			Bitmap: bitmap.Of(1, 2, 3)}}}
}

// twoGenerations publishes the old content and then another one.
func twoGenerations(t *testing.T, store objects.Location, clock func() time.Time) (old *segments.Manifest) {
	t.Helper()
	collect(t, store, 1)
	require.NoError(t, changeControls(t.Context(), store, func(c *controls) { c.Withdrawn = nil }))
	old = publishAll(t, store, clock, oldContent())
	publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(9), bitmap.Of(10))
	return old
}

// atCall calls run before the n-th call to the store, and reports whether that call happened.
func atCall(store objects.Location, n int, run func()) (*hooked, *atomic.Bool) {
	var calls atomic.Int64
	ran := &atomic.Bool{}
	return &hooked{Location: store, before: func(string, string) {
		if calls.Add(1)-1 == int64(n) {
			ran.Store(true)
			run()
		}
	}}, ran
}

// TestACollectionBetweenAnyTwoSteps runs a whole collection between any two calls of a build or a
// rollback, and the reverse. An interrupted collection then looks as if it had paused for longer than
// its lease.
func TestACollectionBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	for _, act := range acts() {
		t.Run(act.name, func(t *testing.T) {
			t.Parallel()
			objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
				clock := segmentstest.Stepping()
				first, stride := eachStep(location)
				for n := first; ; n += stride {
					old := twoGenerations(t, store, clock)
					slow, ran := atCall(store, n, func() { collect(t, store, 1) })
					err := act.run(t.Context(), slow, old)
					g := live(t, store)
					require.Equal(t, err == nil, sameSegments(g.Manifest.Segments, oldContent().Describe()),
						"call %d: %v", n, err)
					if !ran.Load() {
						require.NoError(t, err)
						require.Greater(t, n, 5, "the number of calls to the store")
						return
					}
					if err != nil { // it was collected before it was read
						require.ErrorIs(t, err, objects.ErrNotFound, "call %d", n)
					}
				}
			})
		})
	}
}

func TestAnythingBetweenAnyTwoStepsOfACollection(t *testing.T) {
	t.Parallel()
	for _, act := range acts() {
		t.Run(act.name, func(t *testing.T) {
			t.Parallel()
			objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
				clock := segmentstest.Stepping()
				lease := 500 * time.Millisecond
				first, stride := eachStep(location)
				for n := first; ; n += stride {
					old := twoGenerations(t, store, clock)
					var actErr error
					slow, ran := atCall(store, n, func() { actErr = act.run(t.Context(), store, old) })
					c := greedy(slow)
					c.Lease = lease
					_, err := c.Remove(t.Context())
					g := live(t, store)
					if !ran.Load() && tooSlow(err) && lease < time.Minute {
						lease, n = 2*lease, n-stride // a busy machine took longer than half of it
						continue
					}
					if !ran.Load() {
						require.NoError(t, err)
						require.Greater(t, n, 5, "the number of calls to the store")
						return
					}
					require.Equal(t, actErr == nil, sameSegments(g.Manifest.Segments, oldContent().Describe()),
						"call %d: %v, %v", n, actErr, err)
					if actErr != nil {
						require.ErrorIs(t, actErr, objects.ErrNotFound, "call %d", n)
					}
				}
			})
		})
	}
}

// pausing delays every call to a store by up to a few milliseconds, before and after.
func pausing(ctx context.Context, store objects.Location) objects.Location {
	wait := func(string, string) { _ = pause(ctx, time.Duration(rand.IntN(3000))*time.Microsecond) }
	return &hooked{Location: store, before: wait, after: wait}
}

// tooSlow reports whether an error says that a lease was lost, which may happen on a busy machine.
func tooSlow(err error) bool {
	var lost *LeaseError
	return errors.As(err, &lost) || errors.Is(err, context.DeadlineExceeded)
}

// stormPublish publishes one of a few contents, most of which have been live before.
func stormPublish(ctx context.Context, store objects.Location) error {
	base, err := ReadLiveState(ctx, store)
	if err != nil {
		return err
	}
	if base.Fault != nil {
		return fmt.Errorf("what is live is not whole: %w", base.Fault)
	}
	c := &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(rand.Uint32N(4)),
		bitmap.Of(10 + rand.Uint32N(4))}}
	p := Publisher{Location: store, ToolVersion: "storm"}
	_, err = p.Publish(ctx, c, base, "")
	return err
}

func stormRollback(ctx context.Context, store objects.Location) error {
	base, err := ReadLiveState(ctx, store)
	if err != nil {
		return err
	}
	list, err := List(ctx, store)
	if err != nil {
		return err
	}
	earlier, err := segments.ReadGeneration(ctx, store, list[rand.IntN(len(list))].Generation)
	if err != nil {
		return err
	}
	p := Publisher{Location: store}
	_, err = p.Rollback(ctx, earlier, base)
	return err
}

func stormCollect(ctx context.Context, store objects.Location, lease time.Duration) (removed int, err error) {
	c := greedy(store)
	c.Keep, c.Lease = 1+rand.IntN(2), lease
	g, err := c.Remove(ctx)
	if g != nil {
		removed = len(g.Objects)
	}
	return removed, err
}

// The roles of the process that is killed.
const (
	doomedRole   = "SEGMENTS_TEST_DOOMED_ROLE"
	rolePublish  = "publish"
	roleRollback = "rollback"
	roleCollect  = "collect"
)

// playStorm performs one role of TestStormOfTheKilled.
func playStorm(ctx context.Context, store objects.Location) error {
	slow := pausing(ctx, store)
	switch os.Getenv(doomedRole) {
	case roleRollback:
		return stormRollback(ctx, slow)
	case roleCollect:
		_, err := stormCollect(ctx, slow, 500*time.Millisecond)
		return err
	default:
		return stormPublish(ctx, slow)
	}
}

func TestTheLeaseOfACollector(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx := t.Context()
		publish(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
		first, err := takeLease(ctx, store, time.Minute)
		require.NoError(t, err)
		t.Run("of one that is alive is not taken", func(t *testing.T) {
			beating, stop := context.WithCancel(ctx)
			var wg sync.WaitGroup
			wg.Go(func() {
				for beating.Err() == nil {
					first.renewed = time.Now().Add(-20 * time.Second) // a quarter is over
					_, cancel, err := first.use(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					cancel()
				}
			})
			_, err := takeLease(ctx, store, time.Minute)
			require.ErrorIs(t, err, errCollecting)
			stop()
			wg.Wait()
			require.NoError(t, first.end(ctx))
		})
		t.Run("of one that is dead is taken after its time, and not given back", func(t *testing.T) {
			dead, err := takeLease(ctx, store, 50*time.Millisecond)
			require.NoError(t, err)
			began := time.Now()
			_, err = takeLease(ctx, store, time.Minute)
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
			_, _, err = dead.use(ctx)
			require.Error(t, err, "it has lost its lease")
			require.ErrorIs(t, dead.end(ctx), objects.ErrLostRace)
		})
	})
}

// hanging is a location whose deletions wait until their context ends.
type hanging struct{ objects.Location }

func (h *hanging) Delete(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func liveTag(t *testing.T, store objects.Location) string {
	t.Helper()
	_, tag, err := segments.ReadPointer(t.Context(), store, "")
	require.NoError(t, err)
	return tag
}

// TestALeaseThatWasLostIsToldAsThat checks that a gc that was too slow reports a lost lease instead of
// a time-out, at any step.
func TestALeaseThatWasLostIsToldAsThat(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		publish(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
		told := func(err error) {
			t.Helper()
			var lost *LeaseError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, time.Minute, lost.Length)
			require.ErrorContains(t, err, "the lease in gc.json was lost, because it was not renewed within half of "+
				"--lease 1m0s: ")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		}
		l, err := takeLease(t.Context(), store, time.Minute)
		require.NoError(t, err)
		l.renewed = time.Now().Add(-31 * time.Second)
		_, _, err = l.use(t.Context())
		told(err)

		c := Collector{Location: &hanging{store}}
		l.doc.LeaseMS, l.renewed = 400, time.Now()
		err = c.removeOne(t.Context(), l, liveTag(t, store), objects.Object{Key: "bitmaps/x"})
		require.ErrorContains(t, err, "the lease in gc.json was lost, because it was not renewed within half of "+
			"--lease 400ms: ")

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = l.use(ended)
		require.ErrorIs(t, err, context.Canceled, "what ends the command is told as that")
	})
}

// TestAFencedPointerSaysTheSame checks that current.json of any version can be read, and that its
// bytes never repeat.
func TestAFencedPointerSaysTheSame(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		m := publish(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
		before, tag, err := segments.ReadPointer(t.Context(), store, "")
		require.NoError(t, err)
		newTag, err := fence(t.Context(), store)
		require.NoError(t, err)
		require.NotEqual(t, tag, newTag)
		after, now, err := segments.ReadPointer(t.Context(), store, "")
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Equal(t, newTag, now)
		require.Equal(t, m.Generation, after.Generation)

		// What the first version of this format required of current.json, which services that run it still do.
		raw, _, err := store.ReadTagged(t.Context(), segments.CurrentKey, "")
		require.NoError(t, err)
		var first struct {
			FormatVersion int    `json:"format_version"`
			Generation    string `json:"generation"`
			SHA256        string `json:"sha256,omitempty"`
		}
		require.NoError(t, segments.DecodeDocument(raw, &first))
		var plain bytes.Buffer
		require.NoError(t, json.Compact(&plain, raw))
		want, err := json.Marshal(first)
		require.NoError(t, err)
		require.Equal(t, string(want), plain.String())
	})
}
