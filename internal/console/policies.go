package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"capper/client/api"
)

// maxPolicies is the maximum number of policy versions in memory.
const maxPolicies = 50

// Version is a policy with the time from which it applied.
type Version struct {
	Policy *api.Policy
	Since  time.Time
}

// Past returns the policies that applied before the process started, the oldest first, or nil when they are unknown.
// Later calls return the same policies and possibly newer ones.
type Past func(ctx context.Context) ([]Version, error)

// Policies remembers the policies since the start of the process, and asks for older ones. A Policies is safe for
// concurrent use.
type Policies struct {
	mu       sync.Mutex
	versions []Version // the oldest first
	past     Past
	asked    time.Time // when Past was called last
	before   []Version // result of the last call
	failed   error     // error of the last call; nil: it succeeded
}

// The pages use older policies for pastPause before they ask again, and a visitor waits at most pastTimeout for them.
const (
	pastPause   = time.Minute
	pastTimeout = 3 * time.Second
)

// SetPast sets the function that returns older policies.
func (p *Policies) SetPast(past Past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = past
}

// Note records the current policy if it differs from the last one.
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

// Versions returns the known policies, the newest first. When the policies from before the start of the process
// cannot be read, Versions also returns an error.
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

// ask requests the policies from before the start of the process.
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
		case last >= 0 && !v.Since.Before(list[last].Since): // this process has recorded the version itself
		case last >= 0 && v.Policy.Version == list[last].Policy.Version:
			list[last].Since = v.Since
		default:
			list = append(list, v)
		}
	}
	return list, p.failed
}
