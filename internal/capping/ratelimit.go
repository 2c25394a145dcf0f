package capping

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Rate is how many users a client may have decided. The zero value is no limit.
type Rate struct {
	UsersPerSecond int // users_per_second; 0: unlimited
	Burst          int // burst: users at once after a pause, and so the largest batch; 0: UsersPerSecond
}

// Largest is how many users may be decided at once.
func (r Rate) Largest() int { return cmp.Or(r.Burst, r.UsersPerSecond) }

// Check reports what makes r no rate.
func (r Rate) Check() error {
	if r.UsersPerSecond < 0 || r.Burst < 0 {
		return errors.New("users per second and burst must not be negative")
	}
	if r.UsersPerSecond == 0 && r.Burst > 0 {
		return errors.New("a burst needs users per second")
	}
	return nil
}

// RateState is what a client may ask for after a call. RetryAfter and
// ResetAfter are zero when there is nothing to wait for.
type RateState struct {
	Allowed    bool
	Remaining  int           // users that would be allowed at once now
	RetryAfter time.Duration // Allowed false: until the same call would be allowed
	ResetAfter time.Duration // until the whole burst is there again
}

// RateLimiter keeps the rates of clients. A store that several instances share
// is one too (see As), so that they share the clients' budgets. It is safe for
// concurrent use.
type RateLimiter interface {
	// Take takes users from the client's budget, all or nothing. rate is
	// limited, and users are at most its burst. It returns within the deadline
	// of ctx; an error is that the budget could not be reached, and what then
	// is for the caller to decide.
	Take(ctx context.Context, client string, rate Rate, users int) (RateState, error)
}
