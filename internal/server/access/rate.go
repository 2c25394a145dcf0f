package access

import (
	"context"
	"sync"
	"time"

	"capper/internal/capping"
)

// localLimiter is the generic cell rate algorithm: a client's whole state is
// one instant, at which its budget will be full again.
type localLimiter struct {
	clock func() time.Time
	mu    sync.Mutex
	full  map[string]time.Time
}

var _ capping.RateLimiter = (*localLimiter)(nil)

// NewLimiter is a limiter in memory: each process that uses one has budgets of
// its own. Clients are those of the configuration, so it stays small.
func NewLimiter(clock func() time.Time) capping.RateLimiter {
	return &localLimiter{clock: clock, full: map[string]time.Time{}}
}

func (l *localLimiter) Take(_ context.Context, client string, rate capping.Rate, users int) (capping.RateState, error) {
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
	result := capping.RateState{Allowed: after <= burst}
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
