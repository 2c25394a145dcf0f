//go:build storms

package publish

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments/segmentstest"
)

// tolerable reports whether an error is an expected result of concurrent operations.
func tolerable(err error) bool {
	var withdrawn *WithdrawnError
	if errors.As(err, &withdrawn) {
		return true
	}
	for _, known := range []error{nil, objects.ErrLostRace, errCollecting, objects.ErrNotFound} {
		if errors.Is(err, known) {
			return true
		}
	}
	return tooSlow(err)
}

func TestStormOfCollectionsBuildsAndRollbacks(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		publish(t, store, segmentstest.Stepping(), []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		slow := pausing(ctx, store)
		var published, rolledBack, removed atomic.Int64
		// Who publishes without a rest lets no collection come to anything, and the reverse.
		rest := func(most int) { _ = pause(ctx, time.Duration(rand.IntN(most))*time.Millisecond) }
		publishing := func() error { rest(1000); return counting(&published, stormPublish(ctx, slow)) }
		rollingBack := func() error { rest(1000); return counting(&rolledBack, stormRollback(ctx, slow)) }
		collecting := func() error {
			rest(200)
			n, err := stormCollect(ctx, slow, 5*time.Second)
			removed.Add(int64(n))
			return err
		}
		var wg sync.WaitGroup
		for _, work := range []func() error{publishing, publishing, rollingBack, collecting, collecting} {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := work(); ctx.Err() == nil && !tolerable(err) {
						t.Error(err)
						cancel()
					}
				}
			})
		}
		// Ten seconds, or until enough has happened; on a busy machine until something of each has.
		begun := time.Now()
		for ctx.Err() == nil && time.Since(begun) < 2*time.Minute {
			requireWholeLive(t, store)
			_ = pause(ctx, 20*time.Millisecond)
			enough := published.Load() >= 6 && rolledBack.Load() >= 3 && removed.Load() >= 30
			some := published.Load() > 0 && rolledBack.Load() > 0 && removed.Load() > 0
			if enough || some && time.Since(begun) > 10*time.Second {
				break
			}
		}
		require.Positive(t, published.Load(), "published")
		require.Positive(t, rolledBack.Load(), "rolled back")
		require.Positive(t, removed.Load(), "objects removed")
		cancel()
		wg.Wait()
		live(t, store)
	})
}

// requireWholeLive checks that the live generation is complete.
func requireWholeLive(t *testing.T, store objects.Location) {
	state, err := ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	require.NoError(t, state.Fault)
	require.NotNil(t, state.Generation)
}

func counting(n *atomic.Int64, err error) error {
	if err == nil {
		n.Add(1)
	}
	return err
}

// TestStormOfTheKilled runs the storm with separate processes, each of which is killed at some step.
func TestStormOfTheKilled(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
		publish(t, store, segmentstest.Stepping(), []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2))
		kills := 0
		_, stride := eachStep(location)
		rounds := 12 / stride
		for round := range rounds {
			var running []*exec.Cmd
			for _, role := range []string{rolePublish, roleRollback, roleCollect, rolePublish} {
				step := rand.IntN(20)
				if role == roleCollect {
					step = rand.IntN(12)
				}
				cmd, _ := runDoomed(t, location, step, 1, doomedRole+"="+role)
				running = append(running, cmd)
			}
			for _, cmd := range running {
				if wasKilled(cmd.Wait()) {
					kills++
				}
			}
			g := live(t, store)
			require.NotEmpty(t, g.Bitmaps, "round %d", round)
		}
		require.Greater(t, kills, rounds)
		require.NoError(t, changeControls(t.Context(), store, func(c *controls) { c.Withdrawn = nil }))
		require.NoError(t, stormPublish(t.Context(), store), "whoever comes next succeeds")
		collect(t, store, 1)
		live(t, store)
	})
}
