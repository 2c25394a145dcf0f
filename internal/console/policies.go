package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"capper/client/api"
)

// maxPolicies is how many versions of the policy are remembered.
const maxPolicies = 50

// Version is a policy, and since when it has been in force.
type Version struct {
	Policy *api.Policy
	Since  time.Time
}

// Past are the policies that were in force before the process began, the oldest first; nil
// where nobody knows. What it tells at any call is the same, but for newer ones.
type Past func(ctx context.Context) ([]Version, error)

// Policies remembers the policies that were in force since the process began, and asks
// for those before. It is safe for concurrent use.
type Policies struct {
	mu       sync.Mutex
	versions []Version // the oldest first
	past     Past
	asked    time.Time // when the past was asked last
	before   []Version // what it told
	failed   error     // why it told nothing; nil: it did
}

// pastPause is how long what the past told is good enough, pastTimeout how long a visitor
// waits for it.
const (
	pastPause   = time.Minute
	pastTimeout = 3 * time.Second
)

// SetPast says where to ask for what was before.
func (p *Policies) SetPast(past Past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = past
}

// Note takes the policy in force, when it is another one than the last.
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

// Versions are those that are known, the newest first: since the process began, and those
// before as far as they can be told; the error is why not.
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

// ask asks for what was before.
func (p *Policies) ask(ctx context.Context, past Past) {
	ctx, cancel := context.WithTimeout(ctx, pastTimeout)
	defer cancel()
	told, err := past(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.before = told
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
		case last >= 0 && !v.Since.Before(list[last].Since): // this process was told of it itself
		case last >= 0 && v.Policy.Version == list[last].Policy.Version:
			list[last].Since = v.Since
		default:
			list = append(list, v)
		}
	}
	return list, p.failed
}
