package app

import (
	"sync/atomic"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/config"
)

// audiences holds the named audience expressions of the latest two configurations, each with its policy. A call that
// still uses the previous policy therefore gets the expressions of the previous configuration. The zero value contains
// no expressions.
type audiences struct {
	latest atomic.Pointer[[2]*config.Config] // newest and previous configuration; nil: no configuration yet
}

// take stores a configuration, whose policy the service applies next. Only one goroutine at a time may call take.
func (a *audiences) take(cfg *config.Config) {
	next := [2]*config.Config{cfg, cfg}
	if before := a.latest.Load(); before != nil {
		next[1] = before[0]
	}
	a.latest.Store(&next)
}

// of returns the named expressions that belong to the given policy, which is the current or a recent policy.
func (a *audiences) of(policy *capping.Policy) *audience.Named {
	latest := a.latest.Load()
	if latest[1].Policy == policy {
		return latest[1].Audiences
	}
	return latest[0].Audiences
}
