package terminal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUntilStopped(t *testing.T) {
	t.Parallel()
	fault := errors.New("x")
	got, err := UntilStopped(t.Context(), 0, func() (int, error) { return 7, fault })
	require.Equal(t, 7, got)
	require.ErrorIs(t, err, fault)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	got, err = UntilStopped(stopped, time.Minute, func() (int, error) { <-stopped.Done(); return 7, nil })
	require.NoError(t, err, "it has put away what it held")
	require.Equal(t, 7, got)

	hangs := make(chan struct{})
	defer close(hangs)
	_, err = UntilStopped(stopped, time.Millisecond, func() (int, error) { <-hangs; return 7, nil })
	require.ErrorIs(t, err, context.Canceled)
}
