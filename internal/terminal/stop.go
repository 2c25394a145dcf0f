package terminal

import (
	"context"
	"fmt"
	"time"
)

// UntilStopped runs work of a command that does one thing and then ends, and
// returns its result. When ctx ends first, at a signal, work has so long to put
// away what it holds and to return; then UntilStopped returns without it, with
// the cause of ctx, and the process is to end: a read from a pipe that nobody
// writes to, or from a file system that hangs, knows nothing of contexts.
func UntilStopped[T any](ctx context.Context, patience time.Duration, work func() (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := work()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	impatient := time.NewTimer(patience)
	defer impatient.Stop()
	select {
	case o := <-done:
		return o.result, o.err
	case <-impatient.C:
		var none T
		return none, fmt.Errorf("%w: stopped: %w", ctx.Err(), context.Cause(ctx))
	}
}
