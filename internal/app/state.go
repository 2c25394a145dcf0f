package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// The variable "states" lists the values of capping.Health.State.
var states = []string{"ok", "degraded", "down"}

// healthTimeout is the time for which a scrape of the metrics waits for the store.
const healthTimeout = time.Second

// The type state is a metric collector for the state of a store. The metric has a series for each possible state, with
// the value 1 for the current state and 0 for all other states.
type state struct {
	store capping.Store
	desc  *prometheus.Desc
}

func newState(store capping.Store, kind string) *state {
	return &state{store, prometheus.NewDesc("capper_store_state",
		"1 if the store is in this state, otherwise 0. States: ok, degraded (fails for some users) and down.",
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
