package gate

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"capper/internal/capping"
)

// localLimiter holds a token bucket for each client in memory.
type localLimiter struct {
	clock   func() time.Time
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

var _ capping.RateLimiter = (*localLimiter)(nil)

// NewLimiter returns a rate limiter that keeps its token buckets in memory. Each process limits rates separately. The
// rate limiter needs little memory, because only configured clients have token buckets.
func NewLimiter(clock func() time.Time) capping.RateLimiter {
	return &localLimiter{clock: clock, buckets: map[string]*rate.Limiter{}}
}

func (l *localLimiter) Take(_ context.Context, client string, r capping.Rate, users int) (capping.RateState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	bucket := l.bucket(client, r, now)
	state := capping.RateState{Allowed: bucket.AllowN(now, users)}
	left := bucket.TokensAt(now)
	after := func(users float64) time.Duration {
		return time.Duration(users / float64(r.UsersPerSecond) * float64(time.Second))
	}
	if !state.Allowed {
		state.RetryAfter = after(float64(users) - left)
	}
	state.ResetAfter = after(float64(r.Largest()) - left)
	state.Remaining = max(0, int(left+1e-6)) // adding 1e-6 compensates for rounding
	return state, nil
}

// The method bucket returns the token bucket of the client, with the client's current rate. If the client's rate
// changes, the bucket still lacks the tokens that calls took at the old rate.
func (l *localLimiter) bucket(client string, r capping.Rate, now time.Time) *rate.Limiter {
	limit, burst := rate.Limit(r.UsersPerSecond), r.Largest()
	old := l.buckets[client]
	if old != nil && old.Limit() == limit && old.Burst() == burst {
		return old
	}
	bucket := rate.NewLimiter(limit, burst)
	if old != nil {
		taken := int(float64(old.Burst()) - old.TokensAt(now))
		bucket.AllowN(now, min(taken, burst))
	}
	l.buckets[client] = bucket
	return bucket
}
