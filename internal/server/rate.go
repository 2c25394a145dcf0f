package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

func (r Rate) burst() int {
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
	burst := time.Duration(float64(rate.burst()) * perUser)
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

// steadyLimiter asks a shared limiter, and one of this process while the shared
// one fails: a Redis that is away neither stops calls nor slows each of them.
type steadyLimiter struct {
	shared, own Limiter
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

var _ Limiter = (*steadyLimiter)(nil)

// The time that a shared limiter has, for how long it is left alone when it
// has failed, and for how long that shows when nobody asks it again.
const (
	sharedTimeout = 250 * time.Millisecond
	sharedPause   = time.Second
	sharedShown   = 30 * time.Second
)

func newSteadyLimiter(shared Limiter, clock func() time.Time, log *slog.Logger, registerer prometheus.Registerer) (*steadyLimiter, error) {
	l := &steadyLimiter{shared: shared, own: NewLimiter(clock), clock: clock, log: log, fallbacks: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "capper_rate_fallbacks_total", Help: "Calls whose client's rate was kept by this process alone, as the shared budgets could not be reached.",
	})}
	return l, registerer.Register(l.fallbacks)
}

func (l *steadyLimiter) Allow(ctx context.Context, client string, rate Rate, users int) (RateResult, error) {
	if f := l.failed.Load(); f == nil || l.clock().Sub(f.at) >= sharedPause {
		bounded, cancel := context.WithTimeout(ctx, sharedTimeout)
		defer cancel()
		result, err := l.shared.Allow(bounded, client, rate, users)
		if err == nil {
			l.failed.Store(nil)
			return result, nil
		}
		l.failed.Store(&rateFailure{err, l.clock()})
		l.log.Warn("shared rate limiter failed, using this process' own", "error", err)
	}
	l.fallbacks.Inc()
	return l.own.Allow(ctx, client, rate, users)
}

// trouble is why rates are kept by each process for itself; "" while they are
// shared.
func (l *steadyLimiter) trouble() string {
	f := l.failed.Load()
	if f == nil || l.clock().Sub(f.at) > sharedShown {
		return ""
	}
	return fmt.Sprintf("rates of clients are kept by each instance for itself, so that a client may have as much from each: the shared budgets failed: %v", f.err)
}

// admit takes the users from the client's budget, and says in headers what is
// left of it.
func (s *Server) admit(c *call, field string, users int) error {
	a := s.access.Load()
	rate, ok := a.Rates[c.client]
	if !ok {
		rate = a.Rate
	}
	if rate.UsersPerSecond == 0 {
		return nil
	}
	if users > rate.burst() {
		return fieldFailure(CodeTooLarge, field, "%d users, more than this client may have decided at once (its burst): split the batch into at most %d users",
			users, rate.burst())
	}
	result, err := s.limiter.Allow(c.r.Context(), c.client, rate, users)
	if err != nil {
		return fmt.Errorf("rate of client %q: %w", c.client, err)
	}
	writeRate(c.w.Header(), rate, result)
	if !result.Allowed {
		f := fail(CodeRateLimited, "%d users are beyond the rate of this client (%d users per second, bursts of %d): %d would pass now",
			users, rate.UsersPerSecond, rate.burst(), result.Remaining)
		f.retryAfter = max(result.RetryAfter, time.Millisecond)
		return f
	}
	return nil
}

// writeRate sets the headers in the letters in which they are usually written,
// which Header.Set would change.
func writeRate(h http.Header, rate Rate, result RateResult) {
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-"} {
		h[prefix+"Limit"] = []string{strconv.Itoa(rate.burst())}
		h[prefix+"Remaining"] = []string{strconv.Itoa(result.Remaining)}
		h[prefix+"Reset"] = []string{wholeSeconds(result.ResetAfter)}
	}
}
