package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// history records the actions of steps in order.
type history struct{ did []string }

func (h *history) action(name string, err error) action {
	return action{name, time.Minute, func(context.Context) error {
		h.did = append(h.did, name)
		return err
	}}
}

func (h *history) step(name string, err error) step {
	return step{up: h.action("start "+name, nil), down: h.action("stop "+name, err)}
}

func newStack() stack { return stack{logger: slog.New(slog.DiscardHandler), clock: time.Now} }

func TestStepsStopInReverseAndOnce(t *testing.T) {
	t.Parallel()
	var h history
	s := newStack()
	stuck := errors.New("stuck")
	require.NoError(t, s.start(t.Context(), h.step("a", nil)))
	require.NoError(t, s.start(t.Context(), h.step("b", stuck)))
	require.NoError(t, s.start(t.Context(), step{up: h.action("start c", nil)}))
	require.NoError(t, s.start(t.Context(), h.step("d", nil)))
	require.ErrorIs(t, s.start(t.Context(), step{up: h.action("start e", stuck), down: h.action("stop e", nil)}), stuck)
	require.EqualError(t, s.stop(), "stop b: stuck")
	require.NoError(t, s.stop())
	require.Equal(t, []string{"start a", "start b", "start c", "start d", "start e", "stop d", "stop b", "stop a"},
		h.did)
}

// TestStepsAreBounded checks that an action beyond its time limit is abandoned, and that the parts it uses stay open.
func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	var h history
	s := newStack()
	release := make(chan struct{})
	defer close(release)
	hang := func(context.Context) error { <-release; return nil }
	store := h.step("store", nil)
	store.unused = true
	require.NoError(t, s.start(t.Context(), h.step("segments", nil)))
	require.NoError(t, s.start(t.Context(), store))
	require.NoError(t, s.start(t.Context(), step{up: h.action("start calls", nil),
		down: action{"stop calls", time.Millisecond, hang}}))

	err := s.start(t.Context(), step{up: action{"listen", time.Millisecond, hang}})
	require.ErrorIs(t, err, errRunning)
	require.EqualError(t, err, "listen: context deadline exceeded: step did not finish within 1ms, and step is "+
		"still running")

	err = s.stop()
	require.ErrorIs(t, err, errRunning)
	require.ErrorContains(t, err, "stop calls: context deadline exceeded: step did not finish within 1ms, and step is "+
		"still running")
	require.ErrorContains(t, err, `shutdown step "stop store" was not run, because step "stop calls" is still `+
		"running")
	require.Equal(t, []string{"start segments", "start store", "start calls", "stop segments"}, h.did)
}
