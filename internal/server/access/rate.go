package access

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Rate is how many users a client may have decided.
type Rate struct {
	UsersPerSecond int // 0: unlimited
	Burst          int // users at once after a pause, and so the largest batch; 0: UsersPerSecond
}

func (r Rate) check() error {
	if r.UsersPerSecond < 0 || r.Burst < 0 {
		return errors.New("users per second and burst must not be negative")
	}
	if r.UsersPerSecond == 0 && r.Burst > 0 {
		return errors.New("a burst needs users per second")
	}
	return nil
}

// Largest is how many users may be decided at once.
func (r Rate) Largest() int {
	if r.Burst == 0 {
		return r.UsersPerSecond
	}
	return r.Burst
}

// Limiter keeps the rates of clients. It is safe for concurrent use.
type Limiter interface {
	// Allow takes users from the client's budget, or takes nothing and
	// answers Allowed false. users is at most the burst. It returns within
	// the deadline of ctx.
	Allow(ctx context.Context, client string, rate Rate, users int) (RateResult, error)
}

// RateResult is a client's budget after a call.
type RateResult struct {
	Allowed    bool
	Remaining  int           // users that could be decided at once now
	RetryAfter time.Duration // Allowed false: when the same call can be
	ResetAfter time.Duration // when the whole burst is there again
}

// localLimiter is the generic cell rate algorithm: a client's whole state is
// one instant, at which its budget will be full again.
type localLimiter struct {
	clock func() time.Time
	mu    sync.Mutex
	full  map[string]time.Time
}

var _ Limiter = (*localLimiter)(nil)

// NewLimiter is a limiter in memory: each process that uses one has budgets of
// its own. Clients are those of the configuration, so it stays small.
func NewLimiter(clock func() time.Time) Limiter {
	return &localLimiter{clock: clock, full: map[string]time.Time{}}
}

func (l *localLimiter) Allow(_ context.Context, client string, rate Rate, users int) (RateResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	full := l.full[client]
	if full.Before(now) {
		full = now
	}
	perUser := float64(time.Second) / float64(rate.UsersPerSecond)
	cost := time.Duration(float64(users) * perUser)
	burst := time.Duration(float64(rate.Largest()) * perUser)
	after := full.Add(cost).Sub(now)
	result := RateResult{Allowed: after <= burst}
	if result.Allowed {
		full = full.Add(cost)
		l.full[client] = full
	} else {
		result.RetryAfter = after - burst
	}
	result.ResetAfter = full.Sub(now)
	result.Remaining = max(0, int(float64(burst-result.ResetAfter)/perUser+1e-6))
	return result, nil
}
