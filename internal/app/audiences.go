package app

import (
	"sync/atomic"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/config"
)

// audiences has the expressions of a configuration for calls that have taken its policy: what a name
// stands for is changed by a reload together with the limits. The zero value has none.
type audiences struct {
	latest atomic.Pointer[[2]*config.Config] // the newest one, and the one before; nil: there was none
}

// take notes a configuration, whose policy goes in force next. It is called by one goroutine at a time.
func (a *audiences) take(cfg *config.Config) {
	next := [2]*config.Config{cfg, cfg}
	if before := a.latest.Load(); before != nil {
		next[1] = before[0]
	}
	a.latest.Store(&next)
}

// of is the expressions beside a policy that was in force a moment ago.
func (a *audiences) of(policy *capping.Policy) *audience.Named {
	latest := a.latest.Load()
	if latest[1].Policy == policy {
		return latest[1].Audiences
	}
	return latest[0].Audiences
}
