package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/server/access"
	"capper/internal/server/answer"
)

// Clients counts users by the client that asked for them, for the clients
// of the configuration in force. It is safe for concurrent use.
type Clients struct {
	counter *prometheus.CounterVec
	mu      sync.RWMutex
	named   []string
}

func newClients() *Clients {
	return &Clients{counter: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_client_users_total",
		Help: "Users of filter calls that record, by the client that asked (anonymous without keys), channel (empty: none) and outcome.",
	}, []string{"client", "channel", "outcome"})}
}

// Add counts the users of a client's call. Both labels are configured names; a
// client that a change of the configuration removed during the call is not
// counted any more.
func (c *Clients) Add(client, channel string, sum *answer.Summary) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !slices.Contains(c.named, client) {
		return
	}
	sum.Each(func(outcome string, users int) {
		if users > 0 {
			c.counter.WithLabelValues(client, channel, outcome).Add(float64(users))
		}
	})
}

// Follow makes the counters of the clients that may filter, and drops those of
// the clients that are named no longer. The counters of channels of later
// policies come with their users.
func (c *Clients) Follow(a *access.Control, p *capping.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := a.Clients()
	for _, client := range c.named {
		if !slices.Contains(now, client) {
			c.counter.DeletePartialMatch(prometheus.Labels{"client": client})
		}
	}
	c.named = now
	channels := append(slices.Collect(maps.Keys(p.Channels)), "")
	for _, client := range a.ClientsWith(access.ScopeFilter) {
		for _, channel := range channels {
			for _, outcome := range answer.Outcomes() {
				c.counter.WithLabelValues(client, channel, outcome)
			}
		}
	}
}
