// Package oneshot ends commands that do one thing and then end, at the first
// signal, whatever they wait for: a read from a pipe that nobody writes to, or from
// a file system that hangs, knows nothing of contexts.
package oneshot

import (
	"context"
	"fmt"
	"time"
)

// Run runs work and returns its result. When ctx ends first, work has so long to
// put away what it holds and to return; then Run returns without it, with the
// cause of ctx, and the process is to end.
func Run[T any](ctx context.Context, patience time.Duration, work func() (T, error)) (T, error) {
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
