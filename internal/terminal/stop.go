package terminal

import (
	"context"
	"fmt"
	"time"
)

// UntilStopped runs the work of a one-time command and returns its result. When a signal ends ctx, work has the time
// patience to finish and return. After that, UntilStopped returns without work's result, with the cause of ctx, and
// the process must exit. Some reads ignore contexts, such as a read from an idle pipe or a hanging file system.
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
