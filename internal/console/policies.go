package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"capper/client/api"
)

// maxPolicies is the maximum number of earlier policies that the console keeps in memory.
const maxPolicies = 50

// A Version is a policy (limits and other rules) with the time from which the policy was in force.
type Version struct {
	Policy *api.Policy
	Since  time.Time
}

// Past is the type of a function that returns the policies from before the start of the process, beginning with the
// oldest. If the earlier policies are unknown, a Past function returns nil. A later call of a Past function returns
// the same policies, and possibly newer policies.
type Past func(ctx context.Context) ([]Version, error)

// The type Policies stores the policies that the service has applied since the start of the process, and calls Past for
// older policies.
type Policies struct {
	mu       sync.Mutex
	versions []Version // beginning with the oldest
	past     Past
	asked    time.Time // time of the last call of Past
	before   []Version // result of the last call of Past
	failed   error     // error of the last call of Past; nil: no error
}

// pastPause is the time for which Policies reuses the result of the function Past. The constant pastTimeout is the
// longest time for which a visitor waits for the function Past.
const (
	pastPause   = time.Minute
	pastTimeout = 3 * time.Second
)

// SetPast sets the function that returns the policies from before the start of the process.
func (p *Policies) SetPast(past Past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = past
}

// The method Note stores the current policy if the policy has changed since the last call of Note.
func (p *Policies) Note(now time.Time, policy *api.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.versions); n > 0 && p.versions[n-1].Policy.Version == policy.Version {
		return
	}
	p.versions = append(p.versions, Version{policy, now})
	if len(p.versions) > maxPolicies {
		p.versions = append([]Version(nil), p.versions[1:]...)
	}
}

// Versions returns the known policies, beginning with the newest. If reading the policies from before the start of the
// process fails, Versions returns the other policies and an error.
func (p *Policies) Versions(ctx context.Context, now time.Time) ([]Version, error) {
	p.mu.Lock()
	past, due := p.past, now.Sub(p.asked) >= pastPause
	if due {
		p.asked = now
	}
	p.mu.Unlock()
	if past != nil && due {
		p.ask(ctx, past)
	}
	return p.all()
}

// The method ask calls the function "past" for the policies from before the start of the process, and stores the
// result.
func (p *Policies) ask(ctx context.Context, past Past) {
	ctx, cancel := context.WithTimeout(ctx, pastTimeout)
	defer cancel()
	before, err := past(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.before = before
	}
}

func (p *Policies) all() ([]Version, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]Version, 0, len(p.versions)+len(p.before))
	for _, v := range slices.Backward(p.versions) {
		list = append(list, v)
	}
	for _, v := range slices.Backward(p.before) {
		switch last := len(list) - 1; {
		case last >= 0 && !v.Since.Before(list[last].Since): // this process has stored the policy itself
		case last >= 0 && v.Policy.Version == list[last].Policy.Version:
			list[last].Since = v.Since
		default:
			list = append(list, v)
		}
	}
	return list, p.failed
}
