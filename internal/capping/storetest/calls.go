package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// The method "together" makes n filter calls at the same time and returns the verdicts of each call.
func (f *fixture) together(n int, batch func(call int) *capping.Batch) [][]capping.Verdict {
	f.Helper()
	verdicts, errs := make([][]capping.Verdict, n), make([]error, n)
	var calls sync.WaitGroup
	start := make(chan struct{})
	for call := range n {
		b := batch(call)
		verdicts[call] = make([]capping.Verdict, len(b.Users))
		calls.Go(func() {
			<-start
			errs[call] = f.store.Filter(context.Background(), b, verdicts[call])
		})
	}
	close(start)
	calls.Wait()
	for _, err := range errs {
		require.NoError(f, err)
	}
	return verdicts
}

// The function "outcomes" counts, over all concurrent calls, the number of times that user i has each outcome.
func outcomes(verdicts [][]capping.Verdict, i int) (count [4]int) {
	for call := range verdicts {
		count[verdicts[call][i].Outcome]++
	}
	return count
}

func concurrentMessages(f *fixture) {
	const calls = 8
	for range 5 {
		users := f.users(200)
		backwards := slices.Clone(users)
		slices.Reverse(backwards)
		verdicts := f.together(calls, func(call int) *capping.Batch {
			if call%2 == 1 { // opposite orders would deadlock a store that locks user by user
				return f.batch(f.message(), backwards, daily(2), weekly(5))
			}
			return f.batch(f.message(), users, daily(2), weekly(5))
		})
		for call := 1; call < calls; call += 2 {
			slices.Reverse(verdicts[call])
		}
		for i, user := range users {
			require.Equal(f, [4]int{capping.Allowed: 2, capping.Denied: calls - 2}, outcomes(verdicts, i))
			require.Equal(f, 2, f.log(user).Len())
		}
	}
}

func concurrentSameMessage(f *fixture) {
	const calls = 6
	for range 5 {
		users, message := f.users(200), f.message()
		verdicts := f.together(calls, func(int) *capping.Batch { return f.batch(message, users, daily(1)) })
		for i, user := range users {
			require.Equal(f, [4]int{capping.Allowed: 1, capping.Replayed: calls - 1}, outcomes(verdicts, i))
			require.Equal(f, 1, f.log(user).Len())
		}
	}
}

// slotIsALock checks that the slot of a limit of one send works like a lock: one call holds the slot until the call
// releases the send. Concurrent calls for many users take the slots of limits of one send, and release the slots in any
// order.
func slotIsALock(f *fixture) {
	const calls, rounds = 6, 25
	users := f.users(40)
	holders := make([]atomic.Int32, len(users))
	var taken atomic.Int32
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			for range rounds {
				message := f.message()
				held, err := f.take(message, users, holders)
				if err == nil && len(held) > 0 {
					taken.Add(int32(len(held)))
					err = f.store.Release(context.Background(), capping.Message{ID: message}.Token(), 0, held,
						make([]capping.Released, len(held)))
				}
				if err != nil {
					f.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(f, int(taken.Load()), len(users))
	f.all(f.filter(f.batch(f.message(), users, daily(1))), capping.Allowed)
}

// The method "take" filters the message for the users and returns the allowed users. The method "take" also checks that
// no other call holds the only slot of an allowed user.
func (f *fixture) take(message string, users []capping.UserID, holders []atomic.Int32) (held []capping.UserID,
	err error) {
	verdicts := make([]capping.Verdict, len(users))
	if err := f.store.Filter(context.Background(), f.batch(message, users, daily(1)), verdicts); err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		if v.Outcome != capping.Allowed {
			continue
		}
		held = append(held, users[i])
		if n := holders[i].Add(1); n != 1 {
			return held, fmt.Errorf("user %d has %d sends, but the limit is one", users[i], n)
		}
	}
	for i, v := range verdicts {
		if v.Outcome == capping.Allowed {
			holders[i].Add(-1)
		}
	}
	return held, nil
}

func deadlinePassed(f *fixture) {
	users, message := f.users(10), f.message()
	f.all(f.filter(f.batch(message, users[:5])), capping.Allowed)
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	verdicts := make([]capping.Verdict, len(users))
	require.Error(f, f.store.Filter(ctx, f.batch(f.message(), users), verdicts))
	require.Equal(f, make([]capping.Verdict, len(users)), verdicts)
	released := make([]capping.Released, len(users))
	require.Error(f, f.store.Release(ctx, capping.Message{ID: message}.Token(), 0, users, released))
	require.Equal(f, make([]capping.Released, len(users)), released)
	require.Error(f, f.store.Erase(ctx, users[0]))
	_, err := f.store.Log(ctx, users[0])
	require.Error(f, err)
	for i, user := range users {
		require.Equal(f, i < 5, f.log(user).Len() == 1, "user %d", i)
	}
}

func health(f *fixture) {
	h := f.store.Health(context.Background())
	require.Equal(f, "ok", h.State)
	require.Empty(f, h.Error)
	require.Contains(f, []string{"embedded", "redis"}, h.Kind)
}
