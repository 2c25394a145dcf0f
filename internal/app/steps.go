package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// action is a task with a time limit.
type action struct {
	name   string // the name in logs and errors
	within time.Duration
	run    func(ctx context.Context) error
}

// step is a part of the service with the actions that start and undo it.
type step struct {
	up, down action
	// unused: the step must not be undone while a later step still runs and may use it.
	unused bool
}

// errRunning reports that an action was abandoned and still runs.
var errRunning = errors.New("step is still running")

// grace is the time that an action may take to return after its time limit.
const grace = time.Second

// do runs the action. The action's context ends at the time limit. When the action does not return soon after, do
// returns errRunning and leaves it running.
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

// stack holds the started steps, the last one on top. It is not safe for concurrent use.
type stack struct {
	logger *slog.Logger
	clock  func() time.Time
	steps  []step
}

// start runs a step and pushes it on the stack. A step that fails must undo itself and is not pushed.
func (s *stack) start(ctx context.Context, next step) error {
	began := s.clock()
	if err := next.up.do(ctx); err != nil {
		return err
	}
	s.logger.Info("started", "step", next.up.name, "took", s.clock().Sub(began).String())
	s.steps = append(s.steps, next)
	return nil
}

// stop undoes the steps from the top, each once. After a failed step, stop continues with the others, except those
// that must not be in use.
func (s *stack) stop() error {
	var errs []error
	running := "" // the first action that still runs
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
		err = fmt.Errorf("%s: skipped until the process ends, because this step did not finish and may need it: %s",
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

// background is work that runs until it is ended.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// begin returns the action that starts the work.
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

// end is the action that ends the work and waits for its return.
func (b *background) end(context.Context) error {
	b.cancel()
	<-b.done
	return nil
}

// named adds the name of the operation to an error.
func named(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
