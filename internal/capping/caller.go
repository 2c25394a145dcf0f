package capping

import (
	"context"
	"errors"
	"time"
)

// A Caller describes the API call for which a store works. A caller who gets no answer repeats the call. If the first
// attempt of a repeated call arrives late, it must not undo changes from the time after the answer.
//
// The zero Caller stands for work without an API call.
type Caller struct {
	// Gone is closed when the caller no longer waits for the answer. The store then finishes what it has started, and
	// begins nothing more. A nil channel stands for a caller who never leaves.
	Gone <-chan struct{}
	// Asked is the time at which the call arrived. A release removes no send that was certainly recorded later. A
	// change of a set overrides no change that was certainly made later. The value 0 means an unknown time.
	Asked Instant
}

// A Period contains each time that is later than the field After and not later than the field UpTo. The zero Period is
// empty.
type Period struct{ After, UpTo Instant }

// The method Has reports whether the period holds the time.
func (p Period) Has(at Instant) bool { return at > p.After && at <= p.UpTo }

// The method Later returns a period: each record with a time in this period was certainly made after the call. The
// argument "now" is the present time of the store's clock. If a record has a time after the period, the record was made
// before a clock was set back. The period is empty if the time of the call is unknown.
func (c Caller) Later(now Instant, tolerance time.Duration) Period {
	if c.Asked == 0 {
		return Period{}
	}
	both := Instant((2 * tolerance).Milliseconds())
	return Period{c.Asked + both, now + both}
}

// ErrCallerGone is the error of a store call that the store did not begin, or did not finish, because the caller no
// longer waits for the answer.
var ErrCallerGone = errors.New("the caller has closed its connection")

type callerKey struct{}

// WithCaller returns a context for store calls on behalf of the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that the latest call of WithCaller stored in the context, or the zero Caller.
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
