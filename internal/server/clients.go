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

// clientMetrics counts users by the client that asked for them, for the clients
// of the configuration in force. It is safe for concurrent use.
type clientMetrics struct {
	counter *prometheus.CounterVec
	exempt  *prometheus.CounterVec
	refused *prometheus.CounterVec // for the bounds of permit records
	mu      sync.RWMutex
	named   []string
}

func newClients() *clientMetrics {
	return &clientMetrics{
		counter: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_client_users_total",
			Help: "Users in recording filter calls, by client, channel (empty: none) and outcome.",
		}, []string{"client", "channel", "outcome"}),
		exempt: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_client_exempt_calls_total",
			Help: "Filter calls with enforce false, by client and result: accepted, or refused without permission.",
		}, []string{"client", "result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_permit_records_refused_total",
			Help: "Calls for permits rejected because the store holds too many permit records, by client.",
		}, []string{"client"}),
	}
}

// exemptResults are the results of calls with enforce false.
var exemptResults = map[bool]string{true: "accepted", false: "refused"}

// AddExempt counts a client's call with enforce false.
func (c *clientMetrics) AddExempt(client string, accepted bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if slices.Contains(c.named, client) {
		c.exempt.WithLabelValues(client, exemptResults[accepted]).Inc()
	}
}

// AddRecordless counts a client's call for permits that was refused for the bounds of records.
func (c *clientMetrics) AddRecordless(client string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if slices.Contains(c.named, client) {
		c.refused.WithLabelValues(client).Inc()
	}
}

// now are the clients of the configuration in force.
func (c *clientMetrics) now() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.named
}

// Add counts the users of a client's call. Both labels are configured names; a
// client that a change of the configuration removed during the call is not
// counted any more.
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

// Follow makes the counters of the clients that may filter, and drops those of
// the clients that are named no longer. The counters of channels of later
// policies come with their users.
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
