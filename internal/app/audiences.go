package app

import (
	"sync/atomic"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/config"
)

// audiences keeps the named expressions of each configuration together with its policy, because a reload changes
// both. A call that uses an older policy thus gets the matching expressions. The zero value has no expressions.
type audiences struct {
	latest atomic.Pointer[[2]*config.Config] // the newest configuration and the previous one; nil: there is none
}

// take records a configuration whose policy is applied next. Only one goroutine at a time may call take.
func (a *audiences) take(cfg *config.Config) {
	next := [2]*config.Config{cfg, cfg}
	if before := a.latest.Load(); before != nil {
		next[1] = before[0]
	}
	a.latest.Store(&next)
}

// of returns the expressions that belong to the current policy, or to a recent one.
func (a *audiences) of(policy *capping.Policy) *audience.Named {
	latest := a.latest.Load()
	if latest[1].Policy == policy {
		return latest[1].Audiences
	}
	return latest[0].Audiences
}
