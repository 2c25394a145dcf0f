package gate

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// SteadyLimiter uses a rate limiter that all instances share, and falls back to a local rate limiter while the shared
// limiter fails. With the local rate limiter, calls neither fail nor slow down during an outage of Redis.
type SteadyLimiter struct {
	shared, own capping.RateLimiter
	clock       func() time.Time
	log         *slog.Logger
	fallbacks   prometheus.Counter
	failed      atomic.Pointer[rateFailure] // nil: the last call to the shared limiter succeeded
}

// rateFailure describes a failure of the rate limiter that all instances share.
type rateFailure struct {
	err error
	at  time.Time
}

var _ capping.RateLimiter = (*SteadyLimiter)(nil)

// These constants control the fallback to the local rate limiter. The constant sharedTimeout is the time limit of a
// call to the shared limiter, and sharedPause is the pause after a failure. After a failure of the shared rate limiter,
// Trouble reports the failure for the duration sharedShown.
const (
	sharedTimeout = 250 * time.Millisecond
	sharedPause   = time.Second
	sharedShown   = 30 * time.Second
)

// NewSteadyLimiter returns a rate limiter that uses the given shared rate limiter, and falls back to a new local one.
func NewSteadyLimiter(shared capping.RateLimiter, clock func() time.Time, log *slog.Logger,
	registerer prometheus.Registerer) (*SteadyLimiter, error) {
	l := &SteadyLimiter{shared: shared, own: NewLimiter(clock), clock: clock, log: log,
		fallbacks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "capper_rate_fallbacks_total",
			Help: "Calls checked only by this instance's rate limit, because the limit shared by all instances failed.",
		})}
	return l, registerer.Register(l.fallbacks)
}

func (l *SteadyLimiter) Take(ctx context.Context, client string, rate capping.Rate, users int) (capping.RateState,
	error) {
	if f := l.failed.Load(); f == nil || l.clock().Sub(f.at) >= sharedPause {
		bounded, cancel := context.WithTimeout(ctx, sharedTimeout)
		defer cancel()
		result, err := l.shared.Take(bounded, client, rate, users)
		if err == nil {
			l.failed.Store(nil)
			return result, nil
		}
		l.failed.Store(&rateFailure{err, l.clock()})
		l.log.WarnContext(ctx, "shared rate limits failed, using the limits of this instance alone", "error", err)
	}
	l.fallbacks.Inc()
	return l.own.Take(ctx, client, rate, users)
}

// The method Trouble returns the reason why this process now limits rates alone, or "" while all instances share their
// rate limits.
func (l *SteadyLimiter) Trouble() string {
	f := l.failed.Load()
	if f == nil || l.clock().Sub(f.at) > sharedShown {
		return ""
	}
	return fmt.Sprintf("rate limits of clients are checked by each instance alone, so a client may use its full "+
		"rate at every instance: the shared limits failed: %v", f.err)
}
