package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// An action is a function that starts or stops a component of the service, with a name and a time limit.
type action struct {
	name   string // name for logs and errors
	within time.Duration
	run    func(ctx context.Context) error
}

// A step consists of the action that starts a component of the service, and the action that stops this component.
type step struct {
	up, down action
	// If unused is true, the down action must not run while the action of a later step is still running and may use the
	// component.
	unused bool
}

// errRunning reports that an action exceeded its time limit and is still running.
var errRunning = errors.New("step is still running")

// The constant grace is the time for which the method do() waits for an action after the action's time limit.
const grace = time.Second

// do() runs the action and returns the action's error. The context that do() passes to the action ends at the action's
// time limit. If an action does not return within grace (an extra time) after its time limit, do() returns errRunning
// and the action continues to run.
func (a action) do(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.within, fmt.Errorf("step did not finish within %s", a.within))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.run(ctx) }()
	select {
	case err := <-done:
		return named(a.name, err)
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case err := <-done:
		return named(a.name, err)
	case <-patience.C:
		return fmt.Errorf("%s: %w: %w, and %w", a.name, ctx.Err(), context.Cause(ctx), errRunning)
	}
}

// A stack holds the started steps of the service, with the latest step on top. A stack is not safe for concurrent use.
type stack struct {
	logger *slog.Logger
	clock  func() time.Time
	steps  []step
}

// The method start runs the up action (which starts a component) of a step, and pushes the step on the stack. An up
// action that fails must undo its own effects, because the method start does not push the step of a failed action.
func (s *stack) start(ctx context.Context, next step) error {
	began := s.clock()
	if err := next.up.do(ctx); err != nil {
		return err
	}
	s.logger.Info("started", "step", next.up.name, "took", s.clock().Sub(began).String())
	s.steps = append(s.steps, next)
	return nil
}

// stop() runs the down actions (which stop a component) of all steps, beginning with the latest step. After a stop
// action has failed, stop() continues with the other steps. While an earlier stop action is still running, stop() skips
// each step whose field "unused" is true. The running action may still use the resource that a skipped step would
// close.
func (s *stack) stop() error {
	var errs []error
	running := "" // name of the first action that is still running
	for _, next := range slices.Backward(s.steps) {
		if next.down.run == nil {
			continue
		}
		err := s.undo(next, running)
		if errors.Is(err, errRunning) && running == "" {
			running = next.down.name
		}
		errs = append(errs, err)
	}
	s.steps = nil
	return errors.Join(errs...)
}

func (s *stack) undo(last step, running string) (err error) {
	began := s.clock()
	if last.unused && running != "" {
		err = fmt.Errorf("shutdown step %q was not run, because step %q is still running and may use the same resource",
			last.down.name, running)
	} else {
		err = last.down.do(context.Background())
	}
	if err != nil {
		s.logger.Error("not stopped", "step", last.down.name, "error", err)
		return err
	}
	s.logger.Info("stopped", "step", last.down.name, "took", s.clock().Sub(began).String())
	return nil
}

// A background runs a function in its own goroutine, until a call of the method end.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// The method begin returns a function that starts the given work in its own goroutine.
func (b *background) begin(work func(ctx context.Context)) func(context.Context) error {
	return func(context.Context) error {
		var ctx context.Context
		ctx, b.cancel = context.WithCancel(context.Background())
		b.done = make(chan struct{})
		go func() {
			defer close(b.done)
			work(ctx)
		}()
		return nil
	}
}

// The method end cancels the context of the function that runs in the background, and waits until the function returns.
func (b *background) end(context.Context) error {
	b.cancel()
	<-b.done
	return nil
}

// The function "named" prefixes an error with the name of the operation that failed.
func named(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
