package recent

import (
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

// Policies remembers the policies that were in force since the process began. It is safe
// for concurrent use.
type Policies struct {
	mu       sync.Mutex
	versions []Version // the oldest first
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

// Versions are those that are remembered, the newest first.
func (p *Policies) Versions() []Version {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]Version, 0, len(p.versions))
	for i := len(p.versions) - 1; i >= 0; i-- {
		list = append(list, p.versions[i])
	}
	return list
}
