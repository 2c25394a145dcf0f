package capping

import (
	"context"
	"errors"
	"time"
)

// A Caller is the API call for which a store works. A caller who waits in vain repeats the call. The late first attempt
// must then not undo what happened after the answer to the repeated call.
//
// The zero Caller stands for work without an API call.
type Caller struct {
	// Gone is closed when the caller no longer waits for the answer. The store then finishes what it has started, and
	// begins nothing more. A nil channel stands for a caller who never leaves.
	Gone <-chan struct{}
	// Asked is the time at which the call arrived. A release removes no send that is surely later, and a change of a
	// set overrides no change that is surely later. The value 0 means an unknown time.
	Asked Instant
}

// Latest returns the latest time that a clock can have shown before the call arrived. The clocks of the instances
// differ from the clock of the store by up to the tolerance. Latest returns Never if the time of the call is unknown.
func (c Caller) Latest(tolerance time.Duration) Instant {
	if c.Asked == 0 {
		return Never
	}
	return min(c.Asked+Instant((2*tolerance).Milliseconds()), Never)
}

// ErrCallerGone is the error of a store call that the store did not begin, or did not finish, because the caller no
// longer waits for the answer.
var ErrCallerGone = errors.New("the caller has closed its connection")

type callerKey struct{}

// WithCaller returns a context for store calls on behalf of the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of the latest WithCaller, or the zero Caller.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// CheckCaller returns ErrCallerGone if the caller of the context has left, otherwise nil.
func CheckCaller(ctx context.Context) error {
	select {
	case <-CallerOf(ctx).Gone:
		return ErrCallerGone
	default:
		return nil
	}
}
