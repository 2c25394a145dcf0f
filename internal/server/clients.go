package server

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// clientMetrics counts the users in API calls, separately for each client that the configuration names. A clientMetrics
// is safe for concurrent use.
type clientMetrics struct {
	counter *prometheus.CounterVec
	exempt  *prometheus.CounterVec
	refused *prometheus.CounterVec // calls refused by the limits on permit records
	mu      sync.RWMutex
	named   []string
}

func newClients() *clientMetrics {
	return &clientMetrics{
		counter: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_client_users_total",
			Help: "Users in filter calls, by client, channel (empty for none) and outcome; previews are not counted.",
		}, []string{"client", "channel", "outcome"}),
		exempt: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_client_exempt_calls_total",
			Help: "Filter calls with 'enforce: false' (limits do not apply), by client and result (accepted, refused).",
		}, []string{"client", "result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_permit_records_refused_total",
			Help: "Calls for permits that capper rejected because the store has too many permit records, by client.",
		}, []string{"client"}),
	}
}

// exemptResults holds the values of the metric label "result" for calls with "enforce": false. The map key true stands
// for a call that the server accepted.
var exemptResults = map[bool]string{true: "accepted", false: "refused"}

// AddExempt counts a client's call with "enforce": false, as accepted or as refused by the server.
func (c *clientMetrics) AddExempt(client string, accepted bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if slices.Contains(c.named, client) {
		c.exempt.WithLabelValues(client, exemptResults[accepted]).Inc()
	}
}

// AddRecordless counts a permit request that the server refused because the client has too many permit records in the
// store.
func (c *clientMetrics) AddRecordless(client string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if slices.Contains(c.named, client) {
		c.refused.WithLabelValues(client).Inc()
	}
}

// The method "now" returns the names of the clients in the current configuration.
func (c *clientMetrics) now() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.named
}

// Add counts the users of a client's call. The values of the metric labels "client" and "channel" are names from the
// configuration. If a configuration change has removed the client during the call, Add ignores the client.
func (c *clientMetrics) Add(client, channel string, sum *wire.Summary) {
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

// The method Follow creates the counters of all clients that may call /v1/filter, and deletes the counters of clients
// that the configuration no longer names. When a channel is new, its counters appear with the channel's first users.
func (c *clientMetrics) Follow(a *gate.Control, p *capping.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := a.Clients()
	for _, client := range c.named {
		if !slices.Contains(now, client) {
			c.counter.DeletePartialMatch(prometheus.Labels{"client": client})
			c.exempt.DeletePartialMatch(prometheus.Labels{"client": client})
			c.refused.DeletePartialMatch(prometheus.Labels{"client": client})
		}
	}
	c.named = now
	channels := append(slices.Collect(maps.Keys(p.Channels)), "")
	for _, client := range a.ClientsWith(gate.ScopeFilter) {
		c.refused.WithLabelValues(client)
		for _, result := range exemptResults {
			c.exempt.WithLabelValues(client, result)
		}
		for _, channel := range channels {
			for _, outcome := range capping.Outcomes() {
				c.counter.WithLabelValues(client, channel, outcome.String())
			}
		}
	}
}
