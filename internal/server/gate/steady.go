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

// SteadyLimiter asks a shared limiter, and one of this process while the shared
// one fails: a Redis that is away neither stops calls nor slows each of them.
type SteadyLimiter struct {
	shared, own capping.RateLimiter
	clock       func() time.Time
	log         *slog.Logger
	fallbacks   prometheus.Counter
	failed      atomic.Pointer[rateFailure] // nil: the shared one answered last
}

// rateFailure is that the shared limiter failed.
type rateFailure struct {
	err error
	at  time.Time
}

var _ capping.RateLimiter = (*SteadyLimiter)(nil)

// The time that a shared limiter has, for how long it is left alone when it
// has failed, and for how long that shows when nobody asks it again.
const (
	sharedTimeout = 250 * time.Millisecond
	sharedPause   = time.Second
	sharedShown   = 30 * time.Second
)

// NewSteadyLimiter is shared with a limiter of this process behind it.
func NewSteadyLimiter(shared capping.RateLimiter, clock func() time.Time, log *slog.Logger,
	registerer prometheus.Registerer) (*SteadyLimiter, error) {
	l := &SteadyLimiter{shared: shared, own: NewLimiter(clock), clock: clock, log: log,
		fallbacks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "capper_rate_fallbacks_total",
			Help: "Calls whose rate limit was checked by this instance alone, because the shared limits failed.",
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

// Trouble is why rates are kept by each process for itself; "" while they are
// shared.
func (l *SteadyLimiter) Trouble() string {
	f := l.failed.Load()
	if f == nil || l.clock().Sub(f.at) > sharedShown {
		return ""
	}
	return fmt.Sprintf("rate limits of clients are checked by each instance alone, so a client may use its full "+
		"rate at every instance: the shared limits failed: %v", f.err)
}
