//go:build storms

package publish

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
)

// TestNobodyLeavesAListInAStorm runs builds, rollbacks, holds and publishes of lists at once. It
// checks that a user who objected in a live generation stays on the list, and that held segments do
// not change.
func TestNobodyLeavesAListInAStorm(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	first := publishOver(t, at, withList(bitmap.Of(1), bitmap.Of(0)))
	var mu sync.Mutex
	objected := map[uint32]bool{0: true} // in a generation that went live
	var storm sync.WaitGroup
	for worker := range 6 {
		storm.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(worker)))
			for i := range 25 {
				if err := oneOfAStorm(t.Context(), at, first.Generation, random, uint32(100+worker*1000+i), &mu,
					objected); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	storm.Wait()
	require.Greater(t, len(objected), 10, "some won")
	now := live(t, at)
	for id := range objected {
		require.True(t, now.Sets[0].Contains(id), "user %d", id)
	}
}

// oneOfAStorm performs one random operation on a location; lost races and holds are expected.
func oneOfAStorm(ctx context.Context, at objects.Location, first string, random *rand.Rand, id uint32, mu *sync.Mutex,
	objected map[uint32]bool) error {
	p := &Publisher{Location: at, ToolVersion: "test"}
	base, err := ReadLiveState(ctx, at)
	if err != nil {
		return err
	}
	list := bitmap.Of(append(base.Generation.Sets[0].IDs(), id)...)
	switch random.IntN(5) {
	case 0:
		earlier, readErr := segments.ReadGeneration(ctx, at, first)
		if readErr != nil {
			return readErr
		}
		plan, planErr := PlanRollback(earlier, base, nil, nil)
		if planErr != nil {
			return planErr
		}
		_, err = p.RollbackWith(ctx, plan, base)
		id = 0
	case 1:
		err = p.SetHold(ctx, "wrong")
		id = 0
	case 2:
		_, err = p.ReleaseHold(ctx)
		id = 0
	case 3:
		_, err = p.Publish(ctx, withList(bitmap.Of(id), list), base, "because")
	default:
		only, _ := withList(bitmap.Of(id), list).SetsThatGrew(base.Generation, func(string) bool { return false })
		_, err = p.Publish(ctx, only, base, "because")
	}
	switch {
	case errors.Is(err, objects.ErrLostRace), errors.As(err, new(*HoldError)):
		return nil
	case err == nil:
		mu.Lock()
		defer mu.Unlock()
		objected[id] = true
	}
	return err
}
