package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// states lists the states of capping.Health.
var states = []string{"ok", "degraded", "down"}

// healthTimeout limits the time for which a scrape waits for the store.
const healthTimeout = time.Second

// state is a metric collector for the state of a store. It has one series for each state, and exactly one series is 1.
type state struct {
	store capping.Store
	desc  *prometheus.Desc
}

func newState(store capping.Store, kind string) *state {
	return &state{store, prometheus.NewDesc("capper_store_state",
		"1 for the current state of the store, 0 for the others: ok, degraded (fails for some users) or down.",
		[]string{"state"}, prometheus.Labels{"store": kind})}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect implements prometheus.Collector.
func (s *state) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	now := s.store.Health(ctx).State
	for _, name := range states {
		value := 0.0
		if name == now {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, value, name)
	}
}
