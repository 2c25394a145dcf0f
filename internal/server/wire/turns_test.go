package wire

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// TestTurnsGoRound checks that holders take turns, and that the calls of one holder keep their order.
func TestTurnsGoRound(t *testing.T) {
	t.Parallel()
	var turns turns
	var ends []func()
	for range atOnce {
		end, err := turns.take(t.Context(), "greedy")
		require.NoError(t, err)
		ends = append(ends, end)
	}
	var queue []chan struct{}
	for _, holder := range []string{"greedy", "greedy", "greedy", "modest", "other", "modest"} {
		turn, err := turns.queue(holder)
		require.NoError(t, err)
		queue = append(queue, turn)
	}
	ends[0]()
	for _, next := range []int{0, 3, 4, 1, 5, 2} {
		for i, turn := range queue {
			select {
			case <-turn:
				require.Equal(t, next, i)
				queue[i] = nil
			default:
				require.NotEqual(t, next, i)
			}
		}
		turns.end()
	}
	ends[1]()
	require.Zero(t, turns.working)
	require.Empty(t, turns.waiting)
}

// TestTurnsAreBounded checks that a deadline ends a wait, and that one holder has a limited number of waiting calls.
func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	var turns turns
	for range atOnce {
		_, err := turns.take(t.Context(), "a")
		require.NoError(t, err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := turns.take(late, "b")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, turns.order)
	for range maxWaiting {
		_, err := turns.queue("a")
		require.NoError(t, err)
	}
	_, err = turns.queue("a")
	var refused *Failure
	require.ErrorAs(t, err, &refused)
	require.EqualValues(t, api.CodeOverloaded, refused.Code)
	_, err = turns.queue("b")
	require.NoError(t, err)
}
