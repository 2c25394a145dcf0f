package terminal

import (
	"context"
	"fmt"
	"time"
)

// UntilStopped calls the function "work" and returns the function's result, for commands that run once and end. After a
// signal has ended ctx, the function "work" must return within the duration patience. If "work" does not return in
// time, UntilStopped returns the cause of ctx as the error, and the process must exit. The time limit is necessary,
// because some reads ignore contexts, such as a read from an idle pipe.
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
