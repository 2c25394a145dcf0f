package app

import (
	"sync/atomic"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/config"
)

// The type "audiences" holds the named audience expressions of the two latest configurations, each with its policy.
// With two configurations in memory, a call that began before a reload still finds the expressions of the previous
// configuration. The zero value contains no expressions.
type audiences struct {
	latest atomic.Pointer[[2]*config.Config] // newest and previous configuration; nil: no configuration yet
}

// The method take stores the configuration that the service is about to apply. Only one goroutine at a time may call
// this method.
func (a *audiences) take(cfg *config.Config) {
	next := [2]*config.Config{cfg, cfg}
	if before := a.latest.Load(); before != nil {
		next[1] = before[0]
	}
	a.latest.Store(&next)
}

// The method "of" returns the named audience expressions of the configuration that contains the given policy. The
// argument "policy" is the current or the previous policy.
func (a *audiences) of(policy *capping.Policy) *audience.Named {
	latest := a.latest.Load()
	if latest[1].Policy == policy {
		return latest[1].Audiences
	}
	return latest[0].Audiences
}
