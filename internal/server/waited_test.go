package server_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/testkit"
)

// changingLimiter activates the next generation while a call waits for its turn.
type changingLimiter struct{ next func() }

func (l *changingLimiter) Take(context.Context, string, capping.Rate, int) (capping.RateState, error) {
	l.next()
	return capping.RateState{Allowed: true, Remaining: 1}, nil
}

// everybodyBlocked assigns all users to the segment blocked.
func everybodyBlocked(capping.UserID) uint8 { return 4 }

// TestACallThatWaitedIsDecidedByThePresentGeneration checks that a call uses the lists and limits at the end of its
// wait. A user who unsubscribed during the wait is not allowed.
func TestACallThatWaitedIsDecidedByThePresentGeneration(t *testing.T) {
	t.Parallel()
	names := []string{"new", "active", "vip", "blocked", "free"}
	var inUse atomic.Pointer[testSegments]
	inUse.Store(&testSegments{names: names, lookup: byHundred})
	clock := testkit.NewClockAt(startOfTest)
	store := openStore(t, clock.Now)
	decider := capping.New(store, func() capping.Segments { return inUse.Load() }, testPolicy(), clock.Now)
	s := newServiceOver(t, store, clock, withRate(100, 100), func(cfg *server.Config) {
		cfg.Capper = decider
		cfg.Limiter = &changingLimiter{func() { inUse.Store(&testSegments{names: names, lookup: everybodyBlocked}) }}
	})
	s.key = "f1.secret-of-the-engine"
	answer := s.filter(map[string]any{"message_id": "m", "user_ids": []int{1, 401}})
	require.Empty(t, answer.Allowed)
	require.Len(t, answer.Denied, 2)
}
